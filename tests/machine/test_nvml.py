"""What NVML says about GPUs, and who uses them; without it nothing is claimed."""

import os
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from bench.machine import nvml
from bench.machine.nvml import Gpu, States

GIB = 2**30
A_GPU = Gpu("cuda:0", "A GPU", 80 * GIB, 79 * GIB, 0.0, ())
NOTHING = {"clock_low_hz": None, "clock_high_hz": None, "power_w": None, "temperature_c": None, "throttle": ()}


def put_nvml(monkeypatch: pytest.MonkeyPatch, *running: list[int], **others: Any) -> SimpleNamespace:
    """Put a stand-in for NVML in its place, with a GPU for each list of processes that run on it."""
    stand_in = SimpleNamespace(
        NVML_CLOCK_SM=1,
        NVML_TEMPERATURE_GPU=0,
        nvmlInit=lambda: None,
        nvmlDeviceGetCount=lambda: len(running),
        nvmlDeviceGetHandleByIndex=lambda number: number,
        nvmlDeviceGetHandleByUUID=lambda uuid: int(uuid.removeprefix("GPU-")),
        nvmlDeviceGetName=lambda handle: f"GPU number {handle}",
        nvmlDeviceGetMemoryInfo=lambda _handle: SimpleNamespace(total=80 * GIB, free=79 * GIB),
        nvmlDeviceGetComputeRunningProcesses=lambda handle: [SimpleNamespace(pid=pid) for pid in running[handle]],
        nvmlDeviceGetClockInfo=lambda handle, kind: {(0, 1): 1980}[handle, kind],
        nvmlDeviceGetPowerUsage=lambda _handle: 640_500,
        nvmlDeviceGetTemperature=lambda handle, kind: {(0, 0): 61}[handle, kind],
        nvmlDeviceGetCurrentClocksThrottleReasons=lambda _handle: 0x01,
        nvmlDeviceGetComputeMode=lambda _handle: 3,
        nvmlDeviceGetTotalEnergyConsumption=lambda _handle: 1500,
        **others,
    )
    monkeypatch.setitem(sys.modules, "pynvml", stand_in)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return stand_in


def test_the_states_of_a_gpu_are_ranges_in_whole_units_and_each_reason_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That the GPU idled a moment ago slows nothing down; bits of a power cap and of heat are two names.

    A reason that was seen once stays, and so do the lowest clock, the highest power and the highest temperature.
    """
    stand_in = put_nvml(monkeypatch, [])
    states = States("0")
    assert states.metrics == NOTHING
    states.read()
    expected = {"clock_low_hz": 1.98e9, "clock_high_hz": 1.98e9, "power_w": 640.5, "temperature_c": 61, "throttle": ()}
    assert states.metrics == expected
    stand_in.nvmlDeviceGetClockInfo = lambda _handle, _kind: 1755
    stand_in.nvmlDeviceGetPowerUsage = Mock(side_effect=ValueError)  # which this GPU doesn't say now
    stand_in.nvmlDeviceGetTemperature = lambda _handle, _kind: 70
    for bits in (0x04, 0x40, 0x00):
        stand_in.nvmlDeviceGetCurrentClocksThrottleReasons = lambda _handle, bits=bits: bits
        states.read()
    reasons = ("software power cap", "hardware thermal slowdown")
    assert states.metrics == {**expected, "clock_low_hz": 1.755e9, "temperature_c": 70, "throttle": reasons}


def test_without_an_answer_nothing_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither an error of the driver nor a missing package is an error of the measurement."""
    stand_in = put_nvml(monkeypatch, [])
    stand_in.nvmlInit = Mock(side_effect=RuntimeError)
    for _ in range(2):
        states = States("0")
        states.read()
        assert states.metrics == NOTHING
        assert nvml.gpus() == []
        assert (nvml.driver(), nvml.energy_j("0")) == (None, None)
        assert not nvml.is_exclusive("0")
        monkeypatch.setitem(sys.modules, "pynvml", None)


def test_a_gpu_that_one_process_holds_alone_is_exclusive(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It isn't if processes share it by MPS."""
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path))
    put_nvml(monkeypatch, [])
    assert nvml.is_exclusive("0")
    (tmp_path / "control").touch()
    assert not nvml.is_exclusive("0")


@pytest.mark.parametrize(
    ("visible", "numbers"), [(None, [0, 1]), ("1", [1]), ("1,0", [1, 0]), ("GPU-1", [1]), ("-1", []), ("", [])]
)
def test_devices_are_numbered_as_cuda_numbers_them(
    visible: str | None, numbers: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one that CUDA_VISIBLE_DEVICES names is cuda:0."""
    put_nvml(monkeypatch, [], [])
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert [(gpu.device, gpu.words) for gpu in nvml.gpus()] == [
        (f"cuda:{place}", f"GPU number {number}, 80.0 GiB, 79.0 GiB free") for place, number in enumerate(numbers)
    ]


def test_another_process_is_named_before_a_run_and_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The asking process doesn't count as another; only the run's devices count.

    At the end a process that isn't seen here is left out: it may be one of the run's own, under another number.
    """
    unseen = 2**22 + 1  # Linux has no process with so high a number
    put_nvml(monkeypatch, [os.getpid()], [1, unseen])
    assert nvml.warnings(["cuda"]) == nvml.late_warnings(["cuda"]) == []
    (before,), (after,) = nvml.warnings(["cuda", "cuda:1"]), nvml.late_warnings(["cuda:1"])
    assert before.startswith(f"cuda:1 (GPU number 1) is used by 2 other processes (pid 1, {unseen})")
    assert after.startswith("cuda:1 (GPU number 1) is used by another process now (pid 1)")


def test_work_of_a_process_that_is_not_seen_is_named() -> None:
    """Only if NVML lists no process: else they are the reason, and if they are this run's, all is well."""
    assert "was busy 60% of the time" in replace(A_GPU, load=0.6).in_use
    assert replace(A_GPU, load=0.6, processes=(os.getpid(),)).in_use == ""
    assert replace(A_GPU, load=0.01).in_use == replace(A_GPU, load=None).in_use == ""
