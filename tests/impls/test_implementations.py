"""Every implementation against the float64 reference: outputs, and gradients of x and of every weight."""

import os
import shutil
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from impls import IMPLEMENTATIONS, Implementation, build
from impls.layers.vit import ViTAttention
from tests.impls.hardware import NOT_EAGER_ON_CPU
from tests.impls.reference import array, distance, forward, gradients, normal, weights

pytestmark = pytest.mark.slow

Shape = tuple[int, int, int, int, int, bool]
"""batch, tokens, token length, channels, heads, QKV bias"""

SHAPES: list[Shape] = [
    (2, 1, 8, 8, 2, True),  # one token attends to itself
    (2, 2, 8, 8, 2, False),
    (3, 13, 12, 12, 3, False),  # a prime number of tokens
    (3, 13, 12, 12, 3, True),
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

INPUTS = {1.0: NORMAL_TOLERANCE, 5.0: PEAKED_TOLERANCE}
"""The factors on normal tokens, each with its tolerance: scores grow with its square, so that 5 peaks the softmax."""

COMPILED = ("compiled_eager", "compiled_sdpa")

needs_compiler = pytest.mark.skipif(
    not shutil.which(os.environ.get("CXX", "g++")), reason="torch.compile needs a C++ compiler on the CPU"
)


def expressible(name: str, shape: Shape) -> bool:
    """Return whether an implementation can express a shape: nn.MultiheadAttention needs dim = chan."""
    return name not in ("mha", "mha_weights") or shape[2] == shape[3]


UNCOMPILED = [name for name in IMPLEMENTATIONS if name not in (*COMPILED, *NOT_EAGER_ON_CPU)]


def layer_of(shape: Shape) -> ViTAttention:
    """Return a layer whose parameters are all large enough to matter."""
    _, _, dim, chan, heads, qkv_bias = shape
    layer = ViTAttention(dim, chan, heads, qkv_bias)
    for name, parameter in layer.named_parameters():
        scale = 1.0 if name.endswith("bias") else parameter.shape[1] ** -0.5
        nn.init.normal_(parameter, std=scale)
    return layer


def tokens_of(shape: Shape, factor: float) -> Tensor:
    """Return tokens for a shape."""
    batch, tokens, dim = shape[:3]
    return factor * normal(batch, tokens, dim)


def gradients_of(implementation: Implementation, layer: nn.Module, x: Tensor, dy: Tensor) -> dict[str, Tensor]:
    """Return the gradients of x and of the layer's own parameters."""
    x = x.clone().requires_grad_()
    implementation(x).backward(dy)
    found = {"x": x.grad, **{name: parameter.grad for name, parameter in layer.named_parameters()}}
    return {name: gradient for name, gradient in found.items() if gradient is not None}


def gradient_errors(implementation: Implementation, layer: ViTAttention, x: Tensor) -> dict[str, float]:
    """Return how far the gradients of x and of every weight are off those that are derived by hand."""
    dy = normal(*x.shape[:2], layer.proj.out_features)
    expected = gradients(array(x), weights(layer), layer.num_heads, array(dy))
    got = gradients_of(implementation, layer, x, dy)
    assert got.keys() == expected.keys()
    return {name: distance(got[name], expected[name]) for name in expected}


@pytest.mark.parametrize("name", UNCOMPILED)
def test_outputs_and_gradients(name: str) -> None:
    """The float32 output, with and without a graph, and the gradients of x and of every weight are the reference's."""
    wrong: dict[tuple[Shape, float, str], float] = {}
    for shape in (each for each in SHAPES if expressible(name, each)):
        layer = layer_of(shape)
        for factor, tolerance in INPUTS.items():
            x = tokens_of(shape, factor)
            y = forward(array(x), weights(layer), layer.num_heads).y
            with torch.inference_mode():
                found = {"output": distance(build(layer.eval(), name)(x), y)}
            trained = build(layer.train(), name)
            found |= {"output with a graph": distance(trained(x), y)} | gradient_errors(trained, layer, x)
            wrong |= {(shape, factor, what): error for what, error in found.items() if not error < tolerance}
            layer.zero_grad()
    assert wrong == {}


@pytest.fixture
def _fresh_compiler() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@needs_compiler
@pytest.mark.usefixtures("_fresh_compiler")
def test_compiled_gradients() -> None:
    """A compiled implementation's gradients are the reference's too; a real worker trains the other one."""
    shape = (2, 13, 10, 12, 3, True)
    layer = layer_of(shape)

    found = gradient_errors(build(layer, "compiled_sdpa"), layer, tokens_of(shape, 1.0))

    assert {what: error for what, error in found.items() if not error < NORMAL_TOLERANCE} == {}


@needs_compiler
@pytest.mark.usefixtures("_fresh_compiler")
def test_compiled_output_follows_the_layers_weights() -> None:
    """A compiled implementation computes with the layer's weights as they are now, not as they were compiled."""
    shape = (2, 13, 10, 12, 3, False)
    layer = layer_of(shape).eval()
    implementation = build(layer, "compiled_sdpa")
    x = tokens_of(shape, 1.0)

    with torch.inference_mode():
        before = distance(implementation(x), forward(array(x), weights(layer), 3).y)
        layer.qkv.weight.mul_(1.5)
        after = distance(implementation(x), forward(array(x), weights(layer), 3).y)

    assert max(before, after) < NORMAL_TOLERANCE


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("tokens", [1, 7, 130])
@pytest.mark.parametrize("name", UNCOMPILED)
def test_a_causal_layer(name: str, tokens: int, training: bool) -> None:
    """Output and gradients of a causal layer are those of the reference, whose later tokens were cut off one by one."""
    layer = ViTAttention(8, 8, 2, mask="causal").double().train(training)
    whole = ViTAttention(8, 8, 2).double()
    whole.load_state_dict(layer.state_dict())
    x, dy = normal(2, tokens, 8, dtype=torch.float64), normal(2, tokens, 8, dtype=torch.float64)
    places = sorted({0, tokens // 2, tokens - 1})

    y = build(layer, name)(x)
    (y[:, places] * dy[:, places]).sum().backward()
    cut = torch.stack([whole(x[:, : place + 1])[:, -1] for place in places], dim=1)
    (cut * dy[:, places]).sum().backward()

    assert distance(y[:, places], array(cut)) < 1e-12
    for own, reference in zip(layer.parameters(), whole.parameters(), strict=True):
        assert own.grad is not None
        assert reference.grad is not None
        assert distance(own.grad, array(reference.grad)) < 1e-12
