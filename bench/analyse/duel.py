"""A duel: the change from one side to the other, the end of its race, and the outcome over all points."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bench.analyse.change import Change, judge
from bench.analyse.rows import Row, speedup_of
from bench.analyse.standing import Answer
from bench.plan.case import Case, Point
from bench.plan.sides import DIFFER, SAME
from bench.plan.verdicts import DIFFERENT, LOST, NOT_MEASURED, OF_SIDES, OPEN, SLOWER
from bench.stats.best import growth
from bench.stats.contrasts import Contrasts
from bench.stats.estimates import Interval, interval
from bench.store.environment import Environment

SHARE_OF_CHANGE = 1 / 3
"""A half-width of at most this share of the change is small enough: the change is three half-widths or more."""

KEPT, EXCEEDED, UNDECIDED = "kept", "exceeded", "not decided"
"""Whether the second side is within the allowed slowdown."""


def change(point: Point, rows: Sequence[Row], before: str, after: str, bound: float) -> Change:
    """Return the change from one side to the other at a point, from its rows.

    It is EQUIVALENT if the second side can't be slower by more than `bound`.
    """
    by_name = {row["implementation"]: row for row in rows}
    old, new = by_name.get(before, {}), by_name.get(after, {})
    case = Case(point, after)
    if new.get("status") == "incorrect":
        return Change(case, DIFFERENT, old, new)
    if {old.get("status"), new.get("status")} != {"ok"} or new.get("speedup") is None:
        return Change(case, NOT_MEASURED, old, new)
    speedup = speedup_of(new)
    return Change(case, judge(speedup, 0.0, bound, one_sided=True), old, new, speedup)


def answer(of: Contrasts, before: str, after: str, bound: float, allow: float | None, replicates: int) -> Answer:
    """Return the answer so far about the ratio of two sides; both are candidates until the race may end."""
    if not {before, after} <= {*of.names}:
        return Answer()
    speedup = of.speedup(after, before)
    log = interval(speedup)
    if math.isnan(log.value):
        return Answer()
    half = log.high - log.value
    if may_end(log, bound, allow):
        return Answer(before, math.expm1(half), replicates=replicates)
    further = float(growth(half, _goal(log, bound), float(speedup.freedom)))
    return Answer(before, math.expm1(half), (before, after), (further, further), replicates)


def may_end(log: Interval, bound: float, allow: float | None) -> bool:
    """Return whether a race may end: the log ratio is precise enough, and its interval excludes the allowed limit."""
    limit = math.nan if allow is None else -math.log1p(allow)
    return log.high - log.value <= _goal(log, bound) and not log.low < limit <= log.high


def _goal(log: Interval, bound: float) -> float:
    """Return the half-width to which a ratio is measured: the bound, or a third of the change if that is larger.

    The bound is halved while there is no clear verdict: the interval reaches below `1 / (1 + bound)`, and an interval
    twice as wide would reach 1. Without the factor of 2, repeated looks would call one in a hundred unchanged sides
    slower.
    """
    usual = math.log1p(bound)
    is_clear = log.low >= -usual or 2 * log.high < log.value
    return max(usual if is_clear else usual / 2, abs(log.value) * SHARE_OF_CHANGE)


@dataclass(frozen=True)
class Outcome:
    """The outcome of a duel: a change for each point, at least one.

    `bound` is the requested precision of the ratio, `allow` the share by which the second side may be slower, None
    without a limit. The race took `spent_s` seconds in the environment `here`.
    """

    changes: Sequence[Change]
    before: str
    after: str
    bound: float
    allow: float | None
    spent_s: float
    here: Environment

    @property
    def sides(self) -> Mapping[str, Mapping[str, Any]]:
        """The facts about each side's code; empty if it is the same."""
        sides: Mapping[str, Mapping[str, Any]] = self.here.context.get("sides", {})
        return sides

    @property
    def weights(self) -> str | None:
        """Whether the weights of both sides are the SAME or DIFFER; None for two different layers."""
        weights: str | None = self.here.context.get("weights", SAME)
        return weights

    @cached_property
    def worst(self) -> Change:
        """The change with the worst verdict; of several, the one with the least speed-up."""

        def badness(of: Change) -> tuple[int, float]:
            return OF_SIDES.index(of.verdict), math.inf if math.isnan(of.ratio.value) else of.ratio.value

        return min(self.changes, key=badness)

    @property
    def verdict(self) -> str:
        """The worst verdict over all points."""
        return self.worst.verdict

    @property
    def is_uncompared(self) -> bool:
        """Whether both sides have the same layer but outputs were not compared."""
        return self.weights == DIFFER and self.verdict not in LOST

    @cached_property
    def kept(self) -> list[str]:
        """For each change KEPT (within the limit), EXCEEDED or UNDECIDED; empty without a limit."""
        return [] if self.allow is None else [_kept(of, self.allow) for of in self.changes]

    @property
    def allowed(self) -> str | None:
        """KEPT if all changes are, else the worst; None without a limit, or if a point has no change."""
        if not self.kept or self.verdict in LOST:
            return None
        return next(kind for kind in (EXCEEDED, UNDECIDED, KEPT) if kind in self.kept)

    @property
    def unmet(self) -> list[Change]:
        """The changes that exceed the limit, or else the undecided ones."""
        if self.allowed in (None, KEPT):
            return []
        return [of for of, kind in zip(self.changes, self.kept, strict=True) if kind == self.allowed]

    @property
    def is_undecided(self) -> bool:
        """Whether a longer race may decide a change or the limit."""
        is_open = any(of.verdict == OPEN for of in self.changes)
        return self.verdict not in LOST and (is_open or self.allowed == UNDECIDED)

    @property
    def is_bad(self) -> bool:
        """Whether a side is different, has no time, exceeds the limit, or has a limit but wasn't compared.

        A side whose outputs were not compared may compute anything.
        """
        is_unknown = self.is_uncompared and self.allow is not None
        return self.verdict in LOST or self.allowed == EXCEEDED or is_unknown


def _kept(of: Change, allow: float) -> str:
    shown = judge(of.ratio, allow, allow, one_sided=True)
    return {SLOWER: EXCEEDED, OPEN: UNDECIDED}.get(shown, KEPT)
