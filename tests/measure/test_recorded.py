"""One call as it was recorded: its stages, and the bytes that its events allocated."""

from collections import Counter

import pytest
import torch
from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import profile, record_function

from bench.measure import compilation
from bench.measure.recorded import Call, Place, allocated, is_label, name, recorded
from bench.plan.device import CPU
from tests.make.points import STEPWISE, of_layer
from tests.profiling.taken import AT, TRAIN, captured

pytestmark = pytest.mark.slow

FORWARD, BACKWARD = False, True
"""The values of `is_backward`."""

NOWHERE = Place("", FORWARD)


def of(call: Call, operator: str, is_backward: bool) -> list[str]:
    """Return the stages in which an operator ran in one direction, in order, empty where it ran in none."""
    places = [call.places.get(event, NOWHERE) for event in call.host if event.name == operator]
    return [place.label for place in places if place.is_backward == is_backward]


def test_backward_operators_belong_to_the_stage_that_made_their_node() -> None:
    """Each of stepwise's products has two in the backward pass, and they stand in its stage, last stage first."""
    call = captured(TRAIN, "stepwise").median.call
    forward, backward = of(call, "aten::bmm", FORWARD), of(call, "aten::bmm", BACKWARD)
    assert forward == ["scores", "weighted values"]
    assert backward == ["weighted values"] * 2 + ["scores"] * 2
    assert of(call, "aten::mm", BACKWARD) == ["output projection"] * 2 + ["qkv projection"] * 2
    assert of(call, "aten::_softmax_backward_data", BACKWARD) == ["softmax"]


@pytest.mark.parametrize("layer", STEPWISE)
def test_every_stage_has_a_backward_pass_in_training(layer: str) -> None:
    """All nodes of the graph find their stage; those that only receive a gradient have none."""
    call = captured(of_layer(layer, mode="train"), "stepwise").median.call
    ways = {
        way: {place.label for place in call.places.values() if place.is_backward == way} for way in (FORWARD, BACKWARD)
    }
    assert ways[FORWARD] == ways[BACKWARD]
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
    assert "constant" not in {place.label for place in record.places.values() if place.is_backward}


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


def test_bytes_are_those_of_the_innermost_operator_that_works() -> None:
    """A product's result is the product's, a copy's is clone's and not that of what made room; each has its stage."""
    pair = captured(AT, "stepwise").median
    owners = {(pair.call.places[event].label, name(event)) for event, size in pair.allocated.items() if size > 1000}
    assert {("scores", "aten::bmm"), ("merge heads", "aten::clone")} <= owners
    assert {operator for _, operator in owners} == {
        "aten::mm", "aten::mul", "aten::clone", "aten::bmm", "aten::_softmax", "aten::addmm", "aten::add",
    }  # fmt: skip


def test_bytes_count_even_if_they_are_freed_in_the_call() -> None:
    """A result of 4000 bytes stays, 8000 bytes are gone within; what was freed of before leaves no trace.

    Memory that is asked for in a label, but in no operator, is the label's.
    """
    before = [torch.zeros(500)]
    with profile(profile_memory=True) as profiler, record_function("call"):
        before.clear()
        result = torch.zeros(2000).narrow(0, 0, 1000) + 1
        with record_function("stage"):
            storage = torch.UntypedStorage(4096)
    sizes = Counter[str]()
    for event, size in allocated(profiler, recorded(profiler, "call"), CPU).items():
        sizes[name(event)] += size
    assert {operator: size // 1000 for operator, size in sizes.items()} == {
        "aten::zeros": 8,
        "aten::add": 4,
        "stage": 4,
    }
    assert (len(result), storage.nbytes()) == (1000, 4096)


@pytest.mark.toolchain
def test_the_kernels_of_a_compiled_function_have_their_names() -> None:
    """Inductor announces them once it is asked to; one fused kernel does the work of three operators."""
    from torch._inductor import config  # its import takes seconds

    with config.patch({}):
        compilation.name_kernels()
        compiled = torch.compile(lambda x: (x + 1).exp().sin(), dynamic=False)
        x = torch.ones(64)
        compiled(x)
        with profile() as profiler, record_function("call"):
            compiled(x)
    assert [each.name for each in recorded(profiler, "call").host if "fused_add_exp_sin" in each.name]
