"""The timers of a GPU, on one that is made up."""

from collections.abc import Callable
from contextlib import nullcontext

import pytest
import torch

from bench.measure import cuda

on_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


class Device:
    """A GPU with a stream that events see and another one, in which time passes only by its work and by the host's."""

    def __init__(self, seen_s: float = 1e-3, unseen_s: float = 0.0, host_s: float = 0.0) -> None:
        self.now_s = 0.0
        self.overwritten = 0
        self._of_call_s = (seen_s, unseen_s)
        self._host_s = host_s
        self._ends_s = [0.0, 0.0]

    def call(self) -> None:
        """Submit work to both streams, which takes the host a while."""
        self.now_s += self._host_s
        self._submit(*self._of_call_s)

    def zero_(self) -> None:
        """Submit the overwriting of L2, 5 ms."""
        self.overwritten += 1
        self._submit(5e-3, 0.0)

    def synchronize(self) -> None:
        """Wait for both streams."""
        self.now_s = max(self.now_s, *self._ends_s)

    def event(self, **_options: bool) -> "Event":
        """Return an event of the stream that events see."""
        return Event(self)

    def ended_s(self) -> float:
        """Return when the work that events see will have ended."""
        return max(self.now_s, self._ends_s[0])

    def _submit(self, *seconds: float) -> None:
        self._ends_s = [max(self.now_s, end_s) + each for end_s, each in zip(self._ends_s, seconds, strict=True)]


class Event:
    """A CUDA event: recorded, it has the time at which the work before it ends."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self.at_s = 0.0

    def record(self) -> None:
        """Submit the event."""
        self.at_s = self._device.ended_s()

    def synchronize(self) -> None:
        """Wait for the event, while the other stream goes on."""
        self._device.now_s = max(self._device.now_s, self.at_s)

    def elapsed_time(self, end: "Event") -> float:
        """Return the milliseconds to a later event."""
        return (end.at_s - self.at_s) * 1e3


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> Callable[[Device], Device]:
    """Return a function that puts a device in place of CUDA's."""

    def put(device: Device) -> Device:
        monkeypatch.setattr(cuda, "synchronize", device.synchronize)
        monkeypatch.setattr(cuda, "perf_counter", lambda: device.now_s)
        monkeypatch.setattr(cuda, "_l2_buffer", lambda _device: device)
        monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
        monkeypatch.setattr(torch.cuda, "Event", device.event)
        return device

    return put


@pytest.mark.parametrize(("timing", "overwritten"), [("device-hot", 0), ("device-cold", 4), ("host", 0)])
def test_device_times_are_those_of_the_calls_alone(
    timing: str, overwritten: int, on: Callable[[Device], Device]
) -> None:
    """A call has 1 ms of work. Before each cold call L2 is overwritten, which is not part of the time."""
    device = on(Device())
    assert cuda.timer(timing)(device.call, 4) == pytest.approx(1e-3)
    assert device.overwritten == overwritten


def test_the_hosts_time_of_a_call_is_that_of_its_submission(on: Callable[[Device], Device]) -> None:
    """The host's time doesn't wait for the device."""
    device = on(Device(seen_s=1.0, host_s=2e-5))
    assert cuda.host_s(device.call) == pytest.approx(2e-5)


@pytest.mark.parametrize(("unseen_s", "late_s"), [(3e-3, 2e-3), (1e-3, 0.0), (0.0, 0.0)])
def test_work_on_another_stream_is_late(unseen_s: float, late_s: float, on: Callable[[Device], Device]) -> None:
    """Late work is what the device still does after an event on the current stream has ended."""
    device = on(Device(unseen_s=unseen_s))
    assert cuda.late_s(device.call) == pytest.approx(late_s)


@pytest.mark.parametrize("held", [100, 0])
def test_a_peak_that_the_allocator_does_not_count_is_an_error(held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The peak is what a call adds to what is held; where not even its inputs are counted, the error says so."""
    now = {"allocated": held, "reserved": 4 * held, "max_allocated": 0, "max_reserved": 0}

    def call() -> None:
        if held:
            now.update(max_allocated=held + 30, max_reserved=4 * held + 50)

    for name in ("allocated", "reserved", "max_allocated", "max_reserved"):
        function = f"max_memory_{name[4:]}" if name.startswith("max_") else f"memory_{name}"
        monkeypatch.setattr(torch.cuda, function, lambda _device, name=name: now[name])
    for name in ("empty_cache", "reset_peak_memory_stats"):
        monkeypatch.setattr(torch.cuda, name, lambda *_: None)
    monkeypatch.setattr(cuda, "synchronize", lambda _device: None)
    with nullcontext() if held else pytest.raises(RuntimeError, match="PYTORCH_NO_CUDA_MEMORY_CACHING"):
        assert cuda.peak_bytes(call, "cuda") == (30, 50)


@pytest.mark.cuda
@on_cuda
@pytest.mark.parametrize("timing", ["host", "device-hot", "device-cold"])
def test_cuda_timers_see_the_work_of_the_device(timing: str) -> None:
    """A product of 4096² matrices takes longer than one of 256², by every timer."""
    small, large = (torch.randn(n, n, device="cuda") for n in (256, 4096))
    timer = cuda.timer(timing)
    timer(lambda: large @ large, 3)
    assert timer(lambda: large @ large, 3) > timer(lambda: small @ small, 3)


@pytest.mark.cuda
@on_cuda
def test_the_host_submits_a_large_product_in_less_time_than_the_device_needs() -> None:
    """A product of 8192² matrices takes a GPU milliseconds and the host microseconds."""
    large = torch.randn(8192, 8192, device="cuda")
    timer = cuda.timer("device-hot")
    timer(lambda: large @ large, 3)
    assert cuda.host_s(lambda: large @ large) < timer(lambda: large @ large, 3) / 2
