"""The operating system's view of memory, in the process that it needs."""

import subprocess
import sys

import psutil
import pytest
import torch

from bench.engine.worker import environment
from bench.measure import system_memory
from bench.plan.case import Case
from tests.points import point

BLOCKS, BLOCK_BYTES = 1000, 60_000
"""Too small to be mapped one by one, and together too large to be overlooked."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not system_memory.CLEAR_REFS.exists(), reason="only Linux tells and resets a peak"),
]

PRINT = """
import torch
from bench.measure import inspection, system_memory, workload
from bench.plan.case import Case
from tests.points import point

case = Case(point(batch=4, num_tokens=512, channels=64, num_heads=4), "eager")
torch.set_num_threads(1)
work = workload.make(case.point)
call = workload.step(workload.subject(work, "eager"), work)
with work.gradient_mode():
    call()
    for held_bytes in (0, 300 << 20):
        held = bytearray(held_bytes)
        held[::4096] = b"1" * len(held[::4096])
        print(system_memory.of_case(case), inspection.inspect(call, "cpu").memory.peak_bytes)
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[int, int]]:
    """Return the system's and the allocator's peak of an eager layer, in a process that holds nothing, then 300 MiB."""
    variables = environment("returned", 1, tmp_path_factory.mktemp("cache"))
    command = [sys.executable, "-c", PRINT]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    pairs = [line.split() for line in done.stdout.splitlines()]
    return [(int(of_system), int(of_allocator)) for of_system, of_allocator in pairs]


def test_the_system_sees_what_the_allocator_counts(seen: list[tuple[int, int]]) -> None:
    """The two agree within 2 MiB or 5 %, at a layer whose scores alone are 16 MiB."""
    of_system, of_allocator = seen[0]
    assert of_allocator > 30 * 2**20
    assert abs(of_system - of_allocator) < max(2 * 2**20, 0.05 * of_allocator)


def test_what_the_process_holds_anyway_does_not_count(seen: list[tuple[int, int]]) -> None:
    """300 MiB held before the call change neither peak."""
    of_system, of_allocator = seen[1]
    assert of_allocator == seen[0][1]
    assert abs(of_system - of_allocator) < max(2 * 2**20, 0.05 * of_allocator)


def test_a_case_that_cannot_run_has_no_peak() -> None:
    """Why it can't stands in its row; here there is just no number."""
    assert system_memory.of_case(Case(point(token_len=6), "mha")) is None


@pytest.mark.skipif(sys.platform != "linux", reason="glibc alone can be asked for it")
def test_what_is_free_between_blocks_goes_back_to_the_system() -> None:
    """60 MB that a last block keeps from going by themselves are gone from the process when they were given back."""
    blocks = [torch.ones(BLOCK_BYTES, dtype=torch.uint8) for _ in range(BLOCKS)]
    held = psutil.Process().memory_info().rss
    del blocks[:-1]
    system_memory.give_back()
    assert held - psutil.Process().memory_info().rss > BLOCKS * BLOCK_BYTES / 2
