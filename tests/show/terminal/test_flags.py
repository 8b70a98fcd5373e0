"""What makes a row less certain than it looks."""

from typing import Any

import pytest

from bench.show.terminal.flags import flags, legend

SURE: dict[str, Any] = {
    "latency_s": 0.1, "latency_low_s": 0.099, "latency_high_s": 0.101, "speedup_low": 1.19, "speedup_high": 1.21,
    "settled": True, "slow_start": 0.0, "page_faults": 0.0, "flagged_share": 0.0, "host_s": None, "throttle": None,
    "threads": 2, "memory_bytes": 100 * 2**20, "peak_bytes": 100 * 2**20, "system_peak_bytes": None,
    "huge_bytes": None, "compute_speed": 0.95,
}  # fmt: skip


def letters(**changes: object) -> str:
    """Return the letters of a row that is sure but for these changes."""
    return "".join(flag.letter for flag in flags({**SURE, **changes}))


@pytest.mark.parametrize(
    ("changes", "letter"),
    [
        ({"settled": False, "slow_start": 0.02}, "U"),
        ({"settled": False, "slow_start": None}, "U"),
        ({"page_faults": 34_000.0}, "F"),
        ({"flagged_share": 0.5}, "D"),
        ({"system_peak_bytes": 110 * 2**20}, "M"),
        ({"huge_bytes": 0}, "H"),
        ({"compute_speed": 0.7}, "S"),
        ({"host_s": 0.1}, "L"),
        ({"throttle": "software power cap"}, "T"),
        ({"latency_low_s": None, "slowdown_high": None}, "1"),
    ],
)
def test_each_doubt_has_a_letter(changes: dict[str, object], letter: str) -> None:
    """Drift, faults, neighbour, memory, huge pages, speed, launches, clock, one process: each has its own."""
    assert letters(**changes) == letter


@pytest.mark.parametrize(
    "changes",
    [
        {"page_faults": 400.0},
        {"flagged_share": 0.05},
        {"page_faults": None, "flagged_share": None, "settled": None},
        {"system_peak_bytes": 104 * 2**20},
        {"peak_bytes": 2**20, "memory_bytes": 2**20, "system_peak_bytes": 3 * 2**20},
        {"peak_bytes": None, "system_peak_bytes": 100 * 2**20},
        {"huge_bytes": 2 * 2**20},
        {"compute_speed": 0.8},
        {"compute_speed": None},
        {"huge_bytes": 0, "memory_bytes": 2**20},
        {"host_s": 0.01},
        {"latency_low_s": None, "slowdown_high": 1.3},
        {},
    ],
)
def test_what_hardly_matters_is_not_marked(changes: dict[str, object]) -> None:
    """A fault for every 0.25 ms, a few interrupted samples, 4 % or 2 MiB of memory, missing numbers: no flag.

    Nor for four fifths of the speed, for a single huge page, or for none if the memory is small.
    """
    assert letters(**changes) == ""


UNSETTLED = {**SURE, "settled": False, "slow_start": 0.1}


def test_the_legend_explains_each_letter_once() -> None:
    """However many rows share a flag, it is explained in one line, with its advice."""
    found = legend([*flags(UNSETTLED), *flags({**UNSETTLED, "flagged_share": 1.0})])
    assert [flag.letter for flag in found] == ["D", "U"]
    assert all(len(flag.meaning) > 20 for flag in found)


def test_fewer_threads_are_advised_only_if_there_are_two() -> None:
    """One thread can't become fewer; and if rows of both kinds were disturbed, what helps all of them is said."""
    one, two = (flags({**SURE, "flagged_share": 0.5, "threads": threads}) for threads in (1, 2))
    assert ["fewer threads" in flag.meaning for flag in (*one, *two)] == [False, True]
    assert legend([*one, *two]) == one
