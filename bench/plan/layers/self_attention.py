"""Self-attention with one head and no scale (`impls.layers.self_attention`)."""

from bench.plan.case import Point
from bench.plan.layers.layer import VIEW, Layer, Step, Values, core, projection


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


def _keys(point: Point) -> int:
    assert point.key_channels is not None  # `derive` gives it to every point of this layer
    return point.key_channels


LAYER = Layer(
    name="self",
    module="layers.self_attention:SelfAttention",
    meaning="one head, unscaled, without an output projection (Illustrated: Self-Attention)",
    steps=_steps,
    takes=("key_channels",),
    fixed={"num_heads": 1, "qkv_bias": False},
    derive=_derive,
)
