"""Every implementation against the float64 reference: outputs, and gradients of x and of every weight."""

import os
import shutil

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from impls import Implementation, build
from impls.layers.vit import ViTAttention
from tests.impls import oracle
from tests.impls.reference import ROUNDING, UNCOMPILED, Array, array, distance, error, forward, normal, weights

pytestmark = pytest.mark.slow

Shape = tuple[int, int, int, int, int, bool]
"""batch, tokens, token length, channels, heads, QKV bias"""

SHAPES: list[Shape] = [
    (2, 1, 8, 8, 2, True),  # one token attends to itself
    (3, 13, 12, 12, 3, True),  # a prime number of tokens
    (2, 7, 6, 6, 6, True),  # as many heads as channels
    (1, 131, 24, 24, 3, False),  # a prime number just above online's block
    (13, 100, 49, 64, 1, False),  # the article's, dim ≠ chan
    (13, 100, 49, 64, 4, True),
    (2, 9, 10, 4, 2, True),  # wider on the way in
]

NORMAL_TOLERANCE = 5e-5
"""In units of the expected values' root mean square: plain float32 arithmetic errs by up to 8e-6 at these shapes."""

PEAKED_TOLERANCE = 1e-3
"""Peaked scores are tens large, and exp passes their rounding on: plain float32 arithmetic errs by up to 2e-4."""

CASES = [*((shape, 1.0, NORMAL_TOLERANCE) for shape in SHAPES), (SHAPES[1], 5.0, PEAKED_TOLERANCE)]
"""Shapes, and the factors on normal tokens with a tolerance: scores grow with its square, so that 5 peaks them."""

needs_compiler = pytest.mark.skipif(
    not shutil.which(os.environ.get("CXX", "g++")), reason="torch.compile needs a C++ compiler on the CPU"
)


def layer_of(dim: int, chan: int, heads: int, qkv_bias: bool) -> ViTAttention:
    """Return a layer whose parameters are all large enough to matter."""
    layer = ViTAttention(dim, chan, heads, qkv_bias)
    for name, parameter in layer.named_parameters():
        nn.init.normal_(parameter, std=1.0 if name.endswith("bias") else parameter.shape[1] ** -0.5)
    return layer


def gradient_errors(implementation: Implementation, layer: ViTAttention, x: Tensor) -> dict[str, float]:
    """Return how far the gradients of x and of every weight are off the slopes of the formula in a direction."""
    x, dy = x.clone().requires_grad_(), normal(*x.shape[:2], layer.proj.out_features)
    implementation(x).backward(dy)
    tensors, values = {"x": x, **dict(layer.named_parameters())}, {"x": array(x), **weights(layer)}

    def formula(values: oracle.Values) -> Array:
        return forward(values["x"], values, layer.num_heads)

    errors = {}
    for name, tensor in tensors.items():
        assert tensor.grad is not None
        direction = np.random.default_rng(1).normal(size=tensor.shape)
        expected = oracle.slope(formula, values, name, direction, array(dy))
        off = float((array(tensor.grad) * direction).sum()) - expected
        errors[name] = abs(off) / (float(tensor.grad.norm()) or 1.0)  # a slope is as large as the gradient is long
    return errors


@pytest.mark.parametrize("name", UNCOMPILED)
def test_outputs_and_gradients(name: str) -> None:
    """The float32 output, with and without a graph, and the gradients of x and of every weight are the reference's."""
    wrong: dict[tuple[Shape, float, str], float] = {}
    for shape, factor, tolerance in CASES:
        batch, tokens, dim, chan, *_ = shape
        if name.startswith("mha") and dim != chan:
            continue  # nn.MultiheadAttention can't express it
        layer, x = layer_of(*shape[2:]), factor * normal(batch, tokens, dim)
        with torch.inference_mode():
            errors = {"output": error(build(layer.eval(), name)(x), layer, x)}
        trained = build(layer.train(), name)
        errors |= {"output with a graph": error(trained(x), layer, x)} | gradient_errors(trained, layer, x)
        assert len(errors) == 2 + 1 + len([*layer.parameters()])
        wrong |= {(shape, factor, what): off for what, off in errors.items() if not off < tolerance}
    assert wrong == {}


@needs_compiler
@pytest.mark.toolchain
@pytest.mark.usefixtures("fresh_compiler")
def test_a_compiled_implementation() -> None:
    """A compiled implementation's gradients are the reference's too; a real worker trains the other one.

    It computes with the layer's weights as they are now, not as they were compiled.
    """
    layer = layer_of(10, 12, 3, True)
    implementation, x = build(layer, "compiled_sdpa"), normal(2, 13, 10)
    for _ in range(2):
        errors = {"output": error(implementation(x), layer, x)} | gradient_errors(implementation, layer, x)
        assert {what: off for what, off in errors.items() if not off < NORMAL_TOLERANCE} == {}
        layer.zero_grad()
        with torch.no_grad():
            layer.qkv.weight.mul_(1.5)


@pytest.mark.parametrize("name", UNCOMPILED)
def test_a_causal_layer(name: str) -> None:
    """Outputs and gradients of a causal layer are the reference's, whose later tokens were cut off one by one."""
    for tokens in (1, 7):
        layer = ViTAttention(8, 8, 2, mask="causal").double()
        whole = ViTAttention(8, 8, 2).double()
        whole.load_state_dict(layer.state_dict())
        x, dy = normal(2, tokens, 8, dtype=torch.float64), normal(2, tokens, 8, dtype=torch.float64)
        places = sorted({0, tokens // 2, tokens - 1})

        with torch.inference_mode():
            inferred = build(layer.eval(), name)(x)
        y = build(layer.train(), name)(x)
        (y[:, places] * dy[:, places]).sum().backward()
        cut = torch.stack([whole(x[:, : place + 1])[:, -1] for place in places], dim=1)
        (cut * dy[:, places]).sum().backward()

        for output in (inferred, y):
            assert distance(output[:, places], array(cut)) < ROUNDING
        for own, reference in zip(layer.parameters(), whole.parameters(), strict=True):
            assert own.grad is not None
            assert reference.grad is not None
            assert distance(own.grad, array(reference.grad)) < ROUNDING
