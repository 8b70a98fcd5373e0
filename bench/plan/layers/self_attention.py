"""Self-attention with one head and no scale (`impls.layers.self_attention`)."""

from types import MappingProxyType

from bench.plan.case import Point
from bench.plan.layers.layer import Layer, Projection, Values


class Self(Layer):
    """The layer `self`."""

    name, module = "self", "layers.self_attention:SelfAttention"
    meaning = "one head, no scale, no output projection (Illustrated: Self-Attention)"
    takes = ("key_channels",)
    fixed = MappingProxyType({"num_heads": 1, "qkv_bias": False})

    def derive(self, values: Values) -> Values:
        """Return the channels as the widths of tokens and of keys."""
        return {"token_len": values["channels"], "key_channels": values["channels"]}

    def core_widths(self, point: Point) -> tuple[int, int]:
        """Return the width of keys, which is a column, and of values."""
        return point.key_channels or 0, point.channels

    def projections(self, point: Point) -> tuple[Projection, ...]:
        """Return the projection to queries, keys and values."""
        keys, values = self.core_widths(point)
        return (Projection(point.batch * point.num_tokens, point.token_len, 2 * keys + values, bias=False),)


LAYER = Self()
