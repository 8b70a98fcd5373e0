"""The fastest among the rows of one point, as `bench.analyse.ranking` judged them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bench.analyse.ranking import SLOWER
from bench.analyse.scaling.series import Row
from bench.stats.estimates import Interval

WITHOUT_INTERVALS: Final = "fastest, not decided"
ALONE: Final = "only one measured"
NOTHING: Final = "nothing was measured"


@dataclass(frozen=True)
class Outcome:
    """The fastest at a point, as far as it is known.

    `says` is WINNER, TIE or NOT_DECIDED of the ranking; WITHOUT_INTERVALS if one process measured the point; ALONE or
    NOTHING if fewer than two implementations were measured.
    `names` are the winner, those that tie, or those of which each may be the fastest, by rank.
    `relative` is the time of the `runner_up` relative to the first, if they were measured in the same rounds.
    `further_processes` would decide the point, None if that isn't known.
    """

    says: str
    names: tuple[str, ...] = ()
    runner_up: str = ""
    relative: Interval | None = None
    further_processes: int | None = None


def fastest_first(rows: Sequence[Row]) -> list[Row]:
    """Return the measured rows of one point by their rank."""
    return sorted(rows, key=lambda row: int(row["rank"]))


def outcome(rows: Sequence[Row]) -> Outcome:
    """Return the fastest among the measured rows of one point."""
    if not rows:
        return Outcome(NOTHING)
    first, *others = fastest_first(rows)
    alone = (first["implementation"],)
    if not others:
        return Outcome(ALONE, alone)
    runner_up = str(others[0]["implementation"])
    if all(row["relative_low"] is None for row in others):
        return Outcome(WITHOUT_INTERVALS, alone, runner_up, relative_time(others[0]))
    names = tuple(row["implementation"] for row in (first, *others) if row["standing"] != SLOWER)
    return Outcome(first["standing"], names, runner_up, relative_time(others[0]), first["further_processes"])


def relative_time(row: Row) -> Interval | None:
    """Return the time of a row relative to the fastest of its point, None if they share no round."""
    if row.get("relative") is None:
        return None
    values = (row[name] for name in ("relative", "relative_low", "relative_high"))
    return Interval(*(math.nan if value is None else value for value in values))


def against_their_numbers(rows: Sequence[Row]) -> set[str]:
    """Return the implementations that rank before one with a shorter latency or a larger speed-up.

    A rank follows ratios within rounds, a latency is taken over all rounds, and a speed-up is a ratio to the baseline.
    """
    ordered = fastest_first(rows)
    return {
        row["implementation"]
        for place, row in enumerate(ordered, start=1)
        if any(_seems_slower(row, other) for other in ordered[place:])
    }


def _seems_slower(row: Row, other: Row) -> bool:
    if row["latency_s"] > other["latency_s"]:
        return True
    return None not in (row["speedup"], other["speedup"]) and bool(row["speedup"] < other["speedup"])
