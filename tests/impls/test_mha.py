"""The adapter to torch.nn.MultiheadAttention: what it can express, and whose parameters it uses."""

import pytest
import torch
from torch import nn

from impls import Unsupported, build
from impls.layers.vit import ViTAttention
from tests.impls.reference import array, distance, forward, normal, weights

TOLERANCE = 5e-5
"""In units of the output's root mean square, for float32."""


@pytest.mark.parametrize(
    ("layer", "reason"),
    [
        (ViTAttention(49, 64), "token_len.*49.*64"),
        (ViTAttention(64, 32, 4), "token_len.*64.*32"),
        (ViTAttention(8, 8, 2, qk_scale=1.0), r"scale.*1\.0"),
        (ViTAttention(8, 8, 2, qk_scale=0.0), r"scale.*0\.0"),
        (nn.Linear(8, 8), "Linear"),
    ],
    ids=["narrower tokens", "wider tokens", "custom scale", "zero scale", "another layer"],
)
def test_unsupported(layer: nn.Module, reason: str) -> None:
    """What nn.MultiheadAttention can't express is unsupported, with the reason and the numbers."""
    with pytest.raises(Unsupported, match=reason):
        build(layer, "mha")


def test_the_default_scale_may_be_spelled_out() -> None:
    """A scale that equals D**-0.5 is the one built in, and the output is the reference's."""
    layer = ViTAttention(12, 12, 3, qk_scale=4**-0.5)
    x = normal(2, 7, 12)

    assert distance(build(layer, "mha")(x), forward(array(x), weights(layer), 3).y) < TOLERANCE


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


@pytest.mark.parametrize("qkv_bias", [False, True])
def test_inference_takes_the_fast_path(qkv_bias: bool) -> None:
    """In eval and inference mode PyTorch's own fast path runs, for a layer without QKV bias as well."""
    implementation = build(ViTAttention(8, 8, 2, qkv_bias).eval(), "mha")
    x = normal(2, 5, 8)

    with torch.inference_mode(), torch.profiler.profile() as profile:
        implementation(x)

    assert "aten::_native_multi_head_attention" in {event.name for event in profile.events() or []}


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
