"""The adapter to torch.nn.MultiheadAttention: what it can express, and whose parameters it uses."""

import pytest
import torch
from torch import nn

from impls import Unsupported, build
from impls.layers.conv import ConvSelfAttention
from impls.layers.patch import PatchAttention
from impls.layers.self_attention import SelfAttention
from impls.layers.vit import ViTAttention
from tests.impls.reference import array, distance, forward, normal, weights

NAMES = ["mha", "mha_weights"]

TOLERANCE = 5e-5
"""In units of the output's root mean square, for float32."""


@pytest.mark.parametrize(
    ("layer", "reason"),
    [
        (ViTAttention(49, 64), "token_len.*49.*64"),
        (ViTAttention(64, 32, 4), "token_len.*64.*32"),
        (ViTAttention(8, 8, 2, qk_scale=1.0), r"scale.*1\.0"),
        (ViTAttention(8, 8, 2, qk_scale=0.0), r"scale.*0\.0"),
        (SelfAttention(8, 8, 8), "neither"),
        (ConvSelfAttention(8), "narrower"),
        (nn.Linear(8, 8), "Linear"),
    ],
    ids=["narrower tokens", "wider tokens", "custom scale", "zero scale", "unscaled", "narrow keys", "another layer"],
)
@pytest.mark.parametrize("name", NAMES)
def test_unsupported(name: str, layer: nn.Module, reason: str) -> None:
    """What nn.MultiheadAttention can't express is unsupported, with the reason and the numbers."""
    with pytest.raises(Unsupported, match=reason):
        build(layer, name)


def test_the_default_scale_may_be_spelled_out() -> None:
    """A scale that equals D**-0.5 is the one built in, and the output is the reference's."""
    layer = ViTAttention(12, 12, 3, qk_scale=4**-0.5)
    x = normal(2, 7, 12)

    assert distance(build(layer, "mha")(x), forward(array(x), weights(layer), 3).y) < TOLERANCE


@pytest.mark.parametrize("heads", [1, 4])
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_a_patch_layer_is_computed_with_its_own_weights(name: str, training: bool, heads: int) -> None:
    """The notebook's layer in the module's words gives the layer's output, in training and out of it."""
    layer = PatchAttention(heads=heads).train(training)
    x = normal(2, 3, 32, 32)

    assert distance(build(layer, name)(x), array(layer(x))) < TOLERANCE


@pytest.mark.parametrize("name", NAMES)
def test_training_reaches_every_weight_of_a_patch_layer(name: str) -> None:
    """The gradients of a training step are those of the layer's own parameters."""
    layer = PatchAttention(heads=2).train()
    x = normal(2, 3, 8, 8)
    found = torch.autograd.grad(build(layer, name)(x).square().sum(), [*layer.parameters()])
    expected = torch.autograd.grad(layer(x).square().sum(), [*layer.parameters()])

    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "layer",
    [ViTAttention(8, 8, 2), ViTAttention(8, 8, 2, qkv_bias=True), PatchAttention(3, 4, 8, 2)],
    ids=["vit", "vit with bias", "patch"],
)
def test_both_take_the_fast_path_of_inference(layer: nn.Module, name: str) -> None:
    """Out of training PyTorch runs one operator for the module, asked for weights or not, with QKV bias or without."""
    implementation = build(layer.eval(), name)
    x = normal(2, 5, 8) if isinstance(layer, ViTAttention) else normal(2, 3, 8, 8)

    with torch.inference_mode(), torch.profiler.profile() as profile:
        implementation(x)

    assert "aten::_native_multi_head_attention" in {event.name for event in profile.events() or []}


@pytest.mark.parametrize("name", ["qkv.weight", "qkv.bias", "proj.weight", "proj.bias"])
def test_parameters_are_the_layers_own(name: str) -> None:
    """A change in place of any of the layer's parameters shows in the implementation's output."""
    layer = ViTAttention(8, 8, 2, qkv_bias=True)
    implementation = build(layer, "mha")
    x = normal(2, 5, 8)
    before = implementation(x)

    with torch.no_grad():
        layer.get_parameter(name).add_(normal(*layer.get_parameter(name).shape))

    assert distance(implementation(x), array(before)) > 1e-2
    assert distance(implementation(x), forward(array(x), weights(layer), 2).y) < TOLERANCE


def test_the_added_bias_stays_zero() -> None:
    """The zero bias that a layer without one is lent takes no gradient, so that training can't move it."""
    layer = ViTAttention(8, 8, 2, qkv_bias=False)
    implementation = build(layer, "mha")
    x = normal(2, 5, 8)

    y = implementation(x)
    leaves = leaf_tensors(y)

    assert leaves == {id(parameter) for parameter in layer.parameters()}


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_dtype_is_the_layers(dtype: torch.dtype) -> None:
    """The module takes on the layer's dtype, its lent bias included."""
    layer = ViTAttention(8, 8, 2).to(dtype)

    assert build(layer, "mha")(normal(2, 5, 8, dtype=dtype)).dtype == dtype


def leaf_tensors(y: torch.Tensor) -> set[int]:
    """Return the ids of the tensors that would take a gradient from y."""
    found: set[int] = set()
    nodes = [y.grad_fn]
    while nodes:
        node = nodes.pop()
        if node is None:
            continue
        if hasattr(node, "variable"):
            found.add(id(node.variable))
        nodes.extend(parent for parent, _ in node.next_functions)
    return found
