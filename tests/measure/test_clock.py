"""The clock."""

import time
import types

import pytest
import torch

from bench.measure import clock


def test_a_timing_is_seconds_per_call() -> None:
    """A timing of five calls that each wait 2 ms says at least 2 ms, and counts all five."""
    count = 0

    def call() -> None:
        nonlocal count
        count += 1
        end = time.perf_counter() + 2e-3
        while time.perf_counter() < end:
            pass

    assert clock.timer("cpu", "host")(call, 5) >= 2e-3
    assert count == 5


def test_the_clocks_own_cost_is_known_and_small() -> None:
    """Sample the clock costs more than nothing and less than a tenth of a millisecond."""
    assert 0 < clock.overhead_s() < 1e-4


@pytest.mark.parametrize("timing", ["device-hot", "device-cold"])
def test_the_cpu_has_no_device_timing(timing: str) -> None:
    """Asking the CPU for CUDA events is refused, not silently answered with wall time."""
    with pytest.raises(ValueError, match="needs a CUDA device"):
        clock.timer("cpu", timing)


class Device:
    """A device with a stream that events see and another one, and a clock that moves while somebody waits for it."""

    def __init__(self, unseen_s: float) -> None:
        self.now_s = 0.0
        self._of_call_s = (1e-3, unseen_s)
        self._ends_s = (0.0, 0.0)

    def call(self) -> None:
        """Submit 1 ms to the stream that events see, and `unseen_s` to the other one."""
        self._ends_s = (self.now_s + self._of_call_s[0], self.now_s + self._of_call_s[1])

    def synchronize(self) -> None:
        """Wait for both."""
        self.now_s = max(self.now_s, *self._ends_s)

    def event(self) -> types.SimpleNamespace:
        """Return an event, which waits for the stream that it sees, while the other one goes on."""

        def synchronize() -> None:
            self.now_s = max(self.now_s, self._ends_s[0])

        return types.SimpleNamespace(record=lambda: None, synchronize=synchronize)


@pytest.mark.parametrize(("unseen_s", "late_s"), [(3e-3, 2e-3), (1e-3, 0.0), (0.0, 0.0)])
def test_work_on_another_stream_is_late(monkeypatch: pytest.MonkeyPatch, unseen_s: float, late_s: float) -> None:
    """It is what the device still does after an event on the current stream has ended."""
    device = Device(unseen_s)
    monkeypatch.setattr(clock, "synchronize", device.synchronize)
    monkeypatch.setattr(clock, "perf_counter", lambda: device.now_s)
    monkeypatch.setattr(torch.cuda, "Event", device.event)
    assert clock.late_s(device.call) == pytest.approx(late_s)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("timing", ["host", "device-hot", "device-cold"])
def test_cuda_timers_see_the_work_of_the_device(timing: str) -> None:
    """A product of 4096² matrices takes longer than one of 256², by every timer."""
    small, large = (torch.randn(n, n, device="cuda") for n in (256, 4096))
    timer = clock.timer("cuda", timing)
    timer(lambda: large @ large, 3)
    assert timer(lambda: large @ large, 3) > timer(lambda: small @ small, 3)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_the_host_submits_a_large_product_in_less_time_than_the_device_needs() -> None:
    """A product of 8192² matrices takes a GPU milliseconds and the host microseconds."""
    large = torch.randn(8192, 8192, device="cuda")
    timer = clock.timer("cuda", "device-hot")
    timer(lambda: large @ large, 3)
    assert clock.host_s(lambda: large @ large) < timer(lambda: large @ large, 3) / 2
