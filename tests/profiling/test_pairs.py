"""Pairs of calls, and what stands for all of them."""

import pytest

from bench.profiling.pairs import Capture
from tests.profiling.planted import pair


def made(*profiled_s: float) -> Capture:
    """Return a capture whose calls took so long under the profiler, and half of it without."""
    return Capture(tuple(pair(each) for each in profiled_s))


def test_a_delayed_call_is_passed_over() -> None:
    """One in five changes neither latency, and what remains is the mean of the middle."""
    taken = made(1, 2, 3, 4.5, 90)
    assert taken.profiled_s == pytest.approx(9.5 / 3)
    assert taken.timed_s == pytest.approx(9.5 / 6)


@pytest.mark.parametrize(
    ("profiled_s", "middle"),
    [((3, 1, 2), [2]), ((5, 4, 3, 2, 1), [2, 3, 4]), ((90, 2, 1, 3), [2, 3]), ((8, 7, 6, 5, 4, 3, 2, 1), [3, 4, 5, 6])],
)
def test_the_middle_half_leaves_out_the_fastest_and_the_slowest(
    profiled_s: tuple[float, ...], middle: list[float]
) -> None:
    """As many are left out above as below, and the call that is kept is one of the middle."""
    taken = made(*profiled_s)
    assert [pair.profiled_s for pair in taken.middle_half] == middle
    assert taken.median in taken.middle_half


@pytest.mark.parametrize(
    ("faults", "comparable"),
    [((0, 0), True), ((0, 40), True), ((0, 5000), False), ((5000, 0), False), ((34_000, 33_000), True)],
)
def test_a_pair_is_comparable_if_both_calls_fault_alike(faults: tuple[int, int], comparable: bool) -> None:
    """A few pages are nobody's fault, and where every call faults thousands in, both do."""
    assert pair(1.0, faults).is_comparable is comparable
