"""Pairs of calls, and the means of their seconds."""

from collections import Counter
from typing import Any

import pytest
from torch.autograd.profiler_util import FunctionEvent

from bench.machine import facts
from bench.measure import clock, cuda
from bench.measure.devices import Device, device
from bench.measure.recorded import Call
from bench.plan.device import COLD, HOT
from bench.profiling import capture
from bench.profiling.capture import Capture, Pair
from tests.make.simulated_gpu import Gpu, gpu

__all__ = ["gpu"]

EMPTY = Call(FunctionEvent(1, "call", 1, 0, 1), (), (), {})
"""A call in which nothing happened."""

NOBODY: Any = None
"""The profiler of a call that nobody made."""


def pair(profiled_s: float, faults: tuple[int, int] = (0, 0), switches: int = 0) -> Pair:
    """Return a pair of calls that nobody made, which took so long, faulted in so many pages and were interrupted."""
    return Pair(profiled_s / 2, profiled_s, faults, switches, EMPTY, Counter(), NOBODY)


@pytest.mark.parametrize(
    ("faults", "kept_s"),
    [([0, 5000, 0, 0], [1, 3, 4]), ([5000] * 9, [1, 2, 3, 4, 5, 6, 7, 8, 9]), ([5000] * 8 + [0], [9])],
)
def test_pairs_that_are_not_calm_are_made_again(
    faults: list[int], kept_s: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are nine pairs at most, and those that are not calm count only where there is no other."""
    monkeypatch.setattr(capture, "BUDGET_S", 0.0)
    planted = iter([pair(0), *(pair(number, (0, count)) for number, count in enumerate(faults, 1))])
    monkeypatch.setattr(capture, "_pair", lambda *_: next(planted))
    taken = capture.capture(lambda: None, "call", device("cpu"), "host")
    assert [each.profiled_s for each in taken.pairs] == kept_s
    assert next(planted, None) is None


@pytest.mark.parametrize("timing", [COLD, HOT])
def test_a_profile_on_a_gpu_is_timed_as_its_run(timing: str, gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the timer of a way to time a call: the host's launches are in neither of its times."""

    class Timed(Device):
        def timer(self, timing: str) -> clock.Timer:
            return cuda.timer(timing)

    monkeypatch.setattr(capture, "BUDGET_S", 0.0)
    taken = capture.capture(gpu.call(4, 1e-5, 1e-4), "call", Timed("cpu"), timing)
    assert [taken.timed_s, taken.profiled_s] == pytest.approx([4e-5] * 2)


def test_however_long_a_call_takes_there_are_three_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a profiler of its own."""
    monkeypatch.setattr(capture, "BUDGET_S", 0.0)
    taken = capture.capture(lambda: None, "the call", device("cpu"), "host")
    assert len({id(each.profiler) for each in taken.pairs}) == len(taken.pairs) == capture.LEAST_PAIRS


@pytest.mark.parametrize(
    ("profiled_s", "middle"),
    [
        ((3, 1, 2), [2]),
        ((5, 4, 3, 2, 1), [2, 3, 4]),
        ((90, 2, 1, 3), [2, 3]),
        ((8, 7, 6, 5, 4, 3, 2, 1), [3, 4, 5, 6]),
        ((1, 2, 3, 4.5, 90), [2, 3, 4.5]),
    ],
)
def test_the_middle_half_leaves_out_the_fastest_and_the_slowest(
    profiled_s: tuple[float, ...], middle: list[float]
) -> None:
    """As many are left out above as below, and the call that is kept is one of the middle.

    The means are those of the middle; without the profiler each call took half as long.
    """
    taken = Capture(tuple(pair(each) for each in profiled_s))
    assert [each.profiled_s for each in taken.middle_half] == middle
    assert taken.median in taken.middle_half
    assert taken.profiled_s == 2 * taken.timed_s == pytest.approx(sum(middle) / len(middle))


@pytest.mark.parametrize(
    ("faults", "switches", "comparable"),
    [
        ((0, 0), 0, True),
        ((0, 40), 0, True),
        ((0, 5000), 0, False),
        ((5000, 0), 0, False),
        ((34_000, 33_000), 0, True),
        ((0, 0), 20, True),
        ((0, 0), 40, False),
    ],
)
def test_a_pair_is_comparable_if_both_calls_fault_alike_and_nothing_interrupts_them(
    faults: tuple[int, int], switches: int, comparable: bool
) -> None:
    """Every call may fault thousands of pages in. In 1.5 s other processes may interrupt it as often as a sample."""
    assert pair(1.0, faults, switches).is_comparable is comparable


def test_the_work_of_other_processes_meanwhile_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cores were busy for much longer than this process used them."""
    monkeypatch.setattr(capture, "BUDGET_S", 0.0)
    busy_s = iter([0.0, 1e6])
    monkeypatch.setattr(facts, "busy_s", lambda: next(busy_s))
    assert capture.capture(lambda: None, "call", device("cpu"), "host").others_cores > 1
