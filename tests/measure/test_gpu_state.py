"""What NVML says becomes a clock and reasons; without it nothing is claimed."""

import sys
import types
from pathlib import Path

import pytest
import torch

from bench.measure import gpu_state
from bench.measure.gpu_state import GpuState
from bench.measure.worker import Worker
from tests.measure.stub import Announcements


class NvmlError(Exception):
    """What NVML raises."""


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> types.SimpleNamespace:
    """Return a stand-in for NVML with one GPU at 1.98 GHz that nothing holds down."""
    found = types.SimpleNamespace(
        NVMLError=NvmlError,
        NVML_CLOCK_SM=1,
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByUUID=lambda uuid: uuid,
        nvmlDeviceGetClockInfo=lambda handle, kind: {("GPU-1234", 1): 1980}[handle, kind],
        nvmlDeviceGetCurrentClocksThrottleReasons=lambda _handle: 0x01,
    )
    monkeypatch.setitem(sys.modules, "pynvml", found)
    properties = types.SimpleNamespace(uuid="1234")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _device: properties)
    return found


def test_a_clock_is_in_hertz_and_an_idle_bit_is_no_throttle(nvml: types.SimpleNamespace) -> None:
    """1980 MHz are 1.98e9 Hz; that the GPU idled a moment ago slows nothing down."""
    assert gpu_state.read("cuda") == GpuState(clock_hz=1.98e9)


def test_each_reason_is_named(nvml: types.SimpleNamespace) -> None:
    """Bits of a power cap and of heat are two names."""
    nvml.nvmlDeviceGetCurrentClocksThrottleReasons = lambda _handle: 0x04 | 0x40
    assert gpu_state.read("cuda").throttle == ("software power cap", "hardware thermal slowdown")


def test_a_driver_that_does_not_answer_leaves_nothing_known(nvml: types.SimpleNamespace) -> None:
    """An error of NVML is no error of the measurement."""

    def fails() -> None:
        raise NvmlError

    nvml.nvmlInit = fails
    assert gpu_state.read("cuda") == GpuState()


def test_the_driver_is_named(nvml: types.SimpleNamespace) -> None:
    """The driver's version is part of a machine's identity."""
    nvml.nvmlSystemGetDriverVersion = lambda: "570.1"
    assert gpu_state.driver() == "570.1"


def test_a_gpu_that_one_process_holds_alone_is_a_mistake(
    nvml: types.SimpleNamespace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The line names it and its mode; in another mode, or if processes share it by MPS, there is none."""
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path))

    def mistakes() -> list[str]:
        request = {"implementations": [], "needed": [], "devices": ["cuda:0"]}
        reply: list[str] = Worker().check(request, Announcements())["mistakes"]
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


def test_a_gpu_that_is_not_there_is_not_exclusive(nvml: types.SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cases end with a reason of their own."""

    def get_device_properties(_device: str) -> None:
        raise AssertionError("Invalid device id")

    monkeypatch.setattr(torch.cuda, "get_device_properties", get_device_properties)
    assert not gpu_state.is_exclusive("cuda:7")


def test_without_the_package_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """NVML's package is wanted, not needed."""
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert gpu_state.read("cuda") == GpuState()
    assert gpu_state.driver() is None
    assert not gpu_state.is_exclusive("cuda")


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_real_gpu_has_a_clock() -> None:
    """Between 100 MHz and 5 GHz."""
    pytest.importorskip("pynvml")
    assert 1e8 < (gpu_state.read("cuda").clock_hz or 0) < 5e9
