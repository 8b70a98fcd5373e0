"""The clock: timings on a CPU and on a GPU that is made up, the warm-up, and a sample."""

import mmap
import time
from collections.abc import Callable

import pytest
import torch

from bench.measure import clock
from bench.measure.clock import Pace

on_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


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
    assert 0 < clock.overhead_s() < 1e-4


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
        monkeypatch.setattr(clock, "synchronize", device.synchronize)
        monkeypatch.setattr(clock, "perf_counter", lambda: device.now_s)
        monkeypatch.setattr(clock, "_l2_buffer", lambda _device: device)
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
    assert clock.timer("cuda", timing)(device.call, 4) == pytest.approx(1e-3)
    assert device.overwritten == overwritten


def test_the_hosts_time_of_a_call_is_that_of_its_submission(on: Callable[[Device], Device]) -> None:
    """The host's time doesn't wait for the device."""
    device = on(Device(seen_s=1.0, host_s=2e-5))
    assert clock.host_s(device.call) == pytest.approx(2e-5)


@pytest.mark.parametrize(("unseen_s", "late_s"), [(3e-3, 2e-3), (1e-3, 0.0), (0.0, 0.0)])
def test_work_on_another_stream_is_late(unseen_s: float, late_s: float, on: Callable[[Device], Device]) -> None:
    """Late work is what the device still does after an event on the current stream has ended."""
    device = on(Device(unseen_s=unseen_s))
    assert clock.late_s(device.call) == pytest.approx(late_s)


@pytest.mark.cuda
@on_cuda
@pytest.mark.parametrize("timing", ["host", "device-hot", "device-cold"])
def test_cuda_timers_see_the_work_of_the_device(timing: str) -> None:
    """A product of 4096² matrices takes longer than one of 256², by every timer."""
    small, large = (torch.randn(n, n, device="cuda") for n in (256, 4096))
    timer = clock.timer("cuda", timing)
    timer(lambda: large @ large, 3)
    assert timer(lambda: large @ large, 3) > timer(lambda: small @ small, 3)


@pytest.mark.cuda
@on_cuda
def test_the_host_submits_a_large_product_in_less_time_than_the_device_needs() -> None:
    """A product of 8192² matrices takes a GPU milliseconds and the host microseconds."""
    large = torch.randn(8192, 8192, device="cuda")
    timer = clock.timer("cuda", "device-hot")
    timer(lambda: large @ large, 3)
    assert clock.host_s(lambda: large @ large) < timer(lambda: large @ large, 3) / 2


@pytest.mark.parametrize(
    ("values_s", "clock_s", "calls", "settled"),
    [
        pytest.param([2e-3], 1e-7, 1, True, id="constant"),
        pytest.param([1e15 * 0.9**n for n in range(400)], 1e-7, 1, False, id="faster and faster"),
        pytest.param([30e-6], 1e-7, 34, True, id="a timing lasts a millisecond"),
        pytest.param([1e-3], 1e-5, 10, True, id="or a thousand readings of a slow clock"),
        pytest.param([1.0, *[1e-5] * 400], 1e-7, 100, True, id="a cold first call"),
    ],
)
def test_a_warm_up_ends_when_two_windows_agree(
    values_s: list[float], clock_s: float, calls: int, settled: bool
) -> None:
    """The warm-up leaves the pace of the warm call, whose timings are long enough for the clock."""
    times_s = iter(values_s)
    pace = clock.warm_up(lambda: None, lambda *_: next(times_s, values_s[-1]), clock_s)
    assert (pace.calls, pace.settled) == (calls, settled)
    assert not settled or pace == Pace(calls, values_s[-1], True)


@pytest.mark.parametrize(
    ("values_s", "limits", "settled"),
    [
        pytest.param(
            [0.010, 0.011, 0.012, 0.013, 0.014, 0.015], {"most_s": 0.0}, False, id="no time leaves two windows"
        ),
        pytest.param([0.06], {"previous_s": 0.06}, True, id="a long call that took as long in its check"),
        pytest.param([0.06, 0.06], {"previous_s": 0.09}, True, id="a long call that was slower in its check"),
    ],
)
def test_a_warm_up_makes_no_more_timings_than_it_needs(
    values_s: list[float], limits: dict[str, float], settled: bool
) -> None:
    """All of these timings are made, and no other."""
    times_s = iter(values_s)
    assert clock.warm_up(lambda: None, lambda *_: next(times_s), 1e-7, **limits).settled is settled
    assert next(times_s, None) is None


def test_a_sample_counts_its_timings_and_its_page_faults() -> None:
    """A call that touches fresh pages shows as minor page faults of the sample."""
    calls = 0

    def call() -> None:
        nonlocal calls
        calls += 1
        with mmap.mmap(-1, 1 << 22) as fresh:
            fresh.write(bytes(1 << 22))

    taken = clock.sample(call, clock.timer("cpu", "host"), calls=2, timings=3)
    assert calls == 6
    assert len(taken.timings_s) == 3
    assert taken.faults >= 6 * (1 << 22) // 4096 * 0.9
