"""One call as it was recorded: its stages, its spans, its blocks."""

import itertools
from collections import Counter

import pytest
import torch
from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import profile, record_function

from bench.analyse.profile import live_bytes
from bench.measure import compilation, inspection, workload
from bench.measure.devices import device
from bench.plan.case import Point
from bench.plan.device import CPU
from bench.profiling.recorded import INDUCTOR_KERNEL, Call, allocated, duration_s, is_label, name, recorded, spans
from bench.store.profile import BACKWARD, FORWARD, KERNEL, OPERATOR, STAGE, Span
from tests.make.points import STEPWISE, of_layer
from tests.profiling.taken import AT, TRAIN, captured

pytestmark = pytest.mark.slow


def of(call: Call, operator: str, direction: str) -> list[str]:
    """Return the stages in which an operator ran in one direction, in order, empty where it ran in none."""
    places = [call.places.get(event, ("", FORWARD)) for event in call.host if event.name == operator]
    return [stage for stage, way in places if way == direction]


def test_backward_operators_belong_to_the_stage_that_made_their_node() -> None:
    """Each of stepwise's products has two in the backward pass, and they stand in its stage, last stage first."""
    call = captured(TRAIN, "stepwise").median.call
    forward, backward = of(call, "aten::bmm", FORWARD), of(call, "aten::bmm", BACKWARD)
    assert forward == ["scores", "weighted values"]
    assert backward == ["weighted values"] * 2 + ["scores"] * 2
    assert of(call, "aten::mm", BACKWARD) == ["output projection"] * 2 + ["qkv projection"] * 2
    assert of(call, "aten::_softmax_backward_data", BACKWARD) == ["softmax"]


@pytest.mark.parametrize("layer", STEPWISE)
def test_every_stage_has_a_backward_pass_in_training_alone(layer: str) -> None:
    """All nodes of the graph find their stage; those that only receive a gradient have none."""
    inference = captured(of_layer(layer), "stepwise").median.call
    call = captured(of_layer(layer, mode="train"), "stepwise").median.call
    assert {direction for _, direction in inference.places.values()} == {FORWARD}
    stages = {stage for stage, _ in inference.places.values()}
    assert Counter(call.places.values()).keys() == {(stage, way) for stage in stages for way in (FORWARD, BACKWARD)}
    homeless = {event.name for event in call.host if event not in call.places and event.cpu_parent is call.whole}
    assert all("AccumulateGrad" in name for name in homeless)


def test_an_operator_that_only_reads_the_counter_makes_no_node() -> None:
    """An operator whose number is the next one's, because it needed no gradient, doesn't take over its backward."""
    x, constant = torch.ones(3, requires_grad=True), torch.ones(3)

    def call() -> object:
        with record_function("constant"):
            twice = constant * 2
        with record_function("product"):
            y = x * twice
        return torch.autograd.grad(y.sum(), x)

    with profile(record_shapes=True) as profiler, record_function("call"):
        call()
    record = recorded(profiler, "call")
    assert of(record, "MulBackward0", BACKWARD) == ["product"]
    assert "constant" not in {stage for stage, way in record.places.values() if way == BACKWARD}


def test_a_compiled_layer_has_no_stages_and_names_without_numbers() -> None:
    """Inductor's announcements are no labels of ours; its kernels keep their names."""
    annotation = FunctionEvent(1, "## Call CompiledFxGraph fabc123 ##", 1, 0, 1, is_user_annotation=True)
    region = FunctionEvent(2, "Torch-Compiled Region: 3/1", 1, 0, 1)
    kernel = FunctionEvent(3, "cpp_fused_add_0", 1, 0, 1)
    assert not is_label(annotation)
    assert [name(each) for each in (annotation, region, kernel)] == [
        "CompiledFxGraph", "Torch-Compiled Region", "cpp_fused_add_0",
    ]  # fmt: skip


def test_the_call_holds_what_ran_inside_its_label_alone() -> None:
    """What ran before or after the label is none of it."""
    with profile() as profiler:
        torch.ones(2).exp()
        with record_function("call"):
            torch.ones(2).sin()
        torch.ones(2).cos()
    names = {event.name for event in recorded(profiler, "call").host}
    assert "aten::sin" in names
    assert not {"aten::exp", "aten::cos", "call"} & names


