"""Flags of rows that are less reliable than they look."""

from collections.abc import Collection
from dataclasses import dataclass

from bench.analyse.rows import Row
from bench.plan.device import HOST

FLAGGED_SHARE = 0.25
"""The share of disturbed samples that raises the flag; a median holds as long as half of its values are undisturbed."""

MOST_DISTURBED, ALIKE = 0.5, 1.5
"""The share of disturbed samples above which a ratio may be biased, and the ratio from which it may be.

Short calls fit between two time slices of other processes, but long ones don't. Calls of about the same length are
disturbed equally."""

LAUNCH_SHARE = 0.9
"""A loop of calls is launch-bound if submitting a call takes at least this share of the wall time."""


@dataclass(frozen=True)
class Flag:
    """A letter, its meaning, and advice."""

    letter: str
    meaning: str
    advice: str = ""


DISTURBED = Flag("D", "other processes disturbed at least a quarter of the samples", "close them and run again")
LAUNCH_BOUND = Flag(
    "L",
    "launch-bound, because submitting a call takes as long as running it",
    "use a larger shape or a CUDA graph",
)
THROTTLED = Flag("T", "the GPU held its clock down; the column throttle says why", "cool it or lower its power limit")
ONE_PROCESS = Flag("1", "measured in one process")

FLAGS = (DISTURBED, LAUNCH_BOUND, THROTTLED, ONE_PROCESS)
"""All flags."""


def flags(row: Row) -> list[Flag]:
    """Return the flags of a row whose status is ok."""
    raised = (
        (DISTURBED, (row["flagged_share"] or 0) >= FLAGGED_SHARE),
        (LAUNCH_BOUND, launch_bound(row)),
        (THROTTLED, row["throttle"]),
        (ONE_PROCESS, row["processes"] == 1),
    )
    return [flag for flag, is_raised in raised if is_raised]


def legend(raised: Collection[Flag]) -> list[Flag]:
    """Return each flag once, in the order of the letters."""
    return sorted({*raised}, key=lambda flag: flag.letter)


def launch_bound(row: Row) -> bool:
    """Return whether the host needs as long to submit a call as the device to run it; never on a CPU.

    Host timings include both, so there submission must take at least LAUNCH_SHARE of the time.
    """
    share = LAUNCH_SHARE if row["timing"] == HOST else 1.0
    return bool(row["host_s"] is not None and row["host_s"] >= share * row["latency_s"])


def is_biased(row: Row) -> bool:
    """Return whether other processes may have biased a row's ratio to the baseline."""
    is_unlike = max(ratio, 1 / ratio) > ALIKE if (ratio := row.get("speedup")) else False
    return is_unlike and (row.get("flagged_share") or 0) > MOST_DISTURBED
