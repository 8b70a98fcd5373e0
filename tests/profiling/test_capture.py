"""The calls of a profile, and their seconds."""

import pytest

from bench.machine import facts
from bench.measure import clock, cuda
from bench.measure.devices import Device, device
from bench.plan.device import COLD, HOT
from bench.profiling import capture
from tests.make.simulated_gpu import Gpu, gpu

__all__ = ["gpu"]


def test_as_many_calls_are_profiled_as_fit_into_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain calls say how many, and three are the least; what others used meanwhile is known."""
    made = list[int]()
    taken = capture.capture(lambda: made.append(1), "call", device("cpu"), "host")
    assert (len(taken.calls), len(made)) == (capture.CALLS, capture.WARM_CALLS + 1 + 2 * capture.CALLS)
    assert 0 < taken.timed_s < taken.profiled_s
    busy_s = iter([0.0, 1e6])
    monkeypatch.setattr(facts, "busy_s", lambda: next(busy_s))
    monkeypatch.setattr(capture, "BUDGET_S", 0.0)
    taken = capture.capture(lambda: None, "call", device("cpu"), "host")
    assert len(taken.calls) == capture.LEAST_CALLS
    assert taken.others_cores > 1


@pytest.mark.parametrize("timing", [COLD, HOT])
def test_a_profile_on_a_gpu_is_timed_as_its_run(timing: str, gpu: Gpu) -> None:
    """By the timer of a way to time a call: the host's launches are in neither of its times."""

    class Timed(Device):
        def timer(self, timing: str) -> clock.Timer:
            return cuda.timer(timing)

    taken = capture.capture(gpu.call(4, 1e-5, 1e-4), "call", Timed("cpu"), timing)
    assert [taken.timed_s, taken.profiled_s] == pytest.approx([4e-5] * 2)