@pytest.mark.parametrize("implementation", ["eager", "sdpa", "online"])
@pytest.mark.parametrize("at", [AT, TRAIN, of_layer("conv")], ids=lambda at: at.name)
def test_the_blocks_have_the_peak_that_the_row_has(at: Point, implementation: str) -> None:
    """Replayed, they reach the peak that measuring memory finds on the same call, to the byte."""
    work = workload.make(at)
    call = workload.step(workload.subject(work, implementation), work)
    with work.gradient_mode():
        call()
        expected = inspection.inspect(call, device("cpu")).peak_bytes
    blocks = [each.block for each in captured(at, implementation).median.blocks]
    assert max(size for _, size in live_bytes(blocks)) == expected


def test_a_block_is_the_innermost_operators_that_works() -> None:
    """A product's result is the product's, a copy's is clone's and not that of what made room; each has its stage."""
    blocks = captured(AT, "stepwise").median.blocks
    owners = [(each.block.stage, each.block.operator) for each in blocks if each.block.bytes > 1000]
    assert ("scores", "aten::bmm") in owners
    assert ("merge heads", "aten::clone") in owners
    assert {operator for _, operator in owners} == {
        "aten::mm", "aten::mul", "aten::clone", "aten::bmm", "aten::_softmax", "aten::addmm", "aten::add",
    }  # fmt: skip
    assert all(each.place == (each.block.stage, "forward") for each in blocks)


def test_a_block_has_its_end_if_it_is_freed_in_the_call_and_a_name_if_an_operator_allocated_it() -> None:
    """The result of 4000 bytes stays; 8000 bytes are gone within; what was freed of before leaves no trace.

    Memory that is asked for in a label, but in no operator, is its stage's alone.
    """
    before = [torch.zeros(500)]
    with profile(profile_memory=True) as profiler, record_function("call"):
        before.clear()
        result = torch.zeros(2000).narrow(0, 0, 1000) + 1
        with record_function("stage"):
            storage = torch.UntypedStorage(4096)
    blocks = [each.block for each in allocated(profiler, recorded(profiler, "call"), CPU)]
    assert [(each.bytes, each.operator, each.stage, each.end_s is None) for each in blocks if each.bytes >= 1000] == [
        (8000, "aten::zeros", "", False), (4000, "aten::add", "", True), (4096, "", "stage", True),
    ]  # fmt: skip
    assert (len(result), storage.nbytes()) == (1000, 4096)


@pytest.fixture(scope="module")
def of_training() -> tuple[Span, ...]:
    """Return the spans of a training step of stepwise."""
    return spans(captured(TRAIN, "stepwise").median.call)


def test_spans_lie_in_the_call_and_in_those_of_the_depth_above(of_training: tuple[Span, ...]) -> None:
    """None begins before the end of its neighbour; leaving out what isn't worth showing leaves no gap in the depths."""
    levels = [(0.0, duration_s(captured(TRAIN, "stepwise").median.call.whole))]
    for depth in range(1 + max(span.depth for span in of_training)):
        level = sorted((span.start_s, span.start_s + span.duration_s) for span in of_training if span.depth == depth)
        assert all(before[1] <= after[0] + 1e-9 for before, after in itertools.pairwise(level))
        for start_s, end_s in level:
            assert any(begin <= start_s + 1e-9 and end_s <= end + 1e-9 for begin, end in levels)
        levels = level


def test_stages_lie_outermost_and_what_works_is_there(of_training: tuple[Span, ...]) -> None:
    """The labels of stepwise are stages, products and softmax operators inside; all on the thread of the call."""
    assert {span.depth for span in of_training if span.kind == STAGE} == {0}
    assert [span.name for span in of_training if span.kind == STAGE][:2] == ["qkv projection", "split heads"]
    operators = {span.name for span in of_training if span.kind == OPERATOR}
    assert {"aten::bmm", "aten::_softmax", "aten::_softmax_backward_data", "aten::mm"} <= operators
    assert {span.lane for span in of_training} == {"host"}


@pytest.mark.toolchain
def test_the_kernels_of_a_compiled_function_are_spans_by_name() -> None:
    """Inductor announces them once it is asked to; one fused kernel does the work of three operators."""
    from torch._inductor import config  # its import takes seconds

    with config.patch({}):
        compilation.name_kernels()
        compiled = torch.compile(lambda x: (x + 1).exp().sin(), dynamic=False)
        x = torch.ones(64)
        compiled(x)
        with profile() as profiler, record_function("call"):
            compiled(x)
    (kernel,) = [span.name for span in spans(recorded(profiler, "call")) if span.kind == KERNEL]
    assert "fused_add_exp_sin" in kernel
    for kernel in ("graph_0_cpp_fused_add_0", "cpp_fused_clone_1", "triton_poi_fused_add_0"):
        assert INDUCTOR_KERNEL.match(kernel)
    assert not INDUCTOR_KERNEL.match("aten::add")
