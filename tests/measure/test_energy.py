"""The energy of a call, by counters that are stand-ins: no machine is asked to have one."""

import sys
import types
from pathlib import Path
from time import perf_counter

import pytest
import torch

from bench.measure import energy
from bench.measure.devices import Device
from tests.make.points import point
from tests.measure.stub import case, put_nvml


class Counted:
    """A device whose calls take a millisecond and a joule each; its counter moves every few of them."""

    def __init__(self, step: int = 7) -> None:
        self.calls = 0
        self.step = step

    def call(self) -> None:
        """Make a call."""
        self.calls += 1

    def seconds(self) -> float:
        """Return the time."""
        return self.calls * 1e-3

    def joules(self) -> float:
        """Return what the counter shows: nothing of the calls since its last step."""
        return float(self.calls // self.step * self.step)


def no_wait() -> None:
    """Wait for nothing: a CPU's calls end before they return."""


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Counted:
    """Return a device whose time is the time."""
    device = Counted()
    monkeypatch.setattr(energy, "perf_counter", device.seconds)
    return device


@pytest.mark.parametrize("step", [1, 7, 20, 100])
def test_a_call_of_a_joule_is_a_joule(device: Counted, step: int) -> None:
    """Whatever the steps of the counter are, the joules between two of them belong to the calls between them."""
    device.step = step
    assert energy.per_call_j(device.joules, device.call, 1e-3, no_wait) == pytest.approx(1.0, abs=0.05)
    assert device.calls >= energy.SPAN_S / 1e-3


def test_a_long_call_is_a_batch_of_its_own(device: Counted) -> None:
    """Calls longer than the span are made twice: before the first step and between the steps."""

    def call() -> None:
        device.calls += 3000

    assert energy.per_call_j(device.joules, call, 3.0, no_wait) == pytest.approx(3000, rel=0.01)
    assert device.calls == 2 * 3000


def test_a_counter_that_stands_still_tells_nothing(device: Counted) -> None:
    """The counter is given up after a second of calls, and the energy is empty, not 0."""
    assert energy.per_call_j(lambda: 5.0, device.call, 1e-3, no_wait) is None
    assert device.seconds() < 2 * energy.STILL_S


@pytest.mark.slow
def test_a_case_takes_the_energy_of_its_calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With a counter of 50 W, only the first replicate has the joules of its calls, at the end of its rounds."""
    counters = (None, True), (lambda: 50 * perf_counter(), True), (lambda: 50 * perf_counter(), False)
    for counter, is_first in counters:
        monkeypatch.setattr(Device, "energy_counter", lambda _, counter=counter: counter)
        with case(point(), "sdpa", tmp_path, thorough=is_first) as process:
            assert "energy_j" not in process.prepare()["metrics"]
            process.sample()
            reply = process.finish()
            assert reply["status"] == "ok"
            is_counted = counter is not None and is_first
            assert (reply["metrics"].get("energy_j", 0.0) > 0) == is_counted
            assert (process.channel.stages[-1] == "energy") == is_counted


# A GPU's board


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> types.SimpleNamespace:
    """Return a stand-in for NVML with one GPU that has taken 1,500 mJ."""
    return put_nvml(monkeypatch, nvmlDeviceGetTotalEnergyConsumption=lambda handle: {"GPU-1234": 1500}[handle])


def test_the_calls_of_a_batch_have_ended_when_the_board_is_read(nvml: types.SimpleNamespace, device: Counted) -> None:
    """The device is synchronised after each batch, so that its calls are in what the counter shows."""
    waited: list[int] = []
    nvml.nvmlDeviceGetTotalEnergyConsumption = lambda _handle: 1000 * waited[-1] if waited else 0
    read = energy.of_gpu("cuda")
    assert read is not None
    assert energy.per_call_j(read, device.call, 1e-3, lambda: waited.append(device.calls)) == pytest.approx(1.0)
    assert set(range(10, device.calls + 1, 10)) == set(waited)


def test_a_board_is_read_in_joules_if_nvml_tells_them(
    nvml: types.SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NVML counts millijoules. An old GPU or a slice of one has no such counter; NVML's package may be missing."""
    read = energy.of_gpu("cuda")
    assert read is not None
    assert read() == 1.5

    def fails(_handle: str) -> int:
        raise nvml.NVMLError

    nvml.nvmlDeviceGetTotalEnergyConsumption = fails
    assert energy.of_gpu("cuda") is None
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert energy.of_gpu("cuda") is None


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_real_gpu_takes_between_an_idle_and_a_full_load() -> None:
    """Matrix products take between 20 W and 2 kW."""
    read = energy.of_gpu("cuda")
    if read is None:
        pytest.skip("this GPU has no energy counter")
    factor = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    joules = 1000 * (energy.per_call_j(read, lambda: factor @ factor, 1e-4, torch.cuda.synchronize) or 0)
    torch.cuda.synchronize()
    start = perf_counter()
    for _ in range(1000):
        factor @ factor
    torch.cuda.synchronize()
    seconds = perf_counter() - start
    assert 20 < joules / seconds < 2000
