"""How modules compute their attention, in numbers."""

import pytest
import torch

from bench.modules.counted import counted
from tests.make.points import made

CASES = {
    "Net": {"function": 2},
    "Net[kind=imported]": {"function": 2},
    "Net[kind=written]": {"softmax": 2},
    "Net[kind=switched]": {"function": 2},
    "Encoder": {"whole": 2},
}
"""The numbers of operators of each kind."""


@pytest.mark.parametrize("model", CASES)
@pytest.mark.parametrize("grad", [True, False])
def test_each_operator_counts_where_it_is(model: str, *, grad: bool) -> None:
    """Whatever runs inside torch's function is no softmax of the module; gradients leave torch's fast path."""
    base, _, options = model.partition("[")
    layer = made(f"tests.tiny_models:{base}[input=1x5x16{',' * bool(options)}{options or ']'}").eval()
    with torch.enable_grad() if grad else torch.inference_mode():
        of = counted(layer, torch.randn(1, 5, 16))
    assert of == ({"function": 2} if model == "Encoder" and grad else CASES[model])
