"""How modules compute their attention, in numbers."""

import pytest
import torch

from impls.modules.counted import counted
from tests.make.points import made

CASES = {
    "Net": (2, 0, 0, 0),
    "Net[kind=imported]": (2, 0, 0, 0),
    "Net[kind=written]": (0, 0, 0, 2),
    "Net[kind=switched]": (2, 0, 0, 0),
    "Encoder": (0, 0, 2, 0),
}
"""The calls of torch's function, and fused operators, whole layers and softmaxes outside of them."""


@pytest.mark.parametrize("model", CASES)
@pytest.mark.parametrize("grad", [True, False])
def test_each_operator_counts_where_it_is(model: str, *, grad: bool) -> None:
    """Whatever runs inside torch's function is no softmax of the module; gradients leave torch's fast path."""
    base, _, options = model.partition("[")
    layer = made(f"tests.tiny_models:{base}[input=1x5x16{',' * bool(options)}{options or ']'}").eval()
    with torch.enable_grad() if grad else torch.inference_mode():
        of = counted(layer, torch.randn(1, 5, 16))
    expected = (2, 0, 0, 0) if model == "Encoder" and grad else CASES[model]
    assert (of.by_function, of.fused, of.whole, of.softmaxes) == expected
