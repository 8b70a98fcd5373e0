"""How exceptions end a case."""

import pytest
import torch

from bench.measure import cuda, failure
from bench.measure.clock import timed
from bench.measure.devices import device
from bench.plan.device import COLD
from bench.sampling.requests import Outcome
from tests.make.simulated_gpu import Gpu, gpu

__all__ = ["gpu"]


def test_an_error_that_leaves_a_gpu_unusable_ends_the_process(gpu: Gpu) -> None:
    """Where the device answers no more, nothing else is measured in this process; where it answers, a row ends."""
    outcome = Outcome()
    with failure.caught(outcome, "cuda"):
        raise ValueError("a shape\nerror: two")
    assert outcome.status == "error"
    assert outcome.detail.startswith("ValueError: a shape error: two (test_failure.py, line ")
    gpu.ruin()
    with pytest.raises(SystemExit, match="RuntimeError: the kernel's own words"), failure.caught(outcome, "cuda"):
        raise RuntimeError("the kernel's own words")


def test_a_kernel_that_asserts_on_the_device_ends_the_process_at_its_timing(gpu: Gpu) -> None:
    """The call itself returns; the next wait for the GPU raises CUDA's error, with which the process ends."""
    with (
        pytest.raises(SystemExit, match="RuntimeError: CUDA error: device-side assert triggered"),
        failure.caught(Outcome(), "cuda"),
    ):
        timed(cuda.timer(COLD), gpu.ruin)


def test_a_gpu_without_free_memory_is_not_lost(gpu: Gpu) -> None:
    """The row has the requested memory, and the process goes on."""
    outcome = Outcome()
    with failure.caught(outcome, "cuda"):
        gpu.memory.allocate(64 << 40)
    assert outcome.status == "oom"
    assert f"Tried to allocate {64 << 20} MiB" in outcome.detail
    assert not device("cuda").is_lost()


@pytest.mark.parametrize(
    ("error", "is_memory"),
    [
        (MemoryError(), True),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to"), True),
        (torch.OutOfMemoryError("CUDA out of memory"), True),
        (RuntimeError("CUDA error: out of memory"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), True),
        (RuntimeError("shapes differ"), False),
    ],
)
def test_running_out_of_memory_is_told_from_other_errors(error: Exception, is_memory: bool) -> None:
    """Python's, the CPU allocator's and CUDA's words for it are known."""
    assert failure.is_out_of_memory(error) is is_memory


def test_an_exit_of_a_user_s_code_is_an_error_of_its_own() -> None:
    """The row says where it was, and the process goes on."""
    outcome = Outcome()
    with failure.caught(outcome, "cpu", "the reference failed: "):
        raise SystemExit("no licence")
    assert (outcome.status, outcome.own_cause) == ("error", True)
    assert "SystemExit: no licence (test_failure.py, line " in outcome.detail
