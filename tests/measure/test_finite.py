"""A layer whose own output isn't finite can't be compared."""

import pytest

from bench.measure.judge import UNPEAKED
from bench.plan.case import Point
from tests.make.points import point
from tests.measure.stub import Judging


def of(layer: str, mode: str = "inference", dtype: str = "float32") -> Point:
    """Return a point of a layer of one head, of 7 tokens of 12 channels."""
    return point(layer=f"tests.odd_layers:{layer}", mode=mode, dtype=dtype, num_heads=1)


def refusal(at: Point) -> str:
    """Return why the layer of a point can't be compared."""
    reply = Judging().expect(at)
    assert reply["status"] == "unsupported"
    return str(reply["detail"])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("mode", ["inference", "train"])
def test_numbers_that_are_not_finite_are_counted(mode: str, dtype: str) -> None:
    """One of seven tokens has no key, so 12 of 84 numbers of an item are NaN."""
    reason = refusal(of("Odd[core=hidden]", mode, dtype))
    assert "own output is not finite: 12 NaN of 84 values (normal input, one item, float32)" in reason


def test_a_gradient_that_is_not_finite_is_named() -> None:
    """The output is finite, so the layer can be compared in inference."""
    assert "own gradient of x is not finite: 168 NaN of 168 values" in refusal(of("RootOfZero", "train"))
    assert Judging().expect(of("RootOfZero"))["status"] == "ok"


def test_a_layer_that_is_infinite_for_larger_inputs_is_compared_on_normal_ones() -> None:
    """In float16; its row says so. In float32 nothing is infinite."""
    replies = [Judging().expect(of("Odd[core=overflowing]", dtype=each)) for each in ("float16", "float32")]
    assert [(reply["status"], reply["peak"] > 1, reply["remark"]) for reply in replies] == [
        ("ok", False, UNPEAKED),
        ("ok", True, ""),
    ]
