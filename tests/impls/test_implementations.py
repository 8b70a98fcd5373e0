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

INPUTS = [
    pytest.param(1.0, NORMAL_TOLERANCE, id="normal"),
    pytest.param(5.0, PEAKED_TOLERANCE, id="peaked"),
]
"""The factor on normal tokens: scores grow with its square, so that 5 peaks the softmax."""

COMPILED = ("compiled_eager", "compiled_sdpa")

needs_compiler = pytest.mark.skipif(
    not shutil.which(os.environ.get("CXX", "g++")), reason="torch.compile needs a C++ compiler on the CPU"
)


def expressible(name: str, shape: Shape) -> bool:
    """Return whether an implementation can express a shape: nn.MultiheadAttention needs dim = chan."""
    return name not in ("mha", "mha_weights") or shape[2] == shape[3]


UNCOMPILED = [
    pytest.param(name, shape, id=f"{name}-{'x'.join(map(str, shape[:5]))}{'-bias' * shape[5]}")
    for name in IMPLEMENTATIONS
    for shape in SHAPES
    if not name.startswith("compiled") and name not in NOT_EAGER_ON_CPU and expressible(name, shape)
]


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


def assert_gradients_match(implementation: Implementation, layer: ViTAttention, x: Tensor, tolerance: float) -> None:
    """Compare the gradients of x and of every weight with those derived by hand."""
    dy = normal(*x.shape[:2], layer.proj.out_features)
    expected = gradients(array(x), weights(layer), layer.num_heads, array(dy))

    got = gradients_of(implementation, layer, x, dy)

    assert got.keys() == expected.keys()
    errors = {name: distance(got[name], expected[name]) for name in expected}
    assert {name: error for name, error in errors.items() if error >= tolerance} == {}


@pytest.mark.parametrize(("factor", "tolerance"), INPUTS)
@pytest.mark.parametrize("mode", ["inference", "train"])
@pytest.mark.parametrize(("name", "shape"), UNCOMPILED)
def test_output(name: str, shape: Shape, mode: str, factor: float, tolerance: float) -> None:
    """An implementation's float32 output is the reference's, with and without a graph."""
    layer = layer_of(shape).train(mode == "train")
    x = tokens_of(shape, factor)
    expected = forward(array(x), weights(layer), layer.num_heads).y

    with torch.inference_mode(mode == "inference"):
        y = build(layer, name)(x)

    assert distance(y, expected) < tolerance


@pytest.mark.parametrize(("factor", "tolerance"), INPUTS)
@pytest.mark.parametrize(("name", "shape"), UNCOMPILED)
def test_gradients(name: str, shape: Shape, factor: float, tolerance: float) -> None:
    """An implementation's gradients of x and of every weight are the reference's."""
    layer = layer_of(shape)

    assert_gradients_match(build(layer, name), layer, tokens_of(shape, factor), tolerance)


@pytest.fixture
def _fresh_compiler() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@needs_compiler
@pytest.mark.usefixtures("_fresh_compiler")
@pytest.mark.parametrize("name", COMPILED)
def test_compiled_gradients(name: str) -> None:
    """A compiled implementation's gradients are the reference's too."""
    shape = (2, 13, 10, 12, 3, True)
    layer = layer_of(shape)

    assert_gradients_match(build(layer, name), layer, tokens_of(shape, 1.0), NORMAL_TOLERANCE)


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
@pytest.mark.parametrize("name", [name for name in IMPLEMENTATIONS if name not in (*COMPILED, *NOT_EAGER_ON_CPU)])
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
