"""From the columns of a point to a layer."""

from pathlib import Path
from typing import Any

import pytest

from impls.layers import construct
from impls.layers.conv import ConvSelfAttention
from impls.layers.patch import PatchAttention
from impls.layers.self_attention import SelfAttention
from impls.layers.vit import ViTAttention

COLUMNS: dict[str, Any] = {
    "token_len": 48,
    "channels": 64,
    "num_heads": 4,
    "qkv_bias": True,
    "qk_scale": None,
    "key_channels": 24,
    "image_size": 32,
    "patch_size": 4,
    "mask": "causal",
}

USERS_LAYER = """
from torch import nn

class Wide(nn.Module):
    def __init__(self, heads, *, chan, token_len, mask):
        super().__init__()
        self.got = (heads, chan, token_len, mask)

class Curious(nn.Module):
    def __init__(self, colour):
        super().__init__()

def no_module(dim):
    return 3
"""


@pytest.fixture
def users_layer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a user's module on the path."""
    (tmp_path / "users_layer.py").write_text(USERS_LAYER, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)


def test_vit_takes_its_columns() -> None:
    """The width in, the width out, heads, bias and mask are those of the columns."""
    layer = construct("impls.layers.vit:ViTAttention", COLUMNS)

    assert isinstance(layer, ViTAttention)
    assert (layer.qkv.in_features, layer.proj.in_features, layer.num_heads) == (48, 64, 4)
    assert layer.qkv.bias is not None
    assert layer.mask == "causal"


def test_self_takes_its_columns() -> None:
    """Keys have a width of their own."""
    layer = construct("impls.layers.self_attention:SelfAttention", COLUMNS)

    assert isinstance(layer, SelfAttention)
    assert (layer.query.in_features, layer.query.out_features, layer.value.out_features) == (48, 24, 64)


def test_patch_takes_its_columns() -> None:
    """The channels of the image are what a token's width leaves for each pixel of a patch."""
    layer = construct("impls.layers.patch:PatchAttention", COLUMNS)

    assert isinstance(layer, PatchAttention)
    assert (layer.proj.in_channels, layer.patch_size, layer.to_q.in_features, layer.heads) == (3, 4, 64, 4)


def test_conv_takes_its_columns() -> None:
    """Each pixel is a token, so the channels of the map are the token's width."""
    layer = construct("impls.layers.conv:ConvSelfAttention", {**COLUMNS, "token_len": 64, "patch_size": None})

    assert isinstance(layer, ConvSelfAttention)
    assert layer.v.in_channels == 64


@pytest.mark.usefixtures("users_layer")
def test_a_users_layer_gets_what_its_signature_names() -> None:
    """Names and their aliases are given in whatever order, and nothing else."""
    assert construct("users_layer:Wide", COLUMNS).got == (4, 64, 48, "causal")


@pytest.mark.usefixtures("users_layer")
@pytest.mark.parametrize(
    ("layer", "reason"),
    [
        ("no_such_module:Layer", "no_such_module"),
        ("users_layer:Nothing", "Nothing"),
        ("users_layer:Curious", "asks for 'colour', which is no column"),
        ("users_layer:no_module", "must make a torch.nn.Module, got int"),
    ],
)
def test_what_makes_no_layer_is_refused(layer: str, reason: str) -> None:
    """The refusal is one line that names the layer and the reason."""
    with pytest.raises(LookupError) as refusal:
        construct(layer, COLUMNS)

    assert reason in str(refusal.value)
    assert "\n" not in str(refusal.value)
