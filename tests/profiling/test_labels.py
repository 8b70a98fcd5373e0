"""Labels of profiled calls."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import pytest
from torch.profiler import ProfilerActivity, profile

from bench.measure import workload
from bench.plan.case import Case
from bench.plan.layers import steps
from bench.profiling import labels
from tests.points import OF_LAYER, STEPWISE, of_layer

Labelled = Callable[[Case], AbstractContextManager[None]]


def names(
    layer: str, implementation: str, labelled: Labelled = labels.call, mode: str = "inference", mask: str = "none"
) -> list[str]:
    """Return the names of what a profiler saw of a call, in order of time."""
    point = of_layer(layer, mode=mode, mask=mask)
    work = workload.make(point)
    call = workload.step(workload.subject(work, implementation), work)
    with (
        work.gradient_mode(),
        profile(activities=[ProfilerActivity.CPU]) as profiler,
        labelled(Case(point, implementation)),
    ):
        call()
    events = sorted(profiler.events(), key=lambda event: event.time_range.start)
    return [event.name for event in events]


def operators(seen: list[str]) -> list[str]:
    """Return what torch did, without labels."""
    return [name for name in seen if "::" in name or name.endswith("Backward0")]


def stages(seen: list[str]) -> set[str]:
    """Return the labels of stages."""
    return {name for name in seen if not operators([name]) and not name.endswith(" call")}


@pytest.mark.parametrize("layer", STEPWISE)
def test_eager_is_labelled_with_the_stages_that_stepwise_spells_out(layer: str) -> None:
    """What eager's functions are taken for is what stepwise says that the steps are."""
    assert stages(names(layer, "eager")) == stages(names(layer, "stepwise")) >= {"qkv projection", "scores", "softmax"}


@pytest.mark.parametrize("layer", STEPWISE)
def test_a_masked_layer_has_one_stage_more(layer: str) -> None:
    """The mask is a stage between scores and softmax, in eager and in stepwise; the formulas know it."""
    masked = stages(names(layer, "eager", mask="causal"))
    assert masked == stages(names(layer, "stepwise", mask="causal")) == stages(names(layer, "eager")) | {"mask"}
    assert masked == set(steps(of_layer(layer, mask="causal")))


@pytest.mark.parametrize("layer", OF_LAYER)
@pytest.mark.parametrize("mode", ["inference", "train"])
def test_labels_change_nothing_that_runs(layer: str, mode: str) -> None:
    """Labelled or not, eager runs the same operators in the same order, forwards and backwards."""
    plain = operators(names(layer, "eager", lambda _: nullcontext(), mode))
    assert operators(names(layer, "eager", mode=mode)) == plain
    assert "aten::_softmax" in plain


def test_a_call_is_labelled_by_its_implementation_and_holds_its_stages() -> None:
    """The label of the call comes first, a second call begins anew; a fused kernel has nothing in it to label."""
    seen = names("vit", "eager")
    assert seen[0] == labels.name(Case(of_layer("vit"), "eager")) == "eager call"
    assert names("vit", "eager") == seen
    fused = names("vit", "sdpa")
    assert (fused[0], stages(fused)) == ("sdpa call", set())
