"""The memory of a call, counted by hand and by the system."""

import os
import subprocess
import sys

import psutil
import pytest
import torch

from bench.engine.variables import ALLOCATOR_VARIABLES
from bench.measure import memory, subjects, workload
from bench.plan.case import RETAINED
from tests.make.points import point

BLOCKS, BLOCK_BYTES = 1000, 60_000
"""Too small to be mapped one by one, and together too large to be overlooked."""

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a peak, only glibc retains memory")


@pytest.mark.parametrize(
    ("events", "peak_bytes"),
    [
        pytest.param([(1, 10), (2, 20), (1, -10), (3, 5)], 30, id="the most that was alive at once"),
        pytest.param([(9, -1000), (1, 10)], 10, id="a block from before is freed without effect"),
        pytest.param([(1, 10), (1, -10), (1, 30), (1, -30), (2, 20)], 30, id="an address can be used again"),
    ],
)
def test_the_peak_of_events(events: list[tuple[int, int]], peak_bytes: int) -> None:
    """The peak is the highest sum of live blocks that were allocated in the call."""
    assert memory.peak_of_events(events) == peak_bytes


def test_a_backward_pass_frees_what_was_kept_for_it() -> None:
    """Memory that it gives back before it needs some does not count a second time."""
    assert memory.peak_of_events([(9, -20), (1, 10), (2, 15)], frees_earlier=True) == 5


@pytest.mark.slow
def test_autograd_keeps_what_eager_needs_and_less_for_sdpa() -> None:
    """By hand: eager keeps scores after the softmax; sdpa keeps q, k, v, its output and a sum for each query.

    Memory that a compiled layer keeps is seen too.
    """
    work = workload.make(point(batch=2, num_tokens=64, channels=32, num_heads=4, mode="train"))
    eager, sdpa = (subjects.subject(work, name) for name in ("eager", "sdpa"))
    torch.compiler.reset()  # after other shapes the compiler would take sizes for unknown
    compiled = subjects.Subject(eager.layer, torch.compile(eager.layer, dynamic=False, backend="aot_eager"))

    def saved_bytes(subject: subjects.Subject) -> int:
        xs = work.leaves(work.inputs())
        return memory.saved_bytes(lambda: subject.function(*xs), [*xs, *subject.layer.parameters()])

    projected, scores, lines = 2 * 64 * 32 * 4, 2 * 4 * 64 * 64 * 4, 2 * 4 * 64 * 4
    assert saved_bytes(sdpa) == 4 * projected + lines
    assert scores + 3 * projected <= saved_bytes(compiled) <= saved_bytes(eager)


def test_saved_bytes_count_each_storage_once_and_nothing_that_lives_anyway() -> None:
    """x² + x² saves x twice, which lives anyway; exp saves its own result, once, and two halves of it are one."""
    x = torch.randn(1000, requires_grad=True)

    def halves() -> object:
        y = x.exp()
        return y[:500] * y[500:]

    assert memory.saved_bytes(lambda: x * x + x * x, [x]) == 0
    assert memory.saved_bytes(lambda: x.exp(), [x]) == 4000
    assert memory.saved_bytes(halves, [x]) == 4000


def test_what_is_kept_between_calls_is_counted_once_and_without_what_lives_anyway() -> None:
    """A buffer, a view of it and another one, beside a tensor that is there anyway; a dropped one is free."""
    before = memory.held_bytes([])
    other, buffer, small = torch.empty(7), torch.empty(100), torch.empty(3, dtype=torch.float64)
    view, dropped = buffer[:5], torch.empty(50)
    del dropped
    assert memory.held_bytes([other]) - before == 4 * 100 + 8 * 3
    assert memory.held_bytes([other, view, small]) == before


def test_counting_what_autograd_keeps_keeps_nothing() -> None:
    """Softmax saves its own output, which a graph could hold for ever."""
    before = memory.held_bytes([])
    x = torch.randn(5, 5, requires_grad=True)
    assert memory.saved_bytes(lambda: x.softmax(-1).softmax(-1), [x]) == 2 * 4 * 25
    assert memory.held_bytes([x]) == before


@on_linux
def test_what_is_free_between_blocks_goes_back_to_the_system() -> None:
    """60 MB that a last block keeps from going by themselves are gone from the process when they were given back."""
    blocks = [torch.ones(BLOCK_BYTES, dtype=torch.uint8) for _ in range(BLOCKS)]
    held = psutil.Process().memory_info().rss
    del blocks[:-1]
    memory.give_back()
    assert held - psutil.Process().memory_info().rss > BLOCKS * BLOCK_BYTES / 2


@on_linux
@pytest.mark.slow
def test_memory_that_was_touched_faults_no_more() -> None:
    """A block as large as the one that was touched and freed finds its pages, if the allocator retains memory."""
    code = (
        "import resource, torch\n"
        "from bench.measure.memory import touch\n"
        "faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "touch(1 << 27)\n"
        "before = faults()\n"
        "torch.empty(1 << 26, dtype=torch.uint8).fill_(1)\n"
        "print(faults() - before)\n"
    )
    variables = {**os.environ, **ALLOCATOR_VARIABLES[RETAINED]}
    done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 100
