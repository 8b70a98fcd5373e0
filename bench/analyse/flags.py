"""Flags of rows that are less certain than they look, and values that follow from the rows of a table."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from bench.analyse.rows import Row, pair
from bench.plan.device import HOST, HOT, kind
from bench.plan.verdicts import FASTER, OPEN, SLOWER
from impls.catalogue import accuracy, compiled_from

FAULT_S = 1e-6
"""Approximate cost of a page fault: 34,000 of them took 35 ms of an eager layer at N = 577."""

FAULT_SHARE = 0.01
"""The share of a latency from which page faults matter: half of the interval that a quick sweep aims at."""

MEMORY_BYTES, MEMORY_SHARE = 2 * 2**20, 0.05
"""A row is flagged if the allocator's and the system's peak differ by more than both of these."""

HUGE_BYTES = 8 * 2**20
"""A call that holds as much can have several huge pages, which have 2 MiB on most machines."""

SLOW_START, SETTLED_SLOW_START = 0.01, 0.1
"""On a machine with much noise no warm-up settles. Then the row is flagged if its first rounds took longer by more. One
whose warm-up settled may have a warm-up of its own that takes longer: 8 of 1,136 published rows pass the second."""

FLAGGED_SHARE = 0.25
"""A median holds as long as half of its values are undisturbed; this leaves room."""

LAUNCH_SHARE = 0.9
"""A loop of calls waits for the host if submitting a call takes at least this share of the wall time."""

SLOW_SPEED = 0.75
"""A row is flagged if the machine was at a smaller share of its highest known speed: nvbench leaves out samples below
this share of a GPU's clock."""

EVENTS_SHARE = 0.05
"""A row is flagged if two events are at least this part of its time, as 1 µs is of 20 µs."""

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


UNSETTLED = Flag(
    "U",
    "the first rounds are slower than the rest: much, or the warm-up had not settled",
    "measure again on a quiet machine, and longer if it warms up by itself",
)
FAULTS = Flag(
    "F",
    "page faults took about 1 % of the time or more: part of it belongs to the system",
    "--allocator retained helps, if it isn't set",
)
MEMORY = Flag("M", "the system saw another peak than the allocator: more than 2 MiB and 5 % apart")
NO_HUGE_PAGES = Flag(
    "H", "asked for huge pages and got none: its time is that of ordinary ones", "free some memory, and measure again"
)
SLOW = Flag(
    "S",
    "the machine was at less than 75 % of its highest known speed; ratios may differ at full speed",
    "end other programs, or measure when the machine is less busy",
    "In {} it ran at less than 75 % of the highest speed that was ever measured on it.",
)
SLOW_GPU = Flag(
    "S",
    "the GPU computed at less than 75 % of its highest known speed; ratios may differ at full speed",
    "end other programs on the GPU, or let it cool",
    SLOW.of_machine,
)
LAUNCH_BOUND = Flag(
    "L",
    "launch-bound: the host takes as long to submit a call as the device to do it",
    "a larger shape keeps the device busy",
)
EVENTS = Flag(
    "E",
    "two events with nothing between them take 5 % of its time or more, and are part of it: see the column event_s",
    "--timing device-hot has two for all calls of a timing",
)
THROTTLED = Flag("T", "the GPU held its clock down: see the column throttle", "cool it, or set a lower power limit")
OPPOSED = Flag(
    "R",
    "its median latency and its ratio to the baseline contradict each other: a median is of all its rounds, between "
    "which the machine's speed moved; the ratio, which counts, compares within each round",
)
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


FLAGS = (
    *(UNSETTLED, FAULTS, disturbed(2), MEMORY, NO_HUGE_PAGES, SLOW, LAUNCH_BOUND, EVENTS, THROTTLED, OPPOSED),
    *(OTHER_ACCURACY, ONE_PROCESS),
)
"""All flags; what helps against other processes is that for several threads."""


def flags(row: Row) -> list[Flag]:
    """Return the flags of a row that is ok."""
    system_bytes, allocator_bytes = row["system_peak_bytes"], row["peak_bytes"]
    both = system_bytes is not None and allocator_bytes is not None
    difference_bytes = abs(system_bytes - allocator_bytes) if both else 0
    held_bytes = row["memory_bytes"] or 0
    of = kind(row["device"])
    raised = (
        (ONE_PROCESS, row["latency_low_s"] is None and row["slowdown_high"] is None),
        (UNSETTLED, (row["slow_start"] or 0) > (SLOW_START if row["settled"] is False else SETTLED_SLOW_START)),
        (FAULTS, is_with_faults(row) and (row["page_faults"] or 0) * FAULT_S >= FAULT_SHARE * row["latency_s"]),
        (disturbed(row["threads"] if of.has_cores else 1), (row["flagged_share"] or 0) >= FLAGGED_SHARE),
        (SLOW if of.has_cores else SLOW_GPU, row["compute_speed"] is not None and row["compute_speed"] < SLOW_SPEED),
        (MEMORY, difference_bytes > max(MEMORY_BYTES, MEMORY_SHARE * held_bytes)),
        (NO_HUGE_PAGES, row["huge_bytes"] == 0 and held_bytes >= HUGE_BYTES),
        (LAUNCH_BOUND, launch_bound(row)),
        (EVENTS, _events_share(row) >= EVENTS_SHARE),
        (THROTTLED, row["throttle"]),
        (OPPOSED, row.get("is_opposed")),
        (OTHER_ACCURACY, accuracy(str(row["implementation"]))),
    )
    return [flag for flag, is_raised in raised if is_raised]


def is_with_faults(row: Row) -> bool:
    """Return whether a row's time is the host's, whose page faults are part of it."""
    return bool(row["timing"] == HOST)


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


def _events_share(row: Row) -> float:
    """Return the part of a row's time that its two events take; 0 where there are none."""
    calls = (row["calls_per_timing"] if row["timing"] == HOT else None) or 1
    return float(row["event_s"] / (calls * row["latency_s"])) if row["event_s"] else 0.0


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
    name = str(row["implementation"])
    plain = measured.get(compiled_from(name)) or base
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
