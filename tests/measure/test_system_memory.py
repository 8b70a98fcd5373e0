"""The operating system's view of memory, in the process that it needs."""

import subprocess
import sys
from pathlib import Path

import pytest

from bench.engine.worker import environment
from bench.measure import system_memory
from bench.plan.case import Case
from tests.points import point

pytestmark = pytest.mark.skipif(not system_memory.CLEAR_REFS.exists(), reason="only Linux tells and resets a peak")

PRINT = """
import torch
from bench.measure import inspection, system_memory, workload
from bench.plan.case import Case
from tests.points import point

held = bytearray({held_bytes})
held[::4096] = b"1" * len(held[::4096])
case = Case(point(batch=4, num_tokens=512, channels=64, num_heads=4), "eager")
torch.set_num_threads(1)
work = workload.make(case.point)
call = workload.step(workload.subject(work, "eager"), work)
with work.context():
    call()
    print(system_memory.of_case(case), inspection.look(call, "cpu").memory.peak_bytes)
"""


def seen(cache: Path, held_bytes: int) -> tuple[int, int]:
    """Return the system's and the allocator's peak of one eager layer, in a process that holds so much already."""
    command = [sys.executable, "-c", PRINT.format(held_bytes=held_bytes)]
    variables = environment("returned", 1, cache)
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    of_system, of_allocator = done.stdout.split()
    return int(of_system), int(of_allocator)


def test_the_system_sees_what_the_allocator_counts(tmp_path: Path) -> None:
    """The two agree within 2 MiB or 5 %, at a layer whose scores alone are 16 MiB."""
    of_system, of_allocator = seen(tmp_path, held_bytes=0)
    assert of_allocator > 30 * 2**20
    assert abs(of_system - of_allocator) < max(2 * 2**20, 0.05 * of_allocator)


def test_what_the_process_holds_anyway_does_not_count(tmp_path: Path) -> None:
    """300 MiB held before the call change neither peak."""
    of_system, of_allocator = seen(tmp_path, held_bytes=300 * 2**20)
    assert abs(of_system - of_allocator) < max(2 * 2**20, 0.05 * of_allocator)


def test_a_case_that_cannot_run_has_no_peak() -> None:
    """Why it can't stands in its row; here there is just no number."""
    assert system_memory.of_case(Case(point(token_len=6), "mha")) is None
