"""Other cores in the place of a module's own."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import impls
from bench.modules.core import BY_FUNCTION, Adaptable
from bench.modules.graph.running import InGraph
from bench.modules.wrapper import Wrapper
from impls.contract import BY_ATTEND
from tests.make.points import made
from tests.tiny_models import Attention, Capped, Net, Written

TINY = "tests.tiny_models"


def tiny(name: str) -> Wrapper:
    """Return a tiny model of tokens `[5, 16]`; the options in its name are the model's."""
    base, _, options = name.partition("[")
    return made(f"{TINY}:{base}[input=1x5x16{',' * bool(options)}{options or ']'}").eval()


@pytest.mark.parametrize(
    ("model", "setting", "way"),
    [
        ("Net", "as_is", ""),
        ("Net", "eager", BY_FUNCTION),
        ("Net", "online[block_tokens=2]", BY_FUNCTION),
        ("Net", f"{TINY}:right", BY_FUNCTION),
        ("Net[kind=imported]", f"{TINY}:right", BY_FUNCTION),
        ("Net[kind=causal]", "online", BY_FUNCTION),
        ("Net[kind=masked]", f"{TINY}:with_mask", BY_FUNCTION),
        ("Net[kind=replaceable]", "sdpa", BY_ATTEND),
        ("Net[kind=replaceable]", f"{TINY}:right", BY_ATTEND),
        ("Net[kind=switched]", "sdpa", "fused_attn"),
        ("Net[kind=switched]", "eager", "fused_attn"),
        ("Heads", f"{TINY}:right", BY_FUNCTION),
        ("Net[at=layers.1]", "sdpa_math", BY_FUNCTION),
        ("Net[kind=written]", f"{TINY}:right", "graph"),
    ],
)
def test_a_setting_computes_the_same_by_the_first_way_that_is_there(model: str, setting: str, way: str) -> None:
    """The layer's own attend, then the library's switch, torch's function, the graph.

    The model stays as it was, and so do the switches of the process; the weights are the same. A wrong core in place of
    a right one gives another output, also where the library initialises its head with zeros.
    """
    layer = tiny(model)
    x = torch.randn(3, *layer.items[0])
    with torch.inference_mode():
        y = layer(x)
        built: Any = impls.build(layer, setting)
        torch.testing.assert_close(built(x), y)
        assert torch.equal(layer(x), y)
        if setting == f"{TINY}:right" and way != "graph":
            assert float((impls.build(layer, f"{TINY}:wrong")(x) - y).abs().max() / y.abs().max()) > 0.01
    assert built.adapted_by == way
    assert {id(own) for own in built.parameters()} == {id(own) for own in layer.parameters()}
    assert torch.backends.mha.get_fastpath_enabled()


@pytest.mark.parametrize(
    ("model", "setting", "reason"),
    [
        ("Net[kind=capped]", "sdpa", "tanh at "),
        ("Net", "sdpa_cudnn", "can't compute the module's attention"),
        ("Net[kind=masked]", f"{TINY}:right", "has a mask tensor, but this attend declares no keyword"),
        ("plain", "eager", "the graph of the module's call has no softmax"),
    ],
)
def test_a_setting_that_a_model_lacks_is_unsupported(model: str, setting: str, reason: str) -> None:
    """With a reason in words: no switch, a mask that it can't do, or a backend that isn't there."""
    with pytest.raises(impls.Unsupported) as error:
        impls.build(tiny(model), setting)
    assert reason in str(error.value)


class Routed(Net):
    """A model in which a softmax chooses an expert, and one of its layers has a soft cap if that is asked for."""

    def __init__(self, *, capped: bool = False) -> None:
        super().__init__()
        self.router = nn.Linear(16, 2)
        self.capped = Capped(16) if capped else None

    def forward(self, x: Tensor) -> Tensor:
        """Return tokens `[B, N, C]` for tokens."""
        first, second = self.router(x).softmax(-1).chunk(2, -1)
        x = x if self.capped is None else x + self.capped(x)
        y: Tensor = first * super().forward(x) + second * x
        return y


@pytest.mark.parametrize("capped", [True, False])
def test_a_softmax_beside_torchs_function_is_named(*, capped: bool) -> None:
    """The function is the way; what stays is said, be it no attention, or attention that can't be expressed."""
    layer, x = Adaptable(Routed(capped=capped).eval(), ((5, 16),)), torch.randn(2, 5, 16)
    built = impls.build(layer, "eager")
    assert isinstance(built, Wrapper)
    assert built.adapted_by.startswith(f"F.scaled_dot_product_attention, {1 + capped} of {3 + capped} softmaxes stay")
    with torch.inference_mode():
        torch.testing.assert_close(built(x), layer(x))


def test_a_core_beside_torchs_function_is_for_the_graph() -> None:
    """Both cores are replaced: a wrong one in either place is seen."""

    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.other = Attention(16), Written(16)

        def forward(self, x: Tensor) -> Tensor:
            y: Tensor = torch.cat([self.one(x), self.other(x)], -1)
            return y

    layer, x = Adaptable(Mixed().eval(), ((5, 16),)), torch.randn(2, 5, 16)
    right, wrong = (impls.build(layer, f"{TINY}:{name}") for name in ("right", "wrong"))
    assert (right.adapted_by, type(right)) == ("graph", InGraph)  # type: ignore[attr-defined]  # a module in a graph
    with torch.inference_mode():
        y = layer(x)
        torch.testing.assert_close(right(x), y)
        assert all(not torch.allclose(*pair) for pair in zip(wrong(x).chunk(2, -1), y.chunk(2, -1), strict=True))
