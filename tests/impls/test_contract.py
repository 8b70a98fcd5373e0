"""The contract of an implementation: the layer's function, with the layer's parameters, and the layer left alone."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from impls import IMPLEMENTATIONS, Unsupported, build, masked, with_attend
from impls.contract import declared_options, fitted, mask_of, takes_core
from impls.layers.vit import ViTAttention
from tests.impls.reference import INSTALLED, LACKING, PACKED, UNCOMPILED, normal

COMPILED = [name for name, entry in IMPLEMENTATIONS.items() if entry.compiles]


class Kernel(nn.Module):
    """A core that is a module with a weight of its own, as a user may write one."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(factor))

    def forward(self, q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
        """Return the values times the factor; queries, keys and scale play no part."""
        return self.factor * v + 0.0 * (q + k) * scale


def zero(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    """Return a core's output that no attention has."""
    return 0.0 * (q + k + v) * scale


def facts(layer: nn.Module) -> dict[str, Any]:
    """Return all that an implementation could change about a layer."""
    return {
        "attributes": {name: value for name, value in vars(layer).items() if not isinstance(value, dict)},
        "modules": dict(layer.named_modules()),
        "parameters": {name: (id(one), one.requires_grad) for name, one in layer.named_parameters()},
        "values": {name: value.tolist() for name, value in layer.state_dict().items()},
        "training": {name: module.training for name, module in layer.named_modules()},
    }


@pytest.mark.parametrize("name", dict.fromkeys([*UNCOMPILED, *COMPILED, *LACKING, *INSTALLED, *PACKED]))
def test_layer_and_tokens_stay_as_they_were(name: str) -> None:
    """Building an implementation changes neither the layer's attributes, modules, flags, weights nor output.

    Nor does calling it, which writes into no tokens either; only what needs no compiler is called here.
    """
    for training in (False, True):
        lengths = "uniform" if name in PACKED else "fixed"
        layer, x = ViTAttention(8, 8, 2, qkv_bias=True, lengths=lengths).train(training), normal(2, 5, 8)
        before, y, tokens = facts(layer), layer(x), x.clone()
        implementation = build(layer, name)
        assert facts(layer) == before
        if name in UNCOMPILED:
            with torch.inference_mode():
                implementation(x)
        assert facts(layer) == before
        assert torch.equal(layer(x), y)
        assert torch.equal(x, tokens)


def test_with_attend_keeps_adapted_layers_separate() -> None:
    """Cores that adapt one layer, functions or modules, stay with their own adapted layer and leave it alone."""
    layer, x = ViTAttention(8, 8, 2), normal(2, 5, 8)
    names, expected = set(layer.state_dict()), layer(x)

    zeroed, same, scaled = (with_attend(core)(layer) for core in (zero, layer.attend, Kernel(1.0)))
    before = scaled(x)
    with_attend(Kernel(-3.0))(layer)

    assert torch.equal(same(x), expected)
    assert not torch.allclose(zeroed(x), expected)
    assert torch.equal(scaled(x), before)
    assert set(layer.state_dict()) == names


def test_fewer_heads_of_keys_are_repeated_for_a_core_that_takes_none() -> None:
    """A layer's own call asks for it; another keyword reaches the core, and a mask that it lacks is unsupported."""
    seen: list[tuple[int, ...]] = []

    def core(q: Tensor, k: Tensor, v: Tensor, scale: float, *, cap: float = 0.0) -> Tensor:
        seen.append((k.shape[1], v.shape[1], int(cap)))
        return zero(q, k, v, scale)

    attend: Any = fitted(core, nn.Module())
    q, k = normal(2, 4, 5, 3), normal(2, 2, 5, 3)
    attend(q, q, q, 1.0, enable_gqa=False, cap=3.0)
    assert (seen, hasattr(attend, "repeats")) == ([(4, 4, 3)], False)
    attend(q, k, k, 1.0, enable_gqa=True)
    assert (seen[1], attend.repeats) == ((4, 4, 0), True)
    with pytest.raises(Unsupported, match="attn_mask"):
        attend(q, q, q, 1.0, attn_mask=torch.ones(5, 5, dtype=torch.bool))


def masked_zero(
    q: Tensor, k: Tensor, v: Tensor, scale: float, *, mask: str = "none", attn_mask: None = None, factor: float = 1.0
) -> Tensor:
    """Return the factor where the mask is causal, else zero; for a core that declares these keywords."""
    assert attn_mask is None
    return zero(q, k, v, scale) + (factor if mask == "causal" else 0.0)


def test_an_attend_gets_the_mask_and_the_options_that_it_declares() -> None:
    """The core of a causal layer is called with the mask, the core of another layer without it.

    Its other keywords are the options of its adapter, except masks, which the layer has.
    """
    x, adapt = normal(2, 5, 8), with_attend(masked_zero)
    plain, causal = ViTAttention(8, 8, 2), ViTAttention(8, 8, 2, mask="causal")
    causal.load_state_dict(plain.state_dict())
    assert declared_options(adapt) == {"factor"}
    for options, factor in (({}, 1.0), ({"factor": 3.0}, 3.0)):
        difference = adapt(causal, **options)(x) - adapt(plain)(x)
        torch.testing.assert_close(difference, factor * plain.proj.weight.sum(dim=1).expand_as(difference))


def test_a_mask_is_none_or_causal_and_declared() -> None:
    """Otherwise a user's layer is refused, with the core in the reason. A tensor of that name isn't such a mask."""
    with pytest.raises(Unsupported, match="mask = padding can't be passed as the keyword mask, which must be causal"):
        masked(masked_zero, "padding")
    with pytest.raises(Unsupported, match="zero does not declare the keyword mask"):
        with_attend(zero)(ViTAttention(8, 8, 2, mask="causal"))
    layer = ViTAttention(8, 8, 2)
    vars(layer)["mask"] = torch.ones(2, 2)
    assert mask_of(layer) == "none"


@pytest.mark.parametrize(
    ("parameters", "takes"),
    [
        ("q, k, v, scale", True),
        ("q, k, v, scale=1.0", True),
        ("q, k, v, softmax_scale=None, causal=False", True),
        ("*args", True),
        ("q, k, v", False),
        ("q, k, v, mask", False),
        ("q, k, v, dropout_p=0.0, softmax_scale=None", False),
        ("q, k, v, scale, mask", False),
        ("x", False),
    ],
)
def test_a_core_takes_queries_keys_values_and_a_scale(parameters: str, *, takes: bool) -> None:
    """A fourth parameter that may be left out must have the name of a scale, and none is a mask."""
    assert takes_core(eval(f"lambda {parameters}: None")) is takes  # noqa: S307 - the texts above
    assert not any(map(takes_core, (nn.Softmax(-1), True, None)))
