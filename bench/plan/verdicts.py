"""The verdicts of comparisons: of two runs, and of the sides of a duel."""

from typing import Final

from bench.plan.errors import unknown

MARGIN = 0.01
"""A change of 1 % or less is not worth acting on: builds and memory layouts alone move a ratio by some 0.2 %."""

FASTER: Final = "faster"
SLOWER: Final = "slower"
EQUIVALENT: Final = "equivalent"
AS_FAST: Final = "as fast"
OPEN: Final = "open"
NOT_MEASURED: Final = "not measured"
DIFFERENT: Final = "different"
NEWLY_FAILING, FIXED, MISSING, NEW, BASELINE = "newly failing", "fixed", "missing", "new", "baseline"

CHANGED = (SLOWER, FASTER)
JUDGED = (*CHANGED, OPEN, EQUIVALENT)
"""The verdicts of statistics on a row of two runs; the others follow from statuses alone."""

VERDICTS = {
    SLOWER: "slower by more than the margin",
    NEWLY_FAILING: "ok in BASE, not in NEW",
    MISSING: "only in BASE",
    OPEN: "nothing is shown, neither a change nor its absence",
    NOT_MEASURED: "ok in neither run",
    NEW: "only in NEW",
    FIXED: "ok in NEW, not in BASE",
    FASTER: "faster by more than the margin",
    EQUIVALENT: "any change is within the bounds of equivalence",
    BASELINE: "1 by construction, not judged",
}
"""The verdicts on a row of two runs with their meanings, worst first."""

OF_SIDES = (DIFFERENT, NOT_MEASURED, SLOWER, OPEN, AS_FAST, FASTER)
"""The verdicts on the second side of a duel, worst first: `as fast` is not slower by more than was asked for."""

REGRESSIONS = (SLOWER, NEWLY_FAILING)
"""The verdicts that end with status 1 if nothing else is asked for."""


def hyphened(verdict: str) -> str:
    """Return a verdict as one word of a command line."""
    return verdict.replace(" ", "-")


def named(words: str) -> tuple[str, ...]:
    """Return the verdicts in a comma list such as `slower,newly-failing`; raises WrongRequest for an unknown one."""
    verdicts = {hyphened(verdict): verdict for verdict in VERDICTS}
    names = [word.strip() for word in words.split(",") if word.strip()]
    for name in names:
        if name not in verdicts:
            raise unknown("verdict", name, verdicts)
    return tuple(verdicts[name] for name in names)
