"""The GPUs of a machine by NVML, and who uses them."""

import os
import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from bench.machine import facts, gpus
from bench.machine.gpus import Gpu

GIB = 2**30
A_GPU = Gpu("cuda:0", "A GPU", 80 * GIB, 79 * GIB, "570.1", "DEFAULT", False, 0.0, ())


def put_nvml(monkeypatch: pytest.MonkeyPatch, *running: list[int], **others: Any) -> None:
    """Put a stand-in for NVML in its place, with a GPU for each list of processes that run on it."""
    names = [f"GPU number {number}" for number in range(len(running))]
    nvml = SimpleNamespace(
        nvmlInit=lambda: None,
        nvmlDeviceGetCount=lambda: len(running),
        nvmlDeviceGetHandleByIndex=lambda number: number,
        nvmlDeviceGetHandleByUUID=lambda uuid: int(uuid.removeprefix("GPU-")),
        nvmlDeviceGetName=lambda handle: names[handle],
        nvmlDeviceGetMemoryInfo=lambda _handle: SimpleNamespace(total=80 * GIB, free=79 * GIB),
        nvmlSystemGetDriverVersion=lambda: "570.1",
        nvmlDeviceGetComputeRunningProcesses=lambda handle: [SimpleNamespace(pid=pid) for pid in running[handle]],
        **others,
    )
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def test_what_nvml_says_is_told_and_the_rest_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question that this driver can't answer leaves the others; without NVML there is no GPU."""
    put_nvml(monkeypatch, [], nvmlDeviceGetComputeMode=lambda _handle: 3, nvmlDeviceGetMigMode=lambda _handle: [1, 1])
    (gpu,) = gpus.seen()
    assert (gpu.mode, gpu.is_split, gpu.load) == ("EXCLUSIVE_PROCESS", True, None)
    assert gpu.words == (
        "GPU number 0, 80.0 GiB, 79.0 GiB free, driver 570.1, compute mode EXCLUSIVE_PROCESS, split by MIG"
    )
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert gpus.seen() == []


@pytest.mark.parametrize(("visible", "numbers"), [("1", [1]), ("1,0", [1, 0]), ("GPU-1", [1]), ("-1", [])])
def test_devices_are_numbered_as_cuda_numbers_them(
    visible: str, numbers: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one that CUDA_VISIBLE_DEVICES names is cuda:0."""
    put_nvml(monkeypatch, [], [])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert [(gpu.device, gpu.name) for gpu in gpus.seen()] == [
        (f"cuda:{place}", f"GPU number {number}") for place, number in enumerate(numbers)
    ]
    assert facts.gpus() == [f"GPU number {number}" for number in numbers]


def test_another_process_is_named_before_a_run_and_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that asks isn't another one; of the devices only those of the run count.

    At the end a process that isn't seen here is left out: it may be one of the run's own, under another number.
    """
    unseen = 2**22 + 1  # Linux has no process with so high a number
    put_nvml(monkeypatch, [os.getpid()], [1, unseen])
    assert gpus.warnings(["cuda"]) == gpus.late_warnings(["cuda"]) == []
    (before,), (after,) = gpus.warnings(["cuda", "cuda:1"]), gpus.late_warnings(["cuda:1"])
    assert before.startswith(f"cuda:1 (GPU number 1) is used by 2 other processes (pid 1, {unseen})")
    assert after.startswith("cuda:1 (GPU number 1) is used by another process now (pid 1)")


def test_work_of_a_process_that_is_not_seen_is_named() -> None:
    """Only if NVML lists no process: else they are the reason, and if they are this run's, all is well."""
    assert "was at work 60% of the time" in gpus.in_use(replace(A_GPU, load=0.6))
    assert gpus.in_use(replace(A_GPU, load=0.6, processes=(os.getpid(),))) == ""
    assert gpus.in_use(replace(A_GPU, load=0.01)) == gpus.in_use(replace(A_GPU, load=None)) == ""
