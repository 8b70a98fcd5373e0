"""What each layer makes of a point's values."""

from typing import Any

import pytest
from torch import nn

from bench.plan.case import Case
from bench.plan.grid import DEFAULTS, expand
from bench.plan.layers import LAYERS, flops, least_bytes, peak_bytes, steps
from bench.plan.layers.conv import KEY_SHARE
from impls import layers
from impls.layers import conv
from tests.points import OF_LAYER, of_layer
from tests.refusals import refusal

OWN = {"threads": 1, "layer": "mylayer:MyAttention", "num_tokens": 7, "channels": 10}

LEAST: dict[str, dict[str, Any]] = {
    "vit": {"num_tokens": 7, "channels": 12, "num_heads": 3},
    "self": {"num_tokens": 7, "token_len": 10, "channels": 14, "key_channels": 6},
    "patch": {"image_size": 12, "patch_size": 4, "channels": 12, "num_heads": 3},
    "conv": {"image_size": 3, "channels": 16},
}
"""What a grid must say for the tiny point of each layer."""


def expanded(layer: str, **values: Any) -> Any:
    """Return the one point of a layer that a grid says, on a machine with one thread."""
    given = {**DEFAULTS, "threads": 1, "batch": 2, **LEAST[layer], **values, "layer": layer}
    (made,) = expand({name: value for name, value in given.items() if value != "unsaid"})
    return made


def test_every_layer_is_found() -> None:
    """Each file of the folder that declares a layer is one, and its module makes the layer; both share constants."""
    assert set(LAYERS) == set(OF_LAYER)
    built = [layers.construct(layer.module, vars(of_layer(name))) for name, layer in LAYERS.items()]
    assert all(isinstance(layer, nn.Module) for layer in built)
    assert KEY_SHARE == conv.KEY_SHARE


@pytest.mark.parametrize("layer", LAYERS)
def test_the_rest_follows(layer: str) -> None:
    """A grid says what is its own to choose, and all other columns follow from the layer."""
    assert expanded(layer) == of_layer(layer)


@pytest.mark.parametrize(
    ("layer", "values", "expected"),
    [
        ("self", {"key_channels": "unsaid"}, {"key_channels": 14}),
        ("self", {"token_len": "unsaid"}, {"token_len": 14}),
        ("patch", {"token_len": 64}, {"token_len": 64}),
        ("patch", {"num_tokens": 9}, {"num_tokens": 9}),
        ("conv", {"token_len": 16, "num_tokens": 9}, {"token_len": 16}),
        ("vit", {"qkv_bias": True, "qk_scale": 1}, {"qkv_bias": True, "qk_scale": 1.0}),
    ],
)
def test_what_can_be_said(layer: str, values: dict[str, Any], expected: dict[str, Any]) -> None:
    """A value that is the layer's to choose, or that agrees with what follows, is taken."""
    assert expanded(layer, **values) == of_layer(layer, **expected)


@pytest.mark.parametrize(
    ("layer", "values", "said"),
    [
        ("vit", {"num_tokens": "unsaid"}, "num_tokens is missing; the layer vit needs it"),
        ("patch", {"image_size": "unsaid"}, "image_size is missing; the layer patch needs it"),
        ("patch", {"patch_size": "unsaid"}, "patch_size is missing; the layer patch needs it"),
        ("conv", {"image_size": "unsaid"}, "image_size is missing; the layer conv needs it"),
        ("vit", {"image_size": 32}, "image_size = 32 is not used by the layer vit; leave it out"),
        ("vit", {"key_channels": 6}, "key_channels = 6 is not used by the layer vit; leave it out"),
        ("self", {"qk_scale": 0.5}, "qk_scale = 0.5 is not used by the layer self; leave it out"),
        ("conv", {"patch_size": 4}, "patch_size = 4 is not used by the layer conv; leave it out"),
        ("self", {"num_heads": 2}, "num_heads = 2 must be 1 in the layer self"),
        ("conv", {"num_heads": 4}, "num_heads = 4 must be 1 in the layer conv"),
        ("self", {"qkv_bias": True}, "qkv_bias = true must be false in the layer self"),
        ("patch", {"qkv_bias": False}, "qkv_bias = false must be true in the layer patch"),
        ("patch", {"image_size": 30}, "image_size = 30 must be divisible by patch_size = 4"),
        ("patch", {"token_len": 50}, "token_len = 50 must be a multiple of patch_size² = 16, the pixels of a patch"),
        ("patch", {"num_heads": 5}, "channels = 12 must be divisible by num_heads = 5"),
        (
            "patch",
            {"num_tokens": 8},
            "num_tokens = 8 contradicts image_size = 12 with patch_size = 4, which makes 9; leave num_tokens out",
        ),
        (
            "conv",
            {"num_tokens": 3},
            "num_tokens = 3 contradicts image_size = 3, a token for each pixel, which makes 9; leave num_tokens out",
        ),
        ("conv", {"channels": 4}, "channels = 4 must be at least 8 in the layer conv: keys have channels // 8"),
        ("conv", {"token_len": 8}, "token_len = 8 must equal channels = 16 in the layer conv"),
    ],
)
def test_a_contradiction_is_refused(layer: str, values: dict[str, Any], said: str) -> None:
    """What the layer needs and lacks, does not use or fixes otherwise gives one line, with the numbers."""
    assert refusal(expanded, layer, **values) == said


def test_a_users_layer_needs_tokens_and_channels() -> None:
    """The token length follows the channels, and heads need not divide them: that is the layer's own rule."""
    (point,) = expand({**DEFAULTS, **OWN, "num_heads": 3})
    assert (point.token_len, point.num_heads, point.qkv_bias, point.mask) == (10, 3, False, "none")
    without = {name: value for name, value in {**DEFAULTS, **OWN}.items() if name != "num_tokens"}
    assert refusal(lambda: list(expand(without))).startswith("num_tokens is missing; the layer mylayer:MyAttention")


def test_nothing_is_predicted_of_a_users_layer() -> None:
    """It has no steps, no count of operations and no peak; its least bytes are those of its input and output."""
    (made,) = expand({**DEFAULTS, **OWN})
    assert (flops(made), peak_bytes(Case(made, "eager")), dict(steps(made))) == (None, None, {})
    assert least_bytes(made) == 4 * (8 * 7 * 10 + 8 * 7 * 10)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("mylayer.py", "layer 'mylayer.py' must be spelled module:attribute"),
        ("./mylayer.py:MyAttention", "did you mean mylayer:MyAttention?"),
        ("mylayer:", f"must be one of {', '.join(LAYERS)}, module:attribute"),
        ("vti", "did you mean vit?"),
    ],
)
def test_what_is_no_layer_is_refused(name: str, reason: str) -> None:
    """The refusal says what came and what could have come."""
    assert reason in refusal(lambda: list(expand({**DEFAULTS, **OWN, "layer": name})))
