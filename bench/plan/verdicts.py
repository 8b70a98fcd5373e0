"""The verdicts on changes between two runs, and between the sides of a duel."""

from typing import Final

from bench.plan.errors import unknown

MARGIN = 0.01
"""A change of 1 % or less is not worth acting on: builds and memory layouts alone change a ratio by some 0.2 %."""

EQUIVALENCE = 0.02
"""Rows of two runs within 2 % are equivalent: twice the margin, because 5 to 10 processes can't show less."""

FASTER: Final = "faster"
SLOWER: Final = "slower"
EQUIVALENT: Final = "equivalent"
OPEN: Final = "open"
NOT_MEASURED: Final = "not measured"
DIFFERENT: Final = "different"
NEWLY_FAILING, FIXED, MISSING, NEW, BASELINE = "newly failing", "fixed", "missing", "new", "baseline"

JUDGED = (SLOWER, FASTER, OPEN, EQUIVALENT)
"""The verdicts that depend on an interval; the others depend on statuses alone."""

EVENTS = (SLOWER, NEWLY_FAILING, FIXED, FASTER)
"""The verdicts on rows of two runs that a user should see."""

VERDICTS = {
    SLOWER: "slower by more than the margin",
    NEWLY_FAILING: "ok in BASE, not in NEW",
    MISSING: "only in BASE",
    OPEN: "the interval is too wide to tell",
    NOT_MEASURED: "ok in neither run",
    NEW: "only in NEW",
    FIXED: "ok in NEW, not in BASE",
    FASTER: "faster by more than the margin",
    EQUIVALENT: f"any change is within {EQUIVALENCE:.0%}",
    BASELINE: "1 by definition, not judged",
}
"""The verdicts on a row of two runs with their meanings, worst first."""

OF_SIDES = (DIFFERENT, NOT_MEASURED, SLOWER, OPEN, EQUIVALENT, FASTER)
"""The verdicts on the second side of a duel, worst first; here `equivalent` means not slower by more than the bound."""

LOST = (DIFFERENT, NOT_MEASURED)
"""The verdicts on a side without a time, or whose time is for another function."""

REGRESSIONS = (SLOWER, NEWLY_FAILING)
"""The verdicts that end with status 1 by default."""


def hyphened(verdict: str) -> str:
    """Return a verdict as one word for the command line."""
    return verdict.replace(" ", "-")


def named(words: str) -> tuple[str, ...]:
    """Return the verdicts in a comma list such as `slower,newly-failing`; raises WrongRequest for an unknown one."""
    verdicts = {hyphened(verdict): verdict for verdict in VERDICTS}
    names = [word.strip() for word in words.split(",") if word.strip()]
    for name in names:
        if name not in verdicts:
            raise unknown("verdict", name, verdicts)
    return tuple(verdicts[name] for name in names)
