"""The verdicts of a comparison of two runs: their names, what each means, and the margin of a change."""

from bench.plan.errors import unknown

MARGIN = 0.01
"""A change of 1 % or less is not worth acting on: builds and memory layouts alone move a ratio by some 0.2 %."""

INCONCLUSIVE = "inconclusive"
CHANGED = ("slower", "faster")
JUDGED = (*CHANGED, INCONCLUSIVE, "equivalent")
"""The verdicts of statistics; the others follow from statuses alone."""

VERDICTS = {
    "slower": "slower by more than the margin",
    "newly failing": "ok in BASE, not in NEW",
    "missing": "only in BASE",
    INCONCLUSIVE: "nothing is shown, neither a change nor its absence",
    "not measured": "ok in neither run",
    "new": "only in NEW",
    "fixed": "ok in NEW, not in BASE",
    "faster": "faster by more than the margin",
    "equivalent": "any change is within the bounds of equivalence",
    "baseline": "1 by construction, not judged",
}
"""Every verdict with its meaning, worst first."""

REGRESSIONS = ("slower", "newly failing")
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
