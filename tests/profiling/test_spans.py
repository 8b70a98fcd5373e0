"""Spans of one call."""

import itertools

import pytest
import torch
from torch.profiler import profile, record_function

from bench.measure import compilation
from bench.profiling.recorded import duration_s, recorded
from bench.profiling.spans import INDUCTOR_KERNEL, spans
from bench.store.profile import KERNEL, OPERATOR, STAGE, Span
from tests.points import point
from tests.profiling.taken import captured

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def found() -> tuple[Span, ...]:
    """Return the spans of a training step of stepwise."""
    return spans(captured(point(mode="train"), "stepwise").median.call)


def test_spans_of_a_depth_follow_each_other_inside_the_call(found: tuple[Span, ...]) -> None:
    """None begins before the call or the end of its neighbour, and none outlasts the call."""
    whole_s = duration_s(captured(point(mode="train"), "stepwise").median.call.whole)
    assert all(span.start_s >= 0 and span.start_s + span.duration_s <= whole_s + 1e-9 for span in found)
    for depth in {span.depth for span in found}:
        level = sorted((span for span in found if span.depth == depth), key=lambda span: span.start_s)
        for before, after in itertools.pairwise(level):
            assert before.start_s + before.duration_s <= after.start_s + 1e-9


def test_every_span_lies_in_one_of_the_depth_above(found: tuple[Span, ...]) -> None:
    """Leaving out what isn't worth showing leaves no gap in the depths."""
    for span in found:
        around = [
            other for other in found
            if other.depth == span.depth - 1
            and other.start_s <= span.start_s + 1e-9
            and span.start_s + span.duration_s <= other.start_s + other.duration_s + 1e-9
        ]  # fmt: skip
        assert span.depth == 0 or around


def test_stages_lie_outermost_and_what_works_is_there(found: tuple[Span, ...]) -> None:
    """The labels of stepwise are stages, products and softmax operators inside; all on the thread of the call."""
    assert {span.depth for span in found if span.kind == STAGE} == {0}
    assert [span.name for span in found if span.kind == STAGE][:2] == ["qkv projection", "split heads"]
    operators = {span.name for span in found if span.kind == OPERATOR}
    assert {"aten::bmm", "aten::_softmax", "aten::_softmax_backward_data", "aten::mm"} <= operators
    assert {span.lane for span in found} == {"host"}


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
    for name in ("graph_0_cpp_fused_add_0", "cpp_fused_clone_1", "triton_poi_fused_add_0"):
        assert INDUCTOR_KERNEL.match(name)
    assert not INDUCTOR_KERNEL.match("aten::add")
