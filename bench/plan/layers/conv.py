"""Convolutional self-attention with a learned residual (`impls.layers.conv`)."""

import math
from types import MappingProxyType

from bench.plan.case import Point
from bench.plan.errors import WrongRequest
from bench.plan.layers.layer import Layer, Projection, Values, check_tokens
from impls.catalogue import KEY_SHARE


class Conv(Layer):
    """The layer `conv`."""

    name, module = "conv", "layers.conv:ConvSelfAttention"
    meaning = "attention over the pixels of a map, keys 1/8 as wide as values, learned residual (ConvSABlock)"
    needs = ("image_size",)
    fixed = MappingProxyType({"num_heads": 1, "qkv_bias": True})

    def derive(self, values: Values) -> Values:
        """Return the number of tokens, which are pixels."""
        image, channels = values["image_size"], values["channels"]
        if channels < KEY_SHARE:
            raise WrongRequest(
                f"channels = {channels} must be at least {KEY_SHARE} in the layer conv: "
                f"keys have channels // {KEY_SHARE}"
            )
        if values.get("token_len", channels) != channels:
            raise WrongRequest(f"token_len = {values['token_len']} must equal channels = {channels} in the layer conv")
        check_tokens(values, image**2, f"image_size = {image}, a token for each pixel,")
        return {"token_len": channels, "num_tokens": image**2}

    def core_widths(self, point: Point) -> tuple[int, int]:
        """Return the width of keys, a share of the values', and of values."""
        return point.channels // KEY_SHARE, point.channels

    def projections(self, point: Point) -> tuple[Projection, ...]:
        """Return the projection to queries, keys and values."""
        keys, values = self.core_widths(point)
        return (Projection(point.batch * point.num_tokens, point.channels, 2 * keys + values),)

    def further_weights(self, point: Point) -> int:  # noqa: ARG002
        """Return 1, for the weight of the residual."""
        return 1

    def output(self, point: Point) -> tuple[int, ...]:
        """Return the shape of a map."""
        side = math.isqrt(point.num_tokens)
        return point.batch, point.channels, side, side


LAYER = Conv()
