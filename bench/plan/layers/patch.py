"""Patch embedding, then attention (`impls.layers.patch`)."""

from bench.plan.case import Point
from bench.plan.errors import WrongRequest
from bench.plan.layers.layer import (
    VIEW,
    Layer,
    Step,
    Values,
    check_tokens,
    core,
    merge_heads,
    projection,
)

RGB = 3
"""The channels of an image if a sweep gives no token_len."""


def _derive(values: Values) -> Values:
    image, patch = values["image_size"], values["patch_size"]
    if image % patch:
        raise WrongRequest(f"image_size = {image} must be divisible by patch_size = {patch}")
    token_len = values.get("token_len", RGB * patch**2)
    if token_len % patch**2:
        raise WrongRequest(
            f"token_len = {token_len} must be a multiple of patch_size² = {patch**2}, the pixels of a patch"
        )
    check_tokens(values, (image // patch) ** 2, f"image_size = {image} with patch_size = {patch},")
    return {"token_len": token_len, "num_tokens": (image // patch) ** 2}


def _steps(point: Point) -> dict[str, Step]:
    tokens, embedded = point.batch * point.num_tokens, point.channels
    return {
        "patch embedding": projection(tokens, point.token_len, embedded, bias=True),
        "qkv projection": projection(tokens, embedded, 3 * embedded, bias=True),
        "split heads": VIEW,
        **core(point, embedded, embedded),
        "merge heads": merge_heads(point),
        "output projection": projection(tokens, embedded, embedded, bias=True),
    }


LAYER = Layer(
    name="patch",
    module="layers.patch:PatchAttention",
    meaning="patch embedding of an image, multi-head self-attention, output projection (AttentionBlock)",
    steps=_steps,
    needs=("image_size", "patch_size"),
    fixed={"qkv_bias": True},
    derive=_derive,
)
