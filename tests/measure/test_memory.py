"""The memory of a call, counted by hand and by the system."""

import itertools
import subprocess
import sys

import numpy as np
import psutil
import pytest
import torch

from bench.engine.worker import environment
from bench.measure import inspection, memory, workload
from bench.plan.case import Case
from tests.points import point

BLOCKS, BLOCK_BYTES = 1000, 60_000
"""Too small to be mapped one by one, and together too large to be overlooked."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not memory.CLEAR_REFS.exists(), reason="only Linux tells and resets a peak"),
]

PRINT = """
import torch
from bench.measure import inspection, memory, workload
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
        print(memory.of_case(case), inspection.inspect(call, "cpu").memory.peak_bytes)
"""


def test_the_peak_of_events_is_the_most_that_was_alive_at_once() -> None:
    """10 + 20 bytes, then 10 freed and 5 more: the peak is 30."""
    assert memory.peak_of_events([(1, 10), (2, 20), (1, -10), (3, 5)]) == 30


def test_a_block_from_before_is_freed_without_effect() -> None:
    """Freeing what was allocated before the call does not make room that the call could use."""
    assert memory.peak_of_events([(9, -1000), (1, 10)]) == 10


def test_an_address_can_be_used_again() -> None:
    """A block freed and allocated again at the same address counts once."""
    assert memory.peak_of_events([(1, 10), (1, -10), (1, 30), (1, -30), (2, 20)]) == 30


def test_a_tensor_of_100_mib_is_104857600_bytes() -> None:
    """The peak of one allocation is its size to the byte."""
    assert (
        inspection.inspect(lambda: torch.empty(100 * 2**20, dtype=torch.uint8), "cpu").memory.peak_bytes == 104_857_600
    )


@pytest.mark.parametrize(("batch", "tokens", "channels", "heads"), [(2, 64, 32, 4), (1, 128, 48, 3), (3, 65, 32, 1)])
def test_the_eager_layer_holds_two_score_tensors_beside_its_projection(
    batch: int, tokens: int, channels: int, heads: int
) -> None:
    """At the softmax live: q, k and v as one projection, the scores, and the weights."""
    work = workload.make(point(batch=batch, num_tokens=tokens, channels=channels, num_heads=heads))
    call = workload.step(workload.subject(work, "eager"), work)
    scores = batch * heads * tokens * tokens * 4
    projection = batch * tokens * 3 * channels * 4
    with work.gradient_mode():
        call()
        assert inspection.inspect(call, "cpu").memory.peak_bytes == projection + 2 * scores


@pytest.mark.parametrize(("implementation", "low", "high"), [("online", 0.9, 1.2), ("eager", 1.8, 2.1)])
def test_the_peak_grows_with_tokens_as_the_algorithm_does(implementation: str, low: float, high: float) -> None:
    """Online's peak is linear in the tokens, eager's quadratic, from 512 to 4096."""
    tokens = [512, 1024, 2048, 4096]
    peaks = []
    for number in tokens:
        work = workload.make(point(batch=1, num_tokens=number, channels=64, num_heads=2))
        call = workload.step(workload.subject(work, implementation), work)
        with work.gradient_mode():
            peaks.append(inspection.inspect(call, "cpu").memory.peak_bytes)
    assert low < np.polyfit(np.log(tokens), np.log(peaks), 1)[0] < high


@pytest.mark.parametrize("mode", ["forward", "train"])
def test_autograd_keeps_what_eager_needs_and_less_for_sdpa(mode: str) -> None:
    """By hand: eager keeps scores after the softmax; sdpa keeps q, k, v, its output and a sum for each query."""
    at = point(batch=2, num_tokens=64, channels=32, num_heads=4, mode=mode)
    work = workload.make(at)
    saved = {}
    for name in ("eager", "sdpa"):
        subject = workload.subject(work, name)
        x = work.x.detach().requires_grad_()
        held = iter([x, *subject.layer.parameters()])
        saved[name] = memory.saved_bytes(lambda call=subject.function, x=x: call(x), held)  # type: ignore[misc]
    projected, scores, lines = 2 * 64 * 32 * 4, 2 * 4 * 64 * 64 * 4, 2 * 4 * 64 * 4
    assert saved["sdpa"] == 4 * projected + lines
    assert saved["eager"] >= scores + 3 * projected


def test_saved_bytes_count_each_storage_once_and_nothing_that_lives_anyway() -> None:
    """x² + x² saves x twice, which lives anyway; exp saves its own result, once."""
    x = torch.randn(1000, requires_grad=True)
    assert memory.saved_bytes(lambda: x * x + x * x, iter([x])) == 0
    assert memory.saved_bytes(lambda: x.exp(), iter([x])) == 4000


def test_views_of_one_storage_are_one() -> None:
    """Two halves of one result are one storage."""
    x = torch.randn(1000, requires_grad=True)

    def forward() -> object:
        y = x.exp()
        return y[:500] * y[500:]

    assert memory.saved_bytes(forward, iter(itertools.chain([x]))) == 4000


def test_what_is_kept_between_calls_is_counted_once_and_without_what_is_known() -> None:
    """A buffer, a view of it and another one, beside a tensor that is there anyway; a dropped one is free."""
    before = memory.held_bytes([])
    known, buffer, other = torch.empty(7), torch.empty(100), torch.empty(3, dtype=torch.float64)
    view, dropped = buffer[:5], torch.empty(50)
    del dropped
    assert memory.held_bytes([known]) - before == 4 * 100 + 8 * 3
    assert memory.held_bytes([known, view, other]) == before


def test_counting_what_autograd_keeps_keeps_nothing() -> None:
    """Softmax saves its own output, which a graph could hold for ever."""
    before = memory.held_bytes([])
    x = torch.randn(5, 5, requires_grad=True)
    assert memory.saved_bytes(lambda: x.softmax(-1).softmax(-1), iter([x])) == 2 * 4 * 25
    assert memory.held_bytes([x]) == before


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
    assert memory.of_case(Case(point(token_len=6), "mha")) is None


@pytest.mark.skipif(sys.platform != "linux", reason="glibc alone can be asked for it")
def test_what_is_free_between_blocks_goes_back_to_the_system() -> None:
    """60 MB that a last block keeps from going by themselves are gone from the process when they were given back."""
    blocks = [torch.ones(BLOCK_BYTES, dtype=torch.uint8) for _ in range(BLOCKS)]
    held = psutil.Process().memory_info().rss
    del blocks[:-1]
    memory.give_back()
    assert held - psutil.Process().memory_info().rss > BLOCKS * BLOCK_BYTES / 2
