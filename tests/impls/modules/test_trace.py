"""The operators of a core, called again."""

import pytest
import torch

from tests.written_cores import BIAS, EXPRESSIBLE, traces_of


@pytest.mark.parametrize("kind", [*EXPRESSIBLE, "soft cap", "top-k", "talking heads", "some scores alone"])
def test_a_trace_computes_the_core_anew(kind: str) -> None:
    """Bit for bit from the same operands, twice, also with operators that change tensors in place."""
    (trace,) = traces_of(kind)
    for _ in range(2):
        o = trace.again(trace.operands)
        assert trace.output is not None or kind == "changed later"
        torch.testing.assert_close(o, o if trace.output is None else trace.output, rtol=0, atol=0)


def test_a_trace_computes_in_float64() -> None:
    """Operands and all tensors that meet the scores are brought there, also where the model casts to float32."""
    for kind in ("two masks", "in float32", "alibi"):
        (trace,) = traces_of(kind)
        o = trace.again({number: each.double() for number, each in trace.operands.items()}, torch.float64)
        assert o.dtype == torch.float64
        torch.testing.assert_close(o.float(), trace.output, rtol=1e-4, atol=1e-5)


def test_a_trace_holds_what_meets_the_scores_and_not_the_scores() -> None:
    """Masks and operands are needed; what the core computed would fill the memory."""
    (trace,) = traces_of("bias")
    held = [each for call in trace.calls for each in call.args if isinstance(each, torch.Tensor)]
    assert [each.data_ptr() for each in held] == [BIAS.data_ptr()]


def test_other_functions_have_other_signatures() -> None:
    """Layers of the same shapes may differ by an operator or by a number."""
    kinds = ["plain", "root", "no scale", "soft cap", "high soft cap", "bias"]
    assert len({traces_of(kind)[0].signature for kind in kinds}) == len(kinds)
    assert traces_of("plain")[0].signature == traces_of("plain", seed=2)[0].signature
