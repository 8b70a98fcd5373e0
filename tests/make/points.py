"""Points: tiny ones with every column given, and ViT-S."""

from collections.abc import Collection
from typing import Any

from bench.modules.core import wrapped
from bench.modules.making import make
from bench.modules.wrapper import Wrapper
from bench.plan.case import COLUMNS, Point
from bench.plan.layers import LAYERS

TINY: dict[str, Any] = {
    "layer": "vit",
    "device": "cpu",
    "dtype": "float32",
    "mode": "inference",
    "batch": 2,
    "num_tokens": 7,
    "token_len": 12,
    "channels": 12,
    "num_heads": 3,
    "qkv_bias": False,
    "mask": "none",
    "threads": 1,
    "allocator": "retained",
    "timing": "host",
}

WITH_CONTEXT = {"layer": "tests.own_layers:Crossed", "num_kv_tokens": 5, "context_dim": 10}
"""The columns in which a layer of two inputs differs from TINY; five tokens of the context have ten numbers each."""

VIT_S: dict[str, Any] = {
    **{name: TINY.get(name, column.absent) for name, column in COLUMNS.items()},
    "batch": 8,
    "num_tokens": 197,
    "token_len": 384,
    "channels": 384,
    "num_heads": 6,
}

_OTHERS: dict[str, dict[str, Any]] = {
    "self": {"token_len": 10, "channels": 14, "key_channels": 6},
    "patch": {"image_size": 12, "patch_size": 4, "num_tokens": 9, "token_len": 48, "qkv_bias": True},
    "conv": {"image_size": 3, "num_tokens": 9, "token_len": 16, "channels": 16},
}
"""The columns of layers that can't have those of TINY."""

OF_LAYER: dict[str, dict[str, Any]] = {
    name: {**TINY, **layer.fixed, **_OTHERS.get(name, {})} for name, layer in LAYERS.items()
}
"""A tiny point of each layer, as a plan would make it, but for its name."""

_GROUPED = {"num_heads": 4, "num_kv_heads": 2, "channels": 16, "token_len": 16}

FEATURES: dict[str, dict[str, Any]] = {
    "plain": {},
    "causal": {"mask": "causal"},
    "padding": {"lengths": "uniform"},
    "context": {"num_kv_tokens": 5, "context_dim": 8, "qkv_bias": True},
    "causal context": {"num_kv_tokens": 9, "context_dim": 8, "mask": "causal"},
    "causal short context": {"num_kv_tokens": 4, "context_dim": 8, "mask": "causal"},
    "one query": {"num_tokens": 1, "num_kv_tokens": 9, "context_dim": 12},
    "grouped heads": _GROUPED,
    "qk norm rms": {"qk_norm": "rms"},
    "qk norm layer": {"qk_norm": "layer"},
    "rope": {"rope": "axial"},
    "alibi": {"attn_bias": "alibi"},
    "relative": {"attn_bias": "relative", "qkv_bias": True},
    "relative causal": {"attn_bias": "relative", "mask": "causal"},
    "relative padding": {"attn_bias": "relative", "lengths": "uniform"},
    "relative causal padding": {"attn_bias": "relative", "mask": "causal", "lengths": "uniform"},
    "given": {"attn_bias": "given", "num_kv_tokens": 9},
    "learned": {"attn_bias": "learned"},
    "windows": {"num_tokens": 16, "window_size": 2, "attn_bias": "relative"},
    "many": {**_GROUPED, "lengths": "uniform", "attn_bias": "relative", "qk_norm": "rms"},
}
"""The columns of tiny points of `attention` and `core`, one for each feature and some for several at once."""

OF_CORE = ("given", "learned")
"""The biases that `core` has, and no other layer."""


def featured(layer: str, *, but: Collection[str] = ()) -> dict[str, Point]:
    """Return the tiny points of a layer with those features that it has, by their names."""
    declared = LAYERS[layer]
    lacks = {*declared.without, *declared.fixed, *but}
    points = {}
    for name, columns in FEATURES.items():
        given = {each: value for each, value in columns.items() if each != "context_dim" or each not in lacks}
        is_of_core = columns.get("attn_bias") in OF_CORE
        if "attn_bias" in columns and is_of_core != (layer == "core"):
            continue
        if not lacks & {name, *given}:
            points[name] = of_layer(layer, **given)
    return points


def of_layer(layer: str, **columns: Any) -> Point:
    """Return the tiny point of a layer with some columns changed."""
    return Point(**{**OF_LAYER[layer], "layer": layer, **columns})


def point(**columns: Any) -> Point:
    """Return a tiny point with some columns changed; token_len follows channels unless it is given."""
    followed = {"token_len": columns["channels"]} if "channels" in columns else {}
    return Point(**{**TINY, **followed, **columns})


def vit_s(**changes: Any) -> Point:
    """Return the point of ViT-S at 224 pixels, some of its values changed."""
    return Point(**{**VIT_S, **changes})


def made(name: str, **columns: Any) -> Wrapper:
    """Return a module by its name in a wrapper, in eval mode; columns default to TINY's."""
    module, shapes = make(name, {**vars(point()), **columns})
    return wrapped(module.eval(), tuple(shape[1:] for shape in shapes))
