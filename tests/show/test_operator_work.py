"""Whose work an operator does."""

import pytest

from bench.show.operator_work import OTHER, SEVERAL, SHOWN_IN_ORDER, WORK, work, work_colour
from bench.show.stage_palette import STAGE_COLOURS, stage_colour


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("aten::mm", "qkv projection"),
        ("aten::addmm", "qkv projection"),
        ("mkldnn::_linear_pointwise", "qkv projection"),
        ("aten::bmm", "scores"),
        ("aten::baddbmm", "scores"),
        ("aten::_softmax_backward_data", "softmax"),
        ("aten::copy_", "merge heads"),
        ("aten::mul", "scale"),
        ("aten::add_", "skip"),
        ("aten::_scaled_dot_product_flash_attention_for_cpu", SEVERAL),
        ("graph_0_cpp_fused__softmax_mul_1", SEVERAL),
        ("triton_per_fused_add_0", SEVERAL),
        ("CompiledFxGraph", OTHER),
        ("aten::view", OTHER),
    ],
)
def test_an_operator_is_known_by_its_name(name: str, expected: str) -> None:
    """A product of two factors without weights is the scores', one with weights the projection's."""
    assert work(name) == expected


def test_work_has_the_colour_of_its_stage() -> None:
    """What does several steps, and what does none, has a colour that no stage has."""
    assert work_colour("aten::bmm") == stage_colour("scores")
    others = {work_colour("triton_poi_fused_0"), work_colour("aten::view")}
    assert len(others) == 2
    assert not others & {*STAGE_COLOURS.values()}


def test_all_work_has_its_place_in_a_bar() -> None:
    """And every stage that it is named after is one that stepwise has."""
    assert {*WORK.values(), OTHER} == {*SHOWN_IN_ORDER}
    assert {*WORK.values()} - {SEVERAL} <= {*STAGE_COLOURS}
