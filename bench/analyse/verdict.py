"""The change from one side of a duel to the other, with its verdict, and when the race may stop."""

import math
from collections.abc import Sequence

from bench.analyse.change import Change
from bench.analyse.rows import Row, shown_by, speedup_of
from bench.analyse.standing import LEAST_REPLICATES, Answer
from bench.plan.case import Case, Point
from bench.plan.verdicts import AS_FAST, DIFFERENT, NOT_MEASURED, OPEN
from bench.stats.best import growth
from bench.stats.contrasts import Contrasts
from bench.stats.estimates import Interval, interval

LOST = (DIFFERENT, NOT_MEASURED)
"""The verdicts on a side that has no time, or not that of the same function."""

SHARE_OF_CHANGE = 1 / 3
"""If a half-width is at most this share of the change, it is small enough: no change is three half-widths away."""

MOST_TIMES = 100.0
"""To measure for more times as long is no advice."""


def change(point: Point, rows: Sequence[Row], before: str, after: str, bound: float) -> Change:
    """Return the change from one side to the other at a point of a duel, given its rows.

    It is AS_FAST if the second can't be slower by more than `bound`.
    """
    by_name = {row["implementation"]: row for row in rows}
    old, new = by_name.get(before, {}), by_name.get(after, {})
    case = Case(point, after)
    if new.get("status") == "incorrect":
        return Change(case, DIFFERENT, old, new)
    if {old.get("status"), new.get("status")} != {"ok"} or new.get("speedup") is None:
        return Change(case, NOT_MEASURED, old, new)
    speedup = speedup_of(new)
    return Change(case, _kind(speedup, bound), old, new, speedup)


def _kind(speedup: Interval, bound: float) -> str:
    is_as_fast = speedup.low <= 1 <= speedup.low * (1 + bound)
    return AS_FAST if is_as_fast else shown_by(speedup)


def answer(of: Contrasts, before: str, after: str, bound: float, allow: float | None, replicates: int) -> Answer:
    """Return what is known of the ratio of two sides: both are measured until the race may end."""
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
    """Return whether a race may end: the log ratio is known well enough, and on one side of what is allowed."""
    limit = math.nan if allow is None else -math.log1p(allow)
    return log.high - log.value <= _goal(log, bound) and not log.low < limit <= log.high


def _goal(log: Interval, bound: float) -> float:
    """Return the half-width to which a ratio is measured: the bound, or a third of a change that is larger than that.

    It is half of the bound if no verdict follows: the interval is not above `1 / (1 + bound)`, and would not be below 1
    if it were twice as wide. Without the factor of 2, repeated looks would call one in a hundred unchanged sides
    slower.
    """
    usual = math.log1p(bound)
    is_clear = log.low >= -usual or 2 * log.high < log.value
    return max(usual if is_clear else usual / 2, abs(log.value) * SHARE_OF_CHANGE)


def needed(of: Change, bound: float, allow: float | None = None) -> float:
    """Return how many times as much measuring a point needs until it is decided, infinite if too little tells that.

    That is until its interval excludes that the second side is slower by more than `bound`, or that it is as fast, and
    lies on one side of `allow`. A point that is decided needs as much as it has.
    """
    is_unsure = allow is not None and of.may_exceed(allow) and not of.exceeds(allow)
    if of.verdict in LOST or not (is_unsure or of.verdict == OPEN):
        return 1.0
    if not of.ratio.is_known or (of.new.get("processes") or LEAST_REPLICATES) < LEAST_REPLICATES:
        return math.inf
    log, half = math.log(of.ratio.value), math.log(of.ratio.high / of.ratio.value)
    goals = [max(log + math.log1p(bound), -log)] if of.verdict == OPEN else []
    goals += [abs(log + math.log1p(allow))] if is_unsure and allow is not None else []
    times = 1 + float(growth(half, min(goals), float(of.new["log_ratio_freedom"])))
    return max(1.0, times) if times <= MOST_TIMES else math.inf
