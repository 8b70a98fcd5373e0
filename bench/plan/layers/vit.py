"""The vision-transformer attention layer (`impls.layers.vit`)."""

from bench.plan.case import Point
from bench.plan.layers.layer import Layer, Projection, Values, all_tokens, check_lengths


class Vit(Layer):
    """The layer `vit`."""

    name, module = "vit", "layers.vit:ViTAttention"
    meaning = "multi-head self-attention, output projection, and a skip that adds the values (T2T-ViT)"
    takes = ("qkv_bias", "qk_scale", "lengths")

    def derive(self, values: Values) -> Values:
        """Also check the lengths."""
        check_lengths(values)
        return super().derive(values)

    def projections(self, point: Point) -> tuple[Projection, ...]:
        """Return the projections to queries, keys and values, and to the output."""
        tokens, chan = all_tokens(point), point.channels
        return Projection(tokens, point.token_len, 3 * chan, point.qkv_bias), Projection(tokens, chan, chan)


LAYER = Vit()
