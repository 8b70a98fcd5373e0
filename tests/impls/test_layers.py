"""From the columns of a point to a layer."""

import operator
from pathlib import Path
from typing import Any

import pytest

from impls.layers import construct
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


@pytest.mark.parametrize(
    ("layer", "facts"),
    [
        ("vit:ViTAttention", {"qkv.in_features": 48, "proj.in_features": 64, "num_heads": 4, "mask": "causal"}),
        (
            "self_attention:SelfAttention",
            {"query.in_features": 48, "query.out_features": 24, "value.out_features": 64},
        ),
        # the channels of the image are what a token's width leaves for each pixel of a patch
        ("patch:PatchAttention", {"proj.in_channels": 3, "patch_size": 4, "to_q.in_features": 64, "heads": 4}),
        # each pixel is a token, so the channels of the map are the token's width
        ("conv:ConvSelfAttention", {"v.in_channels": 64}),
    ],
)
def test_a_layer_takes_its_columns(layer: str, facts: dict[str, object]) -> None:
    """Widths, heads, bias and mask are those of the columns, as far as the layer has them."""
    conv = {"token_len": 64, "patch_size": None} if layer.startswith("conv") else {}
    built = construct(f"impls.layers.{layer}", {**COLUMNS, **conv})

    assert {name: operator.attrgetter(name)(built) for name in facts} == facts
    assert not isinstance(built, ViTAttention) or built.qkv.bias is not None


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
