"""Flags of rows that are less reliable than they look."""

from collections.abc import Collection
from dataclasses import dataclass

from bench.analyse.rows import Row
from bench.plan.device import HOST

FLAGGED_SHARE = 0.25
"""A median is right while half of its values are undisturbed; this leaves a margin."""

MOST_DISTURBED, ALIKE = 0.5, 1.5
"""If more than this share of samples is disturbed, a ratio beyond the second number may be biased: short calls fit
between the time slices of other processes, long ones don't. Calls of about equal length are disturbed equally."""

LAUNCH_SHARE = 0.9
"""A loop of calls is launch-bound if submitting a call takes at least this share of the wall time."""


@dataclass(frozen=True)
class Flag:
    """A letter, its meaning, and advice."""

    letter: str
    meaning: str
    advice: str = ""


DISTURBED = Flag("D", "other processes disturbed a quarter of the samples or more", "close them and run again")
LAUNCH_BOUND = Flag(
    "L",
    "launch-bound, because the host takes as long to submit a call as the device to run it",
    "a larger shape keeps the device busy",
)
THROTTLED = Flag(
    "T", "the GPU held its clock down for the reason in the column throttle", "cool it, or set a lower power limit"
)
ONE_PROCESS = Flag("1", "measured in one process")

FLAGS = (DISTURBED, LAUNCH_BOUND, THROTTLED, ONE_PROCESS)
"""All flags."""


def flags(row: Row) -> list[Flag]:
    """Return the flags of a row that is ok."""
    raised = (
        (DISTURBED, (row["flagged_share"] or 0) >= FLAGGED_SHARE),
        (LAUNCH_BOUND, launch_bound(row)),
        (THROTTLED, row["throttle"]),
        (ONE_PROCESS, row["processes"] == 1),
    )
    return [flag for flag, is_raised in raised if is_raised]


def legend(raised: Collection[Flag]) -> list[Flag]:
    """Return each flag once, sorted by letter."""
    return sorted({*raised}, key=lambda flag: flag.letter)


def launch_bound(row: Row) -> bool:
    """Return whether the host takes as long to submit a call as the device to run it; never on a CPU.

    Host timing includes both, so there the limit is LAUNCH_SHARE of the latency.
    """
    share = LAUNCH_SHARE if row["timing"] == HOST else 1.0
    return bool(row["host_s"] is not None and row["host_s"] >= share * row["latency_s"])


def is_biased(row: Row) -> bool:
    """Return whether other processes may have biased a row's ratio to the baseline."""
    is_unlike = max(ratio, 1 / ratio) > ALIKE if (ratio := row.get("speedup")) else False
    return is_unlike and (row.get("flagged_share") or 0) > MOST_DISTURBED
