"""Convolutional self-attention with a learned residual (`impls.layers.conv`)."""

import math

from bench.plan.case import Point
from bench.plan.errors import WrongRequest
from bench.plan.layers.layer import VIEW, Layer, Step, Values, check_tokens, core, projection
from impls.catalogue import KEY_SHARE


def _derive(values: Values) -> Values:
    image, channels = values["image_size"], values["channels"]
    if channels < KEY_SHARE:
        raise WrongRequest(
            f"channels = {channels} must be at least {KEY_SHARE} in the layer conv: keys have channels // {KEY_SHARE}"
        )
    if values.get("token_len", channels) != channels:
        raise WrongRequest(f"token_len = {values['token_len']} must equal channels = {channels} in the layer conv")
    check_tokens(values, image**2, f"image_size = {image}, a token for each pixel,")
    return {"token_len": channels, "num_tokens": image**2}


def _steps(point: Point) -> dict[str, Step]:
    tokens, channels = point.batch * point.num_tokens, point.channels
    keys, values = channels // KEY_SHARE, tokens * channels
    return {
        "qkv projection": projection(tokens, channels, 2 * keys + channels, bias=True),
        "split heads": VIEW,
        **core(point, keys, channels),
        "merge heads": VIEW,
        # gamma, maps and x in; backward the gradients of gamma and maps, while that of x is the output's own
        "skip": Step(3 * values + 1, 3 * values + 2, weights=1),
    }


def _output(point: Point) -> tuple[int, ...]:
    side = math.isqrt(point.num_tokens)
    return point.batch, point.channels, side, side


LAYER = Layer(
    name="conv",
    module="layers.conv:ConvSelfAttention",
    meaning="attention over the pixels of a map, keys an eighth of values, a learned residual (ConvSABlock)",
    steps=_steps,
    needs=("image_size",),
    fixed={"num_heads": 1, "qkv_bias": True},
    derive=_derive,
    output=_output,
)
