"""A change: the ratio of two rows with its interval, and the verdict on it, for two runs and for a duel."""

import math
from dataclasses import dataclass

from bench.analyse.flags import is_biased
from bench.analyse.rows import Row
from bench.plan.case import Case, Point
from bench.plan.verdicts import EQUIVALENT, FASTER, JUDGED, OPEN, SLOWER
from bench.stats.estimates import UNKNOWN, Interval


@dataclass(frozen=True)
class Change:
    """The change of a case: its rows before and after (empty if a side has none) and the verdict.

    `ratio` is the speed after over the speed before, with its interval.
    """

    case: Case
    verdict: str
    base: Row
    new: Row
    ratio: Interval = UNKNOWN

    @property
    def point(self) -> Point:
        """The point of the case."""
        return self.case.point

    @property
    def is_judged(self) -> bool:
        """Whether the verdict depends on an interval."""
        return self.verdict in JUDGED and self.ratio.is_known and not self.is_disturbed

    @property
    def is_disturbed(self) -> bool:
        """Whether the verdict is open because other processes may have biased a side."""
        return self.verdict == OPEN and (is_biased(self.base) or is_biased(self.new))

    @property
    def memory(self) -> float:
        """The memory after over the memory before, NaN if either is unknown."""
        before, after = (row.get("memory_bytes") for row in (self.base, self.new))
        return after / before if before and after else math.nan


def judge(ratio: Interval, margin: float, bound: float, *, one_sided: bool = False) -> str:
    """Return the verdict that the interval of a speed ratio gives; OPEN without an interval.

    FASTER or SLOWER is a change by more than the margin, EQUIVALENT a change within the bound in both directions.
    With `one_sided`, EQUIVALENT means not slower by more than the bound, and takes precedence over SLOWER.
    """
    if ratio.low > 1 + margin:
        return FASTER
    is_equivalent = ratio.low >= 1 / (1 + bound) and (one_sided or ratio.high <= 1 + bound)
    if ratio.high < 1 / (1 + margin) and not (one_sided and is_equivalent):
        return SLOWER
    return EQUIVALENT if is_equivalent else OPEN
