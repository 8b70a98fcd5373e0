"""The common parts in the output of changes between two runs and in a duel."""

from collections.abc import Callable, Iterable

from bench.analyse.change import Change
from bench.plan import verdicts
from bench.show import blocks
from bench.show.blocks import Column
from bench.show.text import LONGEST_NAME, names

TONES = {
    verdicts.DIFFERENT: blocks.BAD,
    verdicts.NOT_MEASURED: blocks.WARNING,
    verdicts.SLOWER: blocks.BAD,
    verdicts.NEWLY_FAILING: blocks.BAD,
    verdicts.MISSING: blocks.WARNING,
    verdicts.OPEN: blocks.WARNING,
    verdicts.FIXED: blocks.GOOD,
    verdicts.FASTER: blocks.GOOD,
    verdicts.BASELINE: blocks.QUIET,
}
"""The tones of verdicts that stand out; every verdict is also printed in words."""

VERDICT = Column("verdict", lambda of: of.verdict, tone=lambda of: TONES.get(of.verdict, blocks.PLAIN))
"""The column of verdicts."""


def labels(changes: Iterable[Change]) -> Callable[[Change], str]:
    """Return a function that names the point of a change; with only one point the name is empty."""
    points = dict.fromkeys(change.point for change in changes)
    named = names(points, LONGEST_NAME) if len(points) > 1 else dict.fromkeys(points, "")
    return lambda change: named[change.point]
