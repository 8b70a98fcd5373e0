"""Who won at a point, and whether the intervals say so."""

from collections.abc import Sequence
from dataclasses import dataclass

from bench.show.rows import Row, measured

Speed = tuple[float, float | None, float | None]
"""A speed with its interval: the ratio to the baseline, or calls a second where there is no baseline."""


@dataclass(frozen=True)
class Verdict:
    """The names that lead a point, fastest first, and what can be said of them."""

    says: str
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the verdict in words: `winner: sdpa`."""
        return f"{self.says}: {', '.join(self.names)}" if self.names else self.says


def verdict(rows: Sequence[Row]) -> Verdict:
    """Return who won among the rows of one point.

    All whose interval reaches the interval of the fastest tie with it; without intervals there is only a fastest.
    """
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


def _speeds(rows: Sequence[Row]) -> dict[str, Speed]:
    found = measured(rows)
    paired = all(row["speedup"] is not None for row in found)
    return {row["implementation"]: _ratio(row) if paired else _rate(row) for row in found}


def _ratio(row: Row) -> Speed:
    return row["speedup"], row["speedup_low"], row["speedup_high"]


def _rate(row: Row) -> Speed:
    low, high = row["latency_low_s"], row["latency_high_s"]
    return 1 / row["latency_s"], 1 / high if high else None, 1 / low if low else None
