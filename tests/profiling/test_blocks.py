"""Who allocated what."""

import pytest
import torch
from torch.profiler import profile, record_function

from bench.analyse.profile import live_bytes
from bench.measure import inspection, workload
from bench.plan.case import Point
from bench.profiling.blocks import allocated
from bench.profiling.recorded import recorded
from tests.points import of_layer, point
from tests.profiling.taken import captured

pytestmark = pytest.mark.slow

AT = {"batch": 2, "num_tokens": 64, "channels": 32, "num_heads": 4}


@pytest.mark.parametrize("implementation", ["eager", "sdpa", "online"])
@pytest.mark.parametrize("at", [point(**AT), point(**AT, mode="train"), of_layer("conv")], ids=lambda at: at.name)
def test_the_blocks_have_the_peak_that_the_row_has(at: Point, implementation: str) -> None:
    """Replayed, they reach the peak that measuring memory finds on the same call, to the byte."""
    work = workload.make(at)
    call = workload.step(workload.subject(work, implementation), work)
    with work.gradient_mode():
        call()
        expected = inspection.inspect(call, "cpu").memory.peak_bytes
    blocks = [each.block for each in captured(at, implementation).median.blocks]
    assert max(size for _, size in live_bytes(blocks)) == expected


def test_a_block_is_the_innermost_operators_that_works() -> None:
    """A product's result is the product's, a copy's is clone's and not that of what made room; each has its stage."""
    found = captured(point(**AT), "stepwise").median.blocks
    owners = [(each.block.stage, each.block.operator) for each in found if each.block.bytes > 1000]
    assert ("scores", "aten::bmm") in owners
    assert ("merge heads", "aten::clone") in owners
    assert {operator for _, operator in owners} == {
        "aten::mm", "aten::mul", "aten::clone", "aten::bmm", "aten::_softmax", "aten::addmm", "aten::add",
    }  # fmt: skip
    assert all(each.place == (each.block.stage, "forward") for each in found)


def test_a_block_that_outlives_the_call_has_no_end_and_one_from_before_is_none() -> None:
    """The result of 4000 bytes stays; 8000 bytes are gone within; what was freed of before leaves no trace."""
    before = [torch.zeros(500)]
    with profile(profile_memory=True) as profiler:
        with record_function("call"):
            before.clear()
            result = torch.zeros(2000).narrow(0, 0, 1000) + 1
    found = [each.block for each in allocated(profiler, recorded(profiler, "call"), "cpu") if each.block.bytes >= 1000]
    assert [(each.bytes, each.operator, each.end_s is None) for each in found] == [
        (8000, "aten::zeros", False), (4000, "aten::add", True),
    ]  # fmt: skip
    assert len(result) == 1000


def test_what_no_operator_allocated_has_no_name() -> None:
    """Memory that is asked for in a label, but in no operator, is its stage's alone."""
    with profile(profile_memory=True) as profiler, record_function("call"):
        with record_function("stage"):
            storage = torch.UntypedStorage(4096)
    (found,) = (each.block for each in allocated(profiler, recorded(profiler, "call"), "cpu"))
    assert (found.bytes, found.operator, found.stage) == (4096, "", "stage")
    assert storage.nbytes() == 4096
