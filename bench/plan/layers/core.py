"""Only the core: its inputs are queries, keys and values (`impls.layers.core`)."""

from types import MappingProxyType

from bench.plan.case import Point
from bench.plan.layers.attention import kv_channels
from bench.plan.layers.layer import Layer, Values, all_tokens, check_core
from impls.catalogue import GIVEN, LEARNED


class Core(Layer):
    """The layer `core`."""

    name, module = "core", "layers.core:Core"
    meaning = "attention alone, without weights: inputs are queries, keys and values, as in papers on kernels"
    takes = ("qk_scale", "num_kv_tokens", "num_kv_heads", "attn_bias", "lengths")
    fixed = MappingProxyType({"qkv_bias": False})

    def derive(self, values: Values) -> Values:
        """Also check heads, keys, mask and bias."""
        check_core(values, (GIVEN, LEARNED))
        if values.get("num_kv_tokens") == values["num_tokens"]:
            values["num_kv_tokens"] = None  # the same function
        return super().derive(values)

    def inputs(self, point: Point) -> int:
        """Return the number of elements of queries, keys and values."""
        keys = all_tokens(point) if point.is_padded else point.batch * point.kv_tokens
        return all_tokens(point) * point.channels + 2 * keys * kv_channels(point)

    def output(self, point: Point) -> tuple[int, ...]:
        """Return the shape of the output, with separate heads."""
        return point.batch, point.num_heads, point.num_tokens, point.channels // point.num_heads


LAYER = Core()
