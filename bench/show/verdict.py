"""Who won at a point, and whether the intervals say so."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bench.analyse.estimates import Interval
from bench.show import intervals
from bench.show.rows import Row, measured

Speed = tuple[float, float | None, float | None]
"""A speed with its interval: the ratio to the baseline, or calls a second where there is no baseline."""

LEAD_DECIMALS = 3
"""A winner may be ahead by less than a hundredth, and that should not read 1.00."""


@dataclass(frozen=True)
class Verdict:
    """The names that lead a point, fastest first, and what can be said of them; `by` how far a winner is ahead."""

    says: str
    names: tuple[str, ...] = ()
    by: str = ""

    def __str__(self) -> str:
        """Return the verdict in words: `winner: sdpa, 1.04x [1.02, 1.06] as fast as mha`."""
        return f"{self.says}: {', '.join(self.names)}{self.by}" if self.names else self.says


def verdict(rows: Sequence[Row]) -> Verdict:
    """Return who won among the rows of one point.

    All tie with the fastest whose ratio to it, paired round by round, may be 1; without intervals there is only a
    fastest. Results that are older than those ratios are judged by whether the intervals reach that of the fastest.
    """
    found = measured(rows)
    if len(found) > 1 and all(row.get("lead") is not None for row in found):
        return _paired(found)
    speeds = _speeds(rows)
    if not speeds:
        return Verdict("nothing was measured")
    names = list(speeds)
    if len(names) == 1:
        return Verdict("only one measured", (names[0],))
    lows, highs = [speeds[name][1] for name in names], [speeds[name][2] for name in names]
    if None in lows or None in highs:
        return Verdict("fastest, without intervals", (names[0],))
    low = lows[0] or 0.0
    tied = tuple(name for name, high in zip(names, highs, strict=True) if (high or 0.0) >= low)
    return Verdict("tie", tied) if len(tied) > 1 else Verdict("winner", tied)


def _paired(found: Sequence[Row]) -> Verdict:
    first, *others = (row["implementation"] for row in found)
    if any(row["lead_low"] is None for row in found):
        return Verdict("fastest, without intervals", (first,))
    tied = [row["implementation"] for row in found[1:] if row["lead_low"] <= 1]
    if tied:
        return Verdict("tie", (first, *tied))
    ahead = intervals.ratio(lead_over(found[1]), LEAD_DECIMALS)
    return Verdict("winner", (first,), f", {ahead} as fast as {others[0]}")


def lead_over(row: Row) -> Interval:
    """Return how many times as fast as a row the fastest of its point is, as they were paired in their rounds."""
    return Interval(*(math.nan if row[name] is None else row[name] for name in ("lead", "lead_low", "lead_high")))


def _speeds(rows: Sequence[Row]) -> dict[str, Speed]:
    found = measured(rows)
    paired = all(row["speedup"] is not None for row in found)
    return {row["implementation"]: _ratio(row) if paired else _rate(row) for row in found}


def _ratio(row: Row) -> Speed:
    return row["speedup"], row["speedup_low"], row["speedup_high"]


def _rate(row: Row) -> Speed:
    low, high = row["latency_low_s"], row["latency_high_s"]
    return 1 / row["latency_s"], 1 / high if high else None, 1 / low if low else None
