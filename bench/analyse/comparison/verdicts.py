"""The verdicts of a comparison, worst first, and how a command line names them."""

from bench.plan.errors import unknown
from bench.stats.limits import INCONCLUSIVE

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
    known = {hyphened(verdict): verdict for verdict in VERDICTS}
    names = [word.strip() for word in words.split(",") if word.strip()]
    for name in names:
        if name not in known:
            raise unknown("verdict", name, known)
    return tuple(known[name] for name in names)
