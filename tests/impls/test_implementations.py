"""Every implementation beside its layer in float64: outputs, and gradients of x and of every weight."""

import copy

import pytest
import torch
from torch import Tensor, nn

from impls import Implementation, build
from impls.layers.vit import ViTAttention
from tests.impls.reference import UNCOMPILED, array, distance, normal

pytestmark = pytest.mark.slow

TOLERANCE = 5e-5
"""In units of the root mean square: plain float32 arithmetic errs by up to 8e-6 at these shapes."""

PEAKED_TOLERANCE = 1e-3
"""Peaked scores are tens large, and exp passes their rounding on: plain float32 arithmetic errs by up to 2e-4."""


def results(implementation: Implementation, layer: nn.Module, x: Tensor, dy: Tensor) -> list[Tensor]:
    """Return an output, and the gradients of x and of the layer's weights."""
    x = x.clone().requires_grad_()
    y = implementation(x)
    return [y, *torch.autograd.grad(y, [x, *layer.parameters()], dy)]


def errors(name: str, layer: ViTAttention, x: Tensor) -> list[float]:
    """Return the errors of an implementation's results against its layer in float64."""
    exact, dy = copy.deepcopy(layer).double(), normal(*x.shape[:2], layer.proj.out_features)
    expected = results(exact, exact, x.double(), dy.double())
    with torch.inference_mode():
        inferred = build(layer.eval(), name)(x)
    got = results(build(layer.train(), name), layer, x, dy)
    pairs = zip([inferred, *got], expected[:1] + expected, strict=True)
    return [distance(each, array(of)) for each, of in pairs]


@pytest.mark.parametrize("mask", ["none", "causal"])
@pytest.mark.parametrize("name", UNCOMPILED)
def test_outputs_and_gradients(name: str, mask: str) -> None:
    """In float32, with a number of tokens just above online's block, one token, and with peaked scores."""
    for tokens, factor, tolerance in ((131, 1.0, TOLERANCE), (1, 1.0, TOLERANCE), (13, 5.0, PEAKED_TOLERANCE)):
        layer = ViTAttention(12, 12, 3, tokens < 100, mask=mask)
        assert max(errors(name, layer, factor * normal(2, tokens, 12))) < tolerance, tokens


@pytest.mark.toolchain
@pytest.mark.usefixtures("fresh_compiler", "compiler")
def test_a_compiled_implementation() -> None:
    """It computes with the layer's weights as they are now, not as they were compiled."""
    layer, x = ViTAttention(10, 12, 3, True), normal(2, 13, 10)
    for _ in range(2):
        assert max(errors("compiled_sdpa", layer, x)) < TOLERANCE
        with torch.no_grad():
            layer.qkv.weight.mul_(1.5)
