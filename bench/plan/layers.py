"""What each layer makes of the values of a point: those that it needs, those that it fixes, those that follow.

Every layer has columns that are its own to choose. A value that contradicts the layer is refused, never bent.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bench.plan.errors import WrongRequest

Values = dict[str, Any]

RGB = 3
"""Channels of an image where nothing is said."""

KEY_SHARE = 8
"""Queries and keys of `conv` are so many times narrower than its values."""


@dataclass(frozen=True)
class Rule:
    """The columns that a layer needs, those that it fixes, and those that have no place in it.

    `follows` returns the values that follow from the others, or refuses those.
    """

    needs: tuple[str, ...]
    without: tuple[str, ...]
    follows: Callable[[Values], Values]
    fixed: Mapping[str, Any] = field(default_factory=dict)


def complete(values: Values) -> Values:
    """Return the values of a point with all that its layer fixes or that follows from them.

    A column that has no place in the layer is None.
    Raises WrongRequest for one that is missing, has no place in the layer, or contradicts it.
    """
    layer = values["layer"]
    rule = RULES[layer]
    for name in rule.needs:
        if name not in values:
            raise WrongRequest(f"{name} is missing; the layer {layer} needs it")
    for name in rule.without:
        if values.get(name) is not None:
            raise WrongRequest(f"{name} = {values[name]} has no place in the layer {layer}")
    for name, value in rule.fixed.items():
        if values.setdefault(name, value) != value:
            raise WrongRequest(f"{name} = {_toml(values[name])} must be {_toml(value)} in the layer {layer}")
    _check_heads(values)
    for name, value in rule.follows(values).items():
        values.setdefault(name, value)
    return {**dict.fromkeys(rule.without), "qkv_bias": False, "qk_scale": None, **values}


def usable(layer: str, usual: Values) -> Values:
    """Return the usual values without those that a layer fixes, derives or has no place for."""
    rule = RULES[layer]
    derived = ("num_tokens", "token_len") if "image_size" in rule.needs else ()
    return {name: value for name, value in usual.items() if name not in (*rule.without, *rule.fixed, *derived)}


def _vit(values: Values) -> Values:
    return {"token_len": values["channels"]}


def _self(values: Values) -> Values:
    return {"token_len": values["channels"], "key_channels": values["channels"]}


def _patch(values: Values) -> Values:
    image, patch = values["image_size"], values["patch_size"]
    if image % patch:
        raise WrongRequest(f"image_size = {image} must be divisible by patch_size = {patch}")
    token_len = values.get("token_len", RGB * patch**2)
    if token_len % patch**2:
        raise WrongRequest(
            f"token_len = {token_len} must be a multiple of patch_size² = {patch**2}, the pixels of a patch"
        )
    _check_tokens(values, (image // patch) ** 2, f"image_size = {image} with patch_size = {patch},")
    return {"token_len": token_len, "num_tokens": (image // patch) ** 2}


def _conv(values: Values) -> Values:
    image, channels = values["image_size"], values["channels"]
    if channels < KEY_SHARE:
        raise WrongRequest(
            f"channels = {channels} must be at least {KEY_SHARE} in the layer conv: keys have channels // {KEY_SHARE}"
        )
    if values.get("token_len", channels) != channels:
        raise WrongRequest(f"token_len = {values['token_len']} must equal channels = {channels} in the layer conv")
    _check_tokens(values, image**2, f"image_size = {image}, a token for each pixel,")
    return {"token_len": channels, "num_tokens": image**2}


def _check_heads(values: Values) -> None:
    channels, heads = values["channels"], values["num_heads"]
    if channels % heads:
        raise WrongRequest(f"channels = {channels} must be divisible by num_heads = {heads}")


def _check_tokens(values: Values, tokens: int, origin: str) -> None:
    said = values.get("num_tokens", tokens)
    if said != tokens:
        raise WrongRequest(f"num_tokens = {said} contradicts {origin} which makes {tokens}; leave num_tokens out")


def _toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


RULES = {
    "vit": Rule(("num_tokens",), ("key_channels", "image_size", "patch_size"), _vit),
    "self": Rule(("num_tokens",), ("qk_scale", "image_size", "patch_size"), _self, {"num_heads": 1, "qkv_bias": False}),
    "patch": Rule(("image_size", "patch_size"), ("qk_scale", "key_channels"), _patch, {"qkv_bias": True}),
    "conv": Rule(
        ("image_size",), ("qk_scale", "key_channels", "patch_size"), _conv, {"num_heads": 1, "qkv_bias": True}
    ),
}
"""The rule of every layer, by the formulas and contracts that `impls.layers` spells out."""
