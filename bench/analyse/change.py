"""A change from one side to another: of two runs, or of a duel."""

import math
from dataclasses import dataclass

from bench.analyse.rows import Row
from bench.plan.case import Case, Point
from bench.plan.verdicts import JUDGED
from bench.stats.estimates import UNKNOWN, Interval

SIDES = ("base", "new")

SHOWN = (
    "status",
    "detail",
    "speedup",
    "speedup_low",
    "speedup_high",
    "log_ratio_freedom",
    "processes",
    "latency_s",
    "standing",
    "slowdown_low",
    "slowdown_high",
)
"""Columns of both sides that a row of a comparison has."""


@dataclass(frozen=True)
class Change:
    """What became of a case: its row on the first side and on the new one, empty if a side has none, and the verdict.

    `ratio` is the new speed over the first, above 1 if the new side is faster, with its interval.
    If many are judged together, `p` tests whether a change exceeds the margin, and `p_holm` is adjusted for their
    number.
    """

    case: Case
    verdict: str
    base: Row
    new: Row
    ratio: Interval = UNKNOWN
    p: float = math.nan
    p_holm: float = math.nan

    @property
    def point(self) -> Point:
        """The point of the new side."""
        return self.case.point

    @property
    def is_judged(self) -> bool:
        """Whether it has a verdict of statistics and an interval."""
        return self.verdict in JUDGED and self.ratio.is_known

    @property
    def memory(self) -> float:
        """The new side's memory relative to the first's, NaN if one isn't known."""
        before, after = (row.get("memory_bytes") for row in (self.base, self.new))
        return after / before if before and after else math.nan

    def exceeds(self, allow: float) -> bool:
        """Return whether the new side is shown to be slower by more than this share."""
        return self.ratio.high * (1 + allow) < 1

    def may_exceed(self, allow: float) -> bool:
        """Return whether it may be slower by more than this share."""
        return not self.ratio.low * (1 + allow) >= 1

    def numbers(self) -> Row:
        """Return the ratio and its ends as columns, None for what isn't known."""
        values = vars(self.ratio).values()
        return {
            name: None if math.isnan(value) else value
            for name, value in zip(("change", "change_low", "change_high"), values, strict=True)
        }

    def columns(self) -> Row:
        """Return the row of a comparison of two runs."""
        tests = {name: None if math.isnan(of) else of for name, of in (("p", self.p), ("p_holm", self.p_holm))}
        rows = dict(zip(SIDES, (self.base, self.new), strict=True))
        of_sides = {f"{side}_{name}": rows[side].get(name) for name in SHOWN for side in SIDES}
        case = {"verdict": self.verdict, **self.case.columns()}
        return {**case, **self.numbers(), **tests, **of_sides}
