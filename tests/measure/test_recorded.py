"""Calls as they were recorded, and their stages."""

import pytest
import torch
from torch.profiler import profile, record_function

from bench.measure import compilation
from bench.measure.recorded import Call, Place, recorded
from tests.profiling.taken import TRAIN, captured

pytestmark = pytest.mark.slow

FORWARD, BACKWARD = False, True
"""The values of `is_backward`."""

NOWHERE = Place("", FORWARD)


def of(call: Call, operator: str, is_backward: bool) -> list[str]:
    """Return the stages in which an operator ran in one direction, in order, empty where it ran in none."""
    places = [call.places.get(event, NOWHERE) for event in call.host if event.name == operator]
    return [place.label for place in places if place.is_backward == is_backward]


def test_backward_operators_belong_to_the_label_that_made_their_node() -> None:
    """Each product of a layer has two in the backward pass, in its label, last first; the others accumulate."""
    call = captured(TRAIN, "graph").calls[-1]
    scores, values = of(call, "aten::bmm", FORWARD)
    assert scores != values
    assert of(call, "aten::bmm", BACKWARD) == [values] * 2 + [scores] * 2
    assert [label.partition(" | ")[0] for label in of(call, "aten::mm", BACKWARD)] == ["proj", "proj", "qkv", "qkv"]
    homeless = {event.name for event in call.host if event not in call.places and event.cpu_parent is call.whole}
    assert all("AccumulateGrad" in name for name in homeless)


def test_a_call_holds_what_ran_inside_its_label_alone() -> None:
    """It excludes everything that ran before, between or after the labels."""
    with profile() as profiler:
        torch.ones(2).exp()
        for function in (torch.sin, torch.tan):
            with record_function("call"):
                function(torch.ones(2))
            torch.ones(2).cos()
    first, second = ({event.name for event in call.host} for call in recorded(profiler, "call"))
    assert {"aten::sin", "aten::tan", "aten::exp", "aten::cos", "call"} & first == {"aten::sin"}
    assert second - first >= {"aten::tan"}


@pytest.mark.toolchain
@pytest.mark.usefixtures("compiler")
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
    (call,) = recorded(profiler, "call")
    assert [each.name for each in call.host if "fused_add_exp_sin" in each.name]
