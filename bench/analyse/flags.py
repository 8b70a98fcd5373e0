"""Flags of rows that are less certain than they look, and values that follow from the rows of a table."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from bench.analyse.rows import Row, pair
from bench.plan.device import HOST, kind
from bench.plan.verdicts import FASTER, OPEN, SLOWER
from impls.catalogue import name_of

FLAGGED_SHARE = 0.25
"""A median holds as long as half of its values are undisturbed; this leaves room."""

LAUNCH_SHARE = 0.9
"""A loop of calls waits for the host if submitting a call takes at least this share of the wall time."""

MEDIANS_APART = 1.05
"""A ratio from one process and that of the medians beside it may differ by so much without a word on it."""


@dataclass(frozen=True)
class Flag:
    """A letter and what it means; `advice` says what helps, if the meaning doesn't.

    `of_machine` is the sentence on the machine if rows have the flag, with a place for their number in words.
    """

    letter: str
    meaning: str
    advice: str = ""
    of_machine: str = ""


LAUNCH_BOUND = Flag(
    "L",
    "launch-bound: the host takes as long to submit a call as the device to do it",
    "a larger shape keeps the device busy",
)
THROTTLED = Flag("T", "the GPU held its clock down: see the column throttle", "cool it, or set a lower power limit")
OTHER_ACCURACY = Flag(
    "A",
    "another accuracy: it computes in int8 or FP8, and `--allow-error` lets it be further off than others; see the "
    "column error",
)
ONE_PROCESS = Flag("1", "one process only, so no interval")


def disturbed(threads: int) -> Flag:
    """Return the flag of a row that other processes disturbed; it advises fewer threads if there are several."""
    fewer = ", or use fewer threads" if threads > 1 else ""
    return Flag(
        "D",
        f"other processes were at work during a quarter of the samples or more: quiet the machine{fewer}",
        of_machine="Other processes disturbed a quarter of the samples or more in {}.",
    )


FLAGS = (disturbed(2), LAUNCH_BOUND, THROTTLED, OTHER_ACCURACY, ONE_PROCESS)
"""All flags; what helps against other processes is that for several threads."""


def flags(row: Row) -> list[Flag]:
    """Return the flags of a row that is ok."""
    of = kind(row["device"])
    raised = (
        (ONE_PROCESS, row["latency_low_s"] is None and row["slowdown_high"] is None),
        (disturbed(row["threads"] if of.has_cores else 1), (row["flagged_share"] or 0) >= FLAGGED_SHARE),
        (LAUNCH_BOUND, launch_bound(row)),
        (THROTTLED, row["throttle"]),
        (OTHER_ACCURACY, name_of(str(row["implementation"])).accuracy),
    )
    return [flag for flag, is_raised in raised if is_raised]


def legend(raised: Collection[Flag]) -> list[Flag]:
    """Return each letter once, in order, with its shortest meaning, which holds for all rows."""
    by_letter = {flag.letter: flag for flag in sorted(raised, key=lambda flag: -len(flag.meaning))}
    return sorted(by_letter.values(), key=lambda flag: flag.letter)


def launch_bound(row: Row) -> bool:
    """Return whether the host takes as long to submit a call as the device to do it; a CPU's case has no such time.

    A time of the host has both in it: there it is launch-bound if LAUNCH_SHARE of it is submission.
    """
    share = LAUNCH_SHARE if row["timing"] == HOST else 1.0
    return bool(row["host_s"] is not None and row["host_s"] >= share * row["latency_s"])


def is_opposed(row: Row, base: Row | None) -> bool:
    """Return whether medians contradict the ratio of a row to the baseline.

    A row is shown to be faster with a larger median, or slower with a smaller one. A ratio without an interval shows
    neither; it is contradicted if that of the medians differs by more than MEDIANS_APART.
    """
    if base is None or None in (row.get("speedup"), row.get("latency_s"), base.get("latency_s")):
        return False
    of, medians = pair(row, base), base["latency_s"] / row["latency_s"]
    if not of.times.is_known:
        return bool(max(medians / of.times.value, of.times.value / medians) > MEDIANS_APART)
    return of.verdict == FASTER if medians < 1 else of.verdict == SLOWER and medians > 1


def calls_until_paid(row: Row, others: Sequence[Row], baseline: str | None) -> float | None:
    """Return the number of calls after which compiling has paid, infinite if the compiled layer is slower.

    The gain is the difference to the uncompiled implementation, or to the baseline if that wasn't measured. Both times
    follow from their paired ratios to the baseline, if they have them.
    None if the layer wasn't compiled, if there is no row to compare it with, or if neither is shown to be faster.
    """
    if row["compile_cold_s"] is None or row["latency_s"] is None:
        return None
    measured = {other["implementation"]: other for other in others if other["status"] == "ok"}
    base = measured.get(baseline)
    plain = measured.get(name_of(str(row["implementation"])).compiled_from) or base
    if plain is None:
        return None
    of = pair(row, plain)
    if of.verdict != FASTER:
        return None if of.verdict == OPEN else math.inf
    return math.ceil(float(row["compile_cold_s"]) / (_paired_s(plain, base) * (1 - 1 / of.times.value)))


def _paired_s(row: Row, base: Row | None) -> float:
    """Return the seconds of a call by its ratio to the baseline, which noise moves less than the latency itself."""
    if base is None or row["speedup"] is None:
        return float(row["latency_s"])
    return float(base["latency_s"] / row["speedup"])
