"""Self-attention with one head and no scale (`impls.layers.self_attention`)."""

from bench.plan.case import Point
from bench.plan.layers.layer import ATTENTION_ALONE, VIEW, Layer, Sizes, Step, Values, core, projection


def _derive(values: Values) -> Values:
    return {"token_len": values["channels"], "key_channels": values["channels"]}


def _steps(point: Point) -> dict[str, Step]:
    tokens, keys, values = point.batch * point.num_tokens, _keys(point), point.channels
    return {
        "qkv projection": projection(tokens, point.token_len, 2 * keys + values, bias=False),
        "split heads": VIEW,
        **core(point, keys, values),
        "merge heads": VIEW,
    }


def _sizes(point: Point) -> Sizes:
    tokens, dim, values = point.batch * point.num_tokens, point.token_len, point.channels
    return Sizes(tokens * dim, tokens * values, dim * (2 * _keys(point) + values))


def _keys(point: Point) -> int:
    assert point.key_channels is not None  # `derive` gives it to every point of this layer
    return point.key_channels


LAYER = Layer(
    name="self",
    module="layers.self_attention:SelfAttention",
    meaning="one head, unscaled, without an output projection (Illustrated: Self-Attention)",
    needs=("num_tokens",),
    without=("qk_scale", "image_size", "patch_size", *ATTENTION_ALONE),
    derive=_derive,
    steps=_steps,
    sizes=_sizes,
    fixed={"num_heads": 1, "qkv_bias": False},
)
