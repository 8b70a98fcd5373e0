"""The devices as torch knows them; the GPU is one that is made up."""

from collections.abc import Callable

import pytest
import torch

from bench.measure import clock, cuda
from bench.measure.devices import Device, Gpu, device
from bench.plan.device import COLD, GRAPH, HOST, HOT
from tests.make import simulated_gpu
from tests.make.simulated_gpu import CLOCK_HZ, gpu
from tests.measure.stub import put_nvml

__all__ = ["gpu"]


def test_a_device_is_made_of_its_name_once() -> None:
    """A number makes another one."""
    assert type(device("cpu")) is Device
    assert device("cuda") is device("cuda")
    assert (Gpu("cuda").index, Gpu("cuda:1").index) == (0, 1)


@pytest.mark.parametrize(
    ("count", "name", "says"),
    [(0, "cuda", "sees none"), (2, "cuda:7", "no device cuda:7: this machine has 2 CUDA"), (2, "cuda:1", "")],
)
def test_a_gpu_that_is_not_there_is_an_obstacle(
    count: int, name: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text names the device and what there is."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    assert says in device(name).obstacle
    assert bool(says) is bool(device(name).obstacle)


def test_a_gpu_is_asked_nothing_before_it_was_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question would begin to use it, after which this process could no more be forked."""
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    monkeypatch.setattr(torch.cuda, "synchronize", _unasked)
    monkeypatch.setattr(torch.cuda, "mem_get_info", _unasked)
    assert not device("cuda").is_lost()
    assert device("cuda").free_bytes() is None


def _unasked(*_: object) -> None:
    raise AssertionError("CUDA was asked")


def test_free_memory_is_what_the_allocator_has_not_reserved(gpu: simulated_gpu.Gpu) -> None:
    """Of another process's view: what is freed comes back when the allocator's cache is emptied."""
    size = gpu.memory.size
    gpu.memory.allocate(3 << 30)
    gpu.memory.free(2 << 30)
    assert device("cuda").free_bytes() == size - (3 << 30)
    torch.cuda.empty_cache()
    assert device("cuda").free_bytes() == size - (1 << 30)


@pytest.mark.parametrize("fault", [lambda gpu: gpu.ruin(), lambda gpu: gpu.launch(1.0)])
def test_a_gpu_is_lost_once_it_no_more_answers(
    fault: Callable[[simulated_gpu.Gpu], None], gpu: simulated_gpu.Gpu
) -> None:
    """One that works for long is not."""
    fault(gpu)
    assert device("cuda").is_lost() is gpu.is_lost


def test_the_state_of_a_gpu_is_that_of_the_moment(gpu: simulated_gpu.Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU that got hot between two samples has another clock in the second, and the reason."""
    put_nvml(
        monkeypatch,
        NVML_CLOCK_SM=1,
        nvmlDeviceGetClockInfo=lambda _handle, _kind: CLOCK_HZ / gpu.slowed / 1e6,
        nvmlDeviceGetCurrentClocksThrottleReasons=lambda _handle: 0x20 if gpu.slowed > 1 else 0,
    )
    timer, call, on = device("cuda").timer(COLD), gpu.call(), device("cuda")
    seconds, states = [], []
    for gpu.slowed in (1.0, 1.5):
        seconds.append(clock.timed(timer, call).call_s)
        states.append(on.state())
    assert seconds[1] == pytest.approx(1.5 * seconds[0])
    assert states == [
        {"clock_hz": CLOCK_HZ, "throttle": ()},
        {"clock_hz": CLOCK_HZ / 1.5, "throttle": ("software thermal slowdown",)},
    ]


@pytest.mark.parametrize(("timing", "call_s"), [(HOST, 1e-3 + 1e-5), (HOT, 1e-5), (COLD, 1e-5), (GRAPH, 1e-5)])
def test_a_gpu_has_a_timer_for_each_way_to_time_a_call(timing: str, call_s: float, gpu: simulated_gpu.Gpu) -> None:
    """That by the host has the host's time in it, the others have none of it."""
    taken = clock.timed(device("cuda").timer(timing), gpu.call(kernel_s=1e-5, host_s=1e-3))
    assert taken.call_s == pytest.approx(call_s)
    assert taken.host_s == pytest.approx(1e-3)


def test_a_cpu_has_no_queue_no_state_and_no_memory_of_its_own() -> None:
    """So nothing is held, and nothing of it can be lost."""
    cpu = device("cpu")
    assert (cpu.state(), cpu.free_bytes(), cpu.is_lost(), cpu.peak_bytes(lambda: None)) == ({}, None, False, None)
    assert cpu.timer(HOST) is clock.host
    assert clock.host.hold(cuda._nothing) is False
