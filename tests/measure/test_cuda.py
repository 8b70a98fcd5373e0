"""The timers of a GPU, on one that is made up."""

from collections.abc import Callable

import pytest

from bench.measure import cuda
from bench.measure.clock import Call, Timing, Void, timed
from bench.plan.device import COLD, GRAPH, HOST, HOT
from impls.contract import Unsupported
from tests.make.simulated_gpu import LAUNCH_S, Event, Gpu, gpu

__all__ = ["gpu"]

KERNELS, KERNEL_S = 4, 1e-5
WORK_S = KERNELS * KERNEL_S
"""The work of a call for the GPU."""


def by_events_alone(gpu: Gpu, call: Call) -> float:
    """Return what events around a call say without a hold."""
    start, end = Event(gpu), Event(gpu)
    start.record()
    call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3


@pytest.mark.parametrize("host_s", [1e-6, 5e-5, 5e-4])
@pytest.mark.parametrize(("timing", "overwritten"), [(HOT, 0), (COLD, 5), (GRAPH, 5)])
def test_device_times_are_those_of_the_gpu_alone(timing: str, overwritten: int, host_s: float, gpu: Gpu) -> None:
    """However long the host needs: without a hold the events have its time between them.

    The time of a cold call doesn't include the overwriting of L2 before it.
    """
    call = gpu.call(KERNELS, KERNEL_S, host_s)
    taken = timed(timer := cuda.timer(timing), call, 5)
    assert taken.call_s == pytest.approx(WORK_S)
    assert taken.host_s == pytest.approx(KERNELS * host_s)
    before = gpu.overwritten
    timed(timer, call, 5)
    assert gpu.overwritten - before == overwritten
    if host_s > KERNEL_S:
        assert by_events_alone(gpu, call) > 2 * WORK_S


def test_by_the_host_the_time_is_what_a_user_waits_for(gpu: Gpu) -> None:
    """Launches that the host has yet to make are in it, and the last work of the GPU."""
    taken = timed(cuda.timer(HOST), gpu.call(KERNELS, KERNEL_S, 1e-4), 1)
    assert taken == Timing(pytest.approx(KERNELS * 1e-4 + KERNEL_S), pytest.approx(KERNELS * 1e-4))  # type: ignore[arg-type]


def test_a_hold_that_was_too_short_is_found_and_becomes_longer(gpu: Gpu) -> None:
    """A host that is suddenly slow makes the timing void, never a longer time."""
    timer, pause = cuda.timer(COLD), iter([0.0, 5e-3, 5e-3])

    def call() -> None:
        gpu.launch(KERNEL_S)
        gpu.now_s += next(pause, 5e-3)
        gpu.launch(KERNEL_S)

    assert timed(timer, call).call_s == pytest.approx(2 * KERNEL_S)
    first_s = gpu.held_s
    assert timed(timer, call).call_s == pytest.approx(2 * KERNEL_S)
    assert gpu.held_s > 5e-3 > first_s


