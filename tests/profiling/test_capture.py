"""The calls of a profile, and their seconds."""

import itertools
import resource
from types import SimpleNamespace

import pytest

from bench.machine import facts, quiet
from bench.measure import clock, cuda
from bench.measure.devices import Device, device
from bench.plan.device import COLD, HOT
from bench.profiling import capture
from tests.make.simulated_gpu import Gpu, gpu

__all__ = ["gpu"]


def test_as_many_calls_are_profiled_as_fit_into_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain calls say how many, and three are the least. Each has its switches, and the load in a window before it."""
    made = list[int]()
    monkeypatch.setattr(capture, "WINDOW_S", 0.0)
    taken = capture.capture(lambda: made.append(1), "call", device("cpu"), "host", 1)
    assert (len(taken.calls), len(made)) == (capture.CALLS, capture.WARM_CALLS + 1 + 2 * capture.CALLS)
    assert 0 < min(taken.samples.values_s) < taken.profiled_s
    busy_s, switched = itertools.count(step=1e6), itertools.count(step=2)
    monkeypatch.setattr(facts, "busy_s", lambda: next(busy_s))
    monkeypatch.setattr(capture, "WINDOW_S", quiet.WINDOW_S)
    monkeypatch.setattr(resource, "getrusage", lambda _: SimpleNamespace(ru_nivcsw=next(switched)))
    monkeypatch.setattr(capture, "BUDGET_S", 0.0)
    taken = capture.capture(lambda: None, "call", device("cpu"), "host", 1)
    assert len(taken.calls) == capture.LEAST_CALLS
    assert taken.samples.switches == (2,) * capture.LEAST_CALLS
    assert min(taken.samples.others) > 1


@pytest.mark.parametrize("timing", [COLD, HOT])
def test_a_profile_on_a_gpu_is_timed_as_its_run(timing: str, gpu: Gpu) -> None:
    """By the timer of a way to time a call: the host's launches are in neither of its times."""

    class Timed(Device):
        def timer(self, timing: str) -> clock.Timer:
            return cuda.timer(timing)

    taken = capture.capture(gpu.call(4, 1e-5, 1e-4), "call", Timed("cpu"), timing, 1)
    assert [*taken.samples.values_s, taken.profiled_s] == pytest.approx([4e-5] * 16)
