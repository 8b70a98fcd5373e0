"""The contract of an implementation: the layer's function, with the layer's parameters, and the layer left alone."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from impls import IMPLEMENTATIONS, Unsupported, build, with_attend
from impls.contract import declared_options, mask_of
from impls.layers.vit import ViTAttention
from tests.impls.hardware import INSTALLED, NOT_EAGER_ON_CPU, ON_GPU, RUNTIMES
from tests.impls.reference import array, distance, forward, normal, weights

UNCOMPILED = [name for name in IMPLEMENTATIONS if not name.startswith("compiled") and name not in NOT_EAGER_ON_CPU]


class Kernel(nn.Module):
    """A core that is a module with a weight of its own, as a user may write one."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(factor))

    def forward(self, q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
        """Return the values times the factor; queries, keys and scale play no part."""
        return self.factor * v + 0.0 * (q + k) * scale


def zero(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    """Return a core's output that no attention has, so that it is told apart."""
    return 0.0 * (q + k + v) * scale


def facts(layer: nn.Module) -> dict[str, Any]:
    """Return what an adapter could change about a layer without touching a weight."""
    return {
        "attributes": {name: value for name, value in vars(layer).items() if not isinstance(value, dict)},
        "modules": dict(layer.named_modules()),
        "parameters": {name: id(parameter) for name, parameter in layer.named_parameters()},
        "gradients": {name: parameter.requires_grad for name, parameter in layer.named_parameters()},
        "training": {name: module.training for name, module in layer.named_modules()},
    }


@pytest.mark.slow
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize(
    "name", [name for name in IMPLEMENTATIONS if name not in (*ON_GPU, *RUNTIMES, "measured")] + [*INSTALLED]
)
def test_building_leaves_the_layer_as_it_was(name: str, training: bool) -> None:
    """Building an implementation changes neither the layer's attributes, modules, flags, weights nor output."""
    layer = ViTAttention(8, 8, 2, qkv_bias=True).train(training)
    x = normal(2, 5, 8)
    before, values, y = facts(layer), weights(layer), layer(x)

    build(layer, name)

    assert facts(layer) == before
    assert all((array(value) == values[key]).all() for key, value in layer.state_dict().items())
    assert torch.equal(layer(x), y)


@pytest.mark.parametrize("name", UNCOMPILED)
def test_calling_leaves_layer_and_tokens_as_they_were(name: str) -> None:
    """Calling an implementation writes neither into the layer nor into the tokens."""
    layer = ViTAttention(8, 8, 2, qkv_bias=True).eval()
    x = normal(2, 5, 8)
    before, values, tokens = facts(layer), weights(layer), x.clone()

    with torch.inference_mode():
        build(layer, name)(x)

    assert facts(layer) == before
    assert all((array(value) == values[key]).all() for key, value in layer.state_dict().items())
    assert torch.equal(x, tokens)


@pytest.mark.parametrize("name", UNCOMPILED)
def test_parameters_are_shared(name: str) -> None:
    """A change in place of the layer's weights shows in an implementation, whichever others were built of the layer."""
    layer = ViTAttention(8, 8, 2)
    implementation, x = build(layer, name), normal(2, 5, 8)
    before = implementation(x)
    others = [build(layer, other)(x) for other in UNCOMPILED]
    assert max(distance(y, forward(array(x), weights(layer), 2).y) for y in (implementation(x), *others)) < 5e-5

    with torch.no_grad():
        layer.qkv.weight.mul_(2)

    assert distance(implementation(x), array(before)) > 1e-2
    assert distance(implementation(x), forward(array(x), weights(layer), 2).y) < 5e-5


def test_with_attend_replaces_the_core_alone() -> None:
    """An adapted layer computes its core with the given function and keeps projections and skip."""
    layer = ViTAttention(6, 8, 2).double()
    x = normal(2, 5, 6, dtype=torch.float64)
    w = weights(layer)

    without_core = array(x) @ w["qkv.weight"][16:].T + w["proj.bias"]

    assert distance(with_attend(zero)(layer)(x), without_core) < 1e-12
    assert distance(layer(x), forward(array(x), w, 2).y) < 1e-12


def test_with_attend_keeps_adapted_layers_apart() -> None:
    """Cores that adapt one layer, functions or modules, stay with their own adapted layer and leave it alone."""
    layer = ViTAttention(8, 8, 2)
    names, x = set(layer.state_dict()), normal(2, 5, 8)
    expected = layer(x)

    zeroed, same, scaled = (with_attend(core)(layer) for core in (zero, layer.attend, Kernel(1.0)))
    before = scaled(x)
    with_attend(Kernel(-3.0))(layer)

    assert torch.equal(same(x), expected)
    assert not torch.allclose(zeroed(x), expected)
    assert torch.equal(scaled(x), before)
    assert set(layer.state_dict()) == names


def test_with_attend_needs_a_core_to_replace() -> None:
    """A layer without an attend is unsupported, and so is a mask for a core that does not declare it."""
    with pytest.raises(Unsupported, match="Linear"):
        with_attend(zero)(nn.Linear(4, 4))
    with pytest.raises(Unsupported, match="zero does not declare the keyword mask"):
        with_attend(zero)(ViTAttention(8, 8, 2, mask="causal"))


def masked_zero(q: Tensor, k: Tensor, v: Tensor, scale: float, *, mask: str = "none", factor: float = 1.0) -> Tensor:
    """Return the factor where the mask is causal, else zero; for a core that declares both keywords."""
    return zero(q, k, v, scale) + (factor if mask == "causal" else 0.0)


def test_an_attend_that_declares_the_mask_gets_it() -> None:
    """The core of a causal layer is called with the mask, that of another layer without it."""
    x = normal(2, 5, 8)
    plain, causal = ViTAttention(8, 8, 2), ViTAttention(8, 8, 2, mask="causal")
    causal.load_state_dict(plain.state_dict())

    difference = with_attend(masked_zero)(causal)(x) - with_attend(masked_zero)(plain)(x)

    torch.testing.assert_close(difference, plain.proj.weight.sum(dim=1).expand_as(difference))


@pytest.mark.parametrize("mask", [None, torch.ones(2, 2)])
def test_another_attribute_of_that_name_is_no_mask_of_ours(mask: torch.Tensor | None) -> None:
    """A user's layer may keep a tensor, or nothing, under the name `mask`."""
    layer = ViTAttention(8, 8, 2)
    vars(layer)["mask"] = mask

    assert mask_of(layer) == "none"


def test_the_keywords_of_an_attend_are_the_options_of_its_adapter() -> None:
    """An option reaches the core; the mask is no option, because the layer has it."""
    layer = ViTAttention(8, 8, 2, mask="causal")
    adapt = with_attend(masked_zero)

    assert declared_options(adapt) == {"factor"}
    assert not torch.equal(adapt(layer, factor=3.0)(normal(1, 2, 8)), adapt(layer)(normal(1, 2, 8)))
