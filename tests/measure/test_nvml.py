"""What NVML says about GPUs; without it nothing is claimed."""

import platform
import sys
import types
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch

from bench.measure import identity
from bench.measure import nvml as asked
from bench.measure.server import CaseWork
from tests.measure.stub import Announcements, put_nvml

NOTHING = {"clock_low_hz": None, "clock_high_hz": None, "power_w": None, "temperature_c": None, "throttle": ()}


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> types.SimpleNamespace:
    """Return a stand-in for NVML with one GPU at 1.98 GHz that nothing holds down."""
    return put_nvml(
        monkeypatch,
        NVML_CLOCK_SM=1,
        NVML_TEMPERATURE_GPU=0,
        nvmlDeviceGetClockInfo=lambda handle, kind: {("GPU-1234", 1): 1980}[handle, kind],
        nvmlDeviceGetPowerUsage=lambda handle: {"GPU-1234": 640_500}[handle],
        nvmlDeviceGetTemperature=lambda handle, kind: {("GPU-1234", 0): 61}[handle, kind],
        nvmlDeviceGetCurrentClocksThrottleReasons=lambda _handle: 0x01,
        nvmlSystemGetDriverVersion=lambda: "570.1",
    )


def test_a_worker_says_its_own_python_and_torch_and_the_driver(nvml: types.SimpleNamespace) -> None:
    """A worker of another interpreter than its parent's says so itself."""
    facts = identity.torch_facts()
    expected = (platform.python_version(), torch.__version__, "570.1")
    assert (facts["python"], facts["torch"], facts["driver"]) == expected


def test_the_states_of_a_gpu_are_ranges_in_whole_units_and_each_reason_is_named(nvml: types.SimpleNamespace) -> None:
    """That the GPU idled a moment ago slows nothing down; bits of a power cap and of heat are two names.

    A reason that was seen once stays, and so do the lowest clock, the highest power and the highest temperature.
    """
    states = asked.States("cuda")
    assert states.metrics == NOTHING
    states.read()
    expected = {"clock_low_hz": 1.98e9, "clock_high_hz": 1.98e9, "power_w": 640.5, "temperature_c": 61, "throttle": ()}
    assert states.metrics == expected
    nvml.nvmlDeviceGetClockInfo = lambda _handle, _kind: 1755
    nvml.nvmlDeviceGetPowerUsage = lambda _handle: 500_000
    nvml.nvmlDeviceGetTemperature = lambda _handle, _kind: 70
    for bits in (0x04, 0x40, 0x00):
        nvml.nvmlDeviceGetCurrentClocksThrottleReasons = lambda _handle, bits=bits: bits
        states.read()
    reasons = ("software power cap", "hardware thermal slowdown")
    assert states.metrics == {**expected, "clock_low_hz": 1.755e9, "temperature_c": 70, "throttle": reasons}


def test_what_one_gpu_does_not_say_leaves_the_rest(nvml: types.SimpleNamespace) -> None:
    """The slice of a GPU may have no power of its own."""
    nvml.nvmlDeviceGetPowerUsage = Mock(side_effect=nvml.NVMLError)
    assert states_read() == {
        **NOTHING, "clock_low_hz": 1.98e9, "clock_high_hz": 1.98e9, "temperature_c": 61,
    }  # fmt: skip


def states_read() -> dict[str, Any]:
    """Return what is known after the state was read once."""
    states = asked.States("cuda")
    states.read()
    return states.metrics


def test_without_an_answer_nothing_is_claimed(nvml: types.SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a GPU that is not there, an error of the driver nor a missing package is an error of the measurement."""
    monkeypatch.setattr(torch.cuda, "get_device_properties", Mock(side_effect=AssertionError("Invalid device id")))
    assert not asked.is_exclusive("cuda:7")
    known = asked.States("cuda:7")
    known.read()
    assert known.metrics == NOTHING
    nvml.nvmlInit = Mock(side_effect=nvml.NVMLError)
    assert states_read() == NOTHING
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert states_read() == NOTHING
    assert identity.torch_facts()["driver"] is None
    assert not asked.is_exclusive("cuda")


def test_a_gpu_that_one_process_holds_alone_is_a_mistake(
    nvml: types.SimpleNamespace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The line names it and its mode; in another mode, or if processes share it by MPS, there is none."""
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path))

    def mistakes() -> list[str]:
        request = {"implementations": [], "needed": [], "layers": [], "devices": ["cuda:0"]}
        reply: list[str] = CaseWork().check(request, Announcements())["mistakes"]
        return reply

    modes = {"GPU-1234": 3}
    nvml.nvmlDeviceGetComputeMode = lambda handle: modes[handle]
    (line,) = mistakes()
    assert "cuda:0" in line
    assert "EXCLUSIVE_PROCESS" in line
    (tmp_path / "control").touch()
    assert mistakes() == []
    (tmp_path / "control").unlink()
    modes["GPU-1234"] = 0
    assert mistakes() == []


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_real_gpu_has_a_clock() -> None:
    """Between 100 MHz and 5 GHz."""
    pytest.importorskip("pynvml")
    assert 1e8 < (states_read()["clock_low_hz"] or 0) < 5e9
