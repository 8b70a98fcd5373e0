"""Numbers of a layer's own output that aren't finite: their number, their place and their cause."""

import inspect

import pytest
import torch
from torch import Tensor, nn

from bench.measure import finite, function, reference, workload
from bench.measure.judge import UNPEAKED
from bench.plan.case import Point
from bench.sampling.inputs import NORMAL, InputValues, TimedCall
from impls import Unsupported
from tests import odd_layers
from tests.make.points import point
from tests.measure.stub import SEED, SHIFTS, Judging


def of(layer: str, mode: str = "inference", dtype: str = "float32") -> Point:
    """Return a point of a layer of 7 tokens of 12 channels."""
    return point(layer=f"tests.odd_layers:{layer}", mode=mode, dtype=dtype)


def refusal(at: Point) -> str:
    """Return why the layer of a point can't be compared."""
    reply = Judging().expect(at, SEED, SHIFTS)
    assert reply["status"] == "unsupported"
    return str(reply["detail"])


def line_of(core: str, text: str) -> str:
    """Return the place of a text in a core, as a message names it."""
    lines, first = inspect.getsourcelines(odd_layers.CORES[core])
    return f"odd_layers.py:{first + next(number for number, line in enumerate(lines) if text in line)}"


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("mode", ["inference", "train"])
def test_a_query_without_keys_is_named_with_its_token_and_the_softmax(mode: str, dtype: str) -> None:
    """One of seven tokens has no key, so 12 of 84 numbers of an item are NaN."""
    reason = refusal(of("Odd[core=hidden]", mode, dtype))
    assert "not finite: 12 NaN of 84 values of an item, at token 2 (normal input" in reason
    assert reason.endswith(f"NaN first appears in softmax at {line_of('hidden', 'softmax')}")


def test_a_logarithm_of_negative_numbers_is_named() -> None:
    """It is the first that makes NaN."""
    assert f"NaN first appears in log at {line_of('logarithm', 'log()')}" in refusal(of("Odd[core=logarithm]"))


def test_infinity_is_named_with_what_becomes_of_it() -> None:
    """Infinite numbers of both signs add up to NaN in the layer after them, which is named too."""
    reason = refusal(of("Odd[core=reciprocal]"))
    assert "in proj (Linear)" in reason
    assert reason.endswith(f"after infinity in div at {line_of('reciprocal', ' / ')}")


def test_a_weight_that_is_nan_is_named() -> None:
    """Then no operator is the cause."""
    assert refusal(of("NotInitialised")).endswith("neither is its weight proj.weight: 144 NaN of 144 values")


def test_a_gradient_that_is_not_finite_is_named() -> None:
    """The output is finite, so the layer can be compared in inference."""
    assert "own gradient of x is not finite: 168 NaN of 168 values" in refusal(of("RootOfZero", "train"))
    assert Judging().expect(of("RootOfZero"), SEED, SHIFTS)["status"] == "ok"


def test_torchs_fast_path_is_named_if_it_alone_makes_nan() -> None:
    """Torch 2.13 returns NaN for a token without keys there, and zeros of its function elsewhere."""
    work = workload.make(of("Padded"))
    with torch.inference_mode():
        if work.layer(*work.inputs()).isfinite().all():
            pytest.skip("this torch has mended its fast path")
    reason = refusal(of("Padded"))
    assert "in encoder.layers.0 (TransformerEncoderLayer)" in reason
    assert reason.endswith("after torch.backends.mha.set_fastpath_enabled(False) it is finite")
    assert torch.backends.mha.get_fastpath_enabled()


def test_a_layer_that_is_infinite_for_larger_inputs_is_compared_on_normal_ones() -> None:
    """In float16; its row says so. In float32 nothing is infinite."""
    replies = [
        Judging().expect(of("Odd[core=overflowing]", dtype=each), SEED, SHIFTS) for each in ("float16", "float32")
    ]
    assert [(reply["status"], reply["peak"] > 1, reply["remark"]) for reply in replies] == [
        ("ok", False, UNPEAKED),
        ("ok", True, ""),
    ]


class Late(nn.Module):
    """A layer that is infinite where a number of its input is larger than any of the first ones."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.linear = nn.Linear(channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        """Return `[B, N, channels]`."""
        y: Tensor = self.linear(x)
        return y / (x < 30).all()


def test_a_timed_call_without_a_finite_reference_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its inputs are others than those of the checks before."""
    work = workload.make(point(layer="tests.measure.test_finite:Late"))
    function.check(work)
    check = reference.expect(work, NORMAL, InputValues())
    xs = tuple(x.index_fill(1, torch.tensor([3]), 50.0) for x in work.inputs())
    monkeypatch.setattr(workload.Workload, "of_call", lambda *_: xs)
    with pytest.raises(Unsupported, match="infinite of 84 values"):
        reference.of_items(work, check, [TimedCall(1, 0, 0)])


def test_a_finite_output_is_no_fault() -> None:
    """Whatever is infinite on the way: a mask is."""
    work = workload.make(point(mask="causal"))
    finite.check(work, work.layer, work.inputs(), [work.layer(*work.inputs())], range(2), NORMAL)