def test_a_gpu_that_was_idle_works_until_its_clock_has_risen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the first hold is a quarter as long as the host needs, and the timing void. A process does it once."""

    class Idle(Gpu):
        def launch(self, seconds: float, host_s: float = LAUNCH_S) -> None:
            self.slowed = 4.0 if self.now_s < cuda.WAKING_S / 10 else 1.0
            super().launch(seconds, host_s)

    gpu, made = Idle(), list[float]()
    gpu.put(monkeypatch)

    def call() -> None:
        gpu.launch(KERNEL_S, cuda.LEAST_HOLD_S / 2)
        made.append(gpu.now_s)

    cuda.timer(HOT)(call, 1)
    cuda.timer(HOT)(call, 1)
    assert made[1] - made[0] < cuda.WAKING_S / 2


@pytest.mark.parametrize("timing", [HOT, COLD])
def test_a_clock_that_changes_between_timings_changes_no_hold_unseen(timing: str, gpu: Gpu) -> None:
    """A GPU that is cool again works four times as fast, and ends a hold before all is queued: it is made longer."""
    timer, call = cuda.timer(timing), gpu.call(KERNELS, KERNEL_S, 2e-5)
    gpu.slowed = 4.0
    assert timed(timer, call).call_s == pytest.approx(4 * WORK_S)
    before_s, gpu.slowed = gpu.held_s, 1.0
    assert timed(timer, call).call_s == pytest.approx(WORK_S)
    assert gpu.held_s > before_s


def test_copies_of_results_that_are_queued_behind_a_timing_are_not_late(gpu: Gpu) -> None:
    """They are work of the current stream, and no part of the call."""

    class Kept:
        def __call__(self) -> None:
            gpu.launch(KERNEL_S)

        def keep(self, _result: object) -> None:
            gpu.launch(1e-3)

    timer = cuda.timer(GRAPH)
    assert timed(timer, Kept(), 2).call_s == pytest.approx(KERNEL_S)
    assert timer.late_s == 0


def test_the_peak_of_a_call_is_beyond_what_was_held(gpu: Gpu) -> None:
    """It doesn't include memory that was allocated for others before and given back."""
    memory, held = gpu.memory, 100 << 20
    memory.allocate(held + (300 << 20))
    memory.free(300 << 20)

    def call() -> None:
        memory.allocate(30_000_000)
        memory.free(20_000_000)
        memory.allocate(5_000_000)
        memory.free(15_000_000)

    call()
    assert cuda.peak_bytes(call, "cuda") == 30_000_000
    assert memory.allocated == held


@pytest.mark.parametrize("timing", [HOT, COLD])
def test_more_launches_than_fit_into_a_stream_mean_fewer_calls_behind_a_hold(timing: str, gpu: Gpu) -> None:
    """The host waits then, and the GPU is ahead of it."""
    timer = cuda.timer(timing)
    assert timed(timer, gpu.call(300, KERNEL_S), 16).call_s == pytest.approx(300 * KERNEL_S)
    assert timer.most_calls < 4


def test_a_call_that_waits_for_the_gpu_is_named(gpu: Gpu) -> None:
    """However long a hold is, the host waits for its end."""

    def call() -> None:
        gpu.launch(KERNEL_S)
        gpu.synchronize()
        gpu.launch(KERNEL_S)

    with pytest.raises(Unsupported, match=r"waits for the GPU.*--timing host"):
        timed(cuda.timer(COLD), call)


def test_the_results_of_all_calls_are_handed_over_once(gpu: Gpu) -> None:
    """Those of a timing that was void are not among them."""
    made: list[int] = []
    pause = iter([5e-3])

    def call() -> int:
        gpu.launch(KERNEL_S)
        gpu.now_s += next(pause, 0.0)
        made.append(len(made))
        return made[-1]

    results: list[object] = []
    timer = cuda.timer(HOT)
    while True:
        try:
            timer(call, 3, results)
            break
        except Void:
            assert results == []
    assert results == made[-3:]
    assert len(made) > 3


def _to_another_stream(gpu: Gpu, *, is_joined: bool) -> Callable[[float], Call]:
    """Return what makes calls that give another stream some seconds of work."""
    other = gpu.stream()

    def of(seconds: float) -> Call:
        def call() -> None:
            other.wait_stream(gpu.current)
            with gpu.on(other):
                gpu.launch(seconds)
            gpu.launch(KERNEL_S)
            if is_joined:
                gpu.current.wait_stream(other)

        return call

    return of


@pytest.mark.parametrize("seconds", [3e-5, 1e-3])
def test_work_that_goes_on_after_the_call_is_found(seconds: float, gpu: Gpu) -> None:
    """The GPU still works when the call's stream is done; work that is joined, or of one stream, is never late."""
    late_s = cuda.late_s(_to_another_stream(gpu, is_joined=False)(seconds), 16)
    assert late_s == pytest.approx(16 * (seconds - KERNEL_S), rel=0.5)
    assert cuda.late_s(_to_another_stream(gpu, is_joined=True)(seconds), 16) == 0
    assert cuda.late_s(gpu.call(10, seconds), 16) == 0
