"""What is shown of the changes of any comparison: of two runs, and of the two sides of a duel."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from bench.analyse.change import Change
from bench.plan import verdicts
from bench.plan.case import Point
from bench.show import blocks
from bench.show.blocks import Column
from bench.show.rows import Row
from bench.show.text import names, shared
from bench.store import units

TONES = {
    verdicts.DIFFERENT: blocks.BAD,
    verdicts.NOT_MEASURED: blocks.WARNING,
    verdicts.SLOWER: blocks.BAD,
    verdicts.NEWLY_FAILING: blocks.BAD,
    verdicts.MISSING: blocks.WARNING,
    verdicts.OPEN: blocks.WARNING,
    verdicts.FIXED: blocks.GOOD,
    verdicts.FASTER: blocks.GOOD,
    verdicts.AS_FAST: blocks.GOOD,
    verdicts.BASELINE: blocks.QUIET,
}
"""The tones of verdicts that stand out; every verdict is also said in words."""

VERDICT = Column("verdict", lambda of: of.verdict, key="verdict", tone=lambda of: TONES.get(of.verdict, blocks.PLAIN))
"""The column of verdicts."""


@dataclass(frozen=True)
class Comparison:
    """The changes from one side to another, and the names of their points."""

    changes: Sequence[Change]

    @cached_property
    def points(self) -> Collection[Point]:
        """The points of the changes, each once."""
        return dict.fromkeys(change.point for change in self.changes)

    @cached_property
    def labels(self) -> Mapping[Point, str]:
        """The values in which each point differs from others."""
        return names(self.points)

    @cached_property
    def shared(self) -> str:
        """In words the values that all points share."""
        return shared(self.points)

    def label(self, change: Change) -> str:
        """Return the name of the point of a change, empty if there is no other point."""
        return self.labels[change.point] if len(self.labels) > 1 else ""


def counts(changes: Iterable[Change]) -> str:
    """Return how many changes have each verdict, worst first: `2 slower, 1 missing, 40 equivalent`."""
    number = Counter(change.verdict for change in changes)
    return ", ".join(f"{number[verdict]} {verdict}" for verdict in verdicts.VERDICTS if number[verdict])


def time(row: Row) -> str:
    """Return the time of a side, or its status if it isn't ok; empty if the side has no such row."""
    status = row.get("status")
    return units.seconds(row["latency_s"]) if status == "ok" else status or ""
