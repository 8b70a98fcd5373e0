"""How exceptions end a case."""

import shutil
import subprocess

import pytest
import torch
from torch._inductor.exc import CppCompileError

from bench.measure import failure
from bench.measure.failure import Outcome


def test_an_error_that_leaves_a_gpu_unusable_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the device answers no more, nothing else is measured in this process; where it answers, a row ends."""
    calls = []

    def synchronize(device: str) -> None:
        calls.append(device)
        if len(calls) > 1:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", synchronize)
    outcome = Outcome()
    with failure.caught(outcome, "cuda"):
        raise ValueError("a shape")
    assert (outcome.status, outcome.detail) == ("error", "ValueError: a shape")
    with pytest.raises(SystemExit, match="RuntimeError: the kernel's own words"), failure.caught(outcome, "cuda"):
        raise RuntimeError("the kernel's own words")


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


@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
def test_a_compilers_reason_stands_in_the_detail() -> None:
    """The message of Inductor begins with the command and buries the compiler's own words; the detail has them."""
    words = subprocess.run(
        ["g++", "-x", "c++", "-fsyntax-only", "-"], input=b"int x = ;", capture_output=True, check=False
    )
    outcome = Outcome()
    with failure.caught(outcome, "cpu"):
        raise CppCompileError(["g++", "kernel.cpp"], words.stderr.decode())
    assert outcome.status == "error"
    assert outcome.detail.startswith("CppCompileError: C++ compile error: expected ")
