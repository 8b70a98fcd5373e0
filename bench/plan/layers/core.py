"""The core alone: queries, keys and values are the inputs (`impls.layers.core`)."""

from bench.plan.case import Point
from bench.plan.layers.attention import kv_channels
from bench.plan.layers.layer import NONE, Layer, Step, Values, all_tokens, check_core, core
from bench.plan.layers.peaks import core_eager, core_sdpa
from impls.catalogue import CAUSAL, GIVEN, LEARNED, PADDING


def _derive(values: Values) -> Values:
    check_core(values, (GIVEN, LEARNED))
    if values.get("num_kv_tokens") == values["num_tokens"]:
        values["num_kv_tokens"] = None  # the same function
    return {"token_len": values["channels"]}


def _steps(point: Point) -> dict[str, Step]:
    return core(point, point.channels, point.channels)


def _inputs(point: Point) -> int:
    keys = all_tokens(point) if point.is_padded else point.batch * point.kv_tokens
    return all_tokens(point) * point.channels + 2 * keys * kv_channels(point)


def _output(point: Point) -> tuple[int, ...]:
    return point.batch, point.num_heads, point.num_tokens, point.channels // point.num_heads


LAYER = Layer(
    name="core",
    module="layers.core:Core",
    meaning="queries, keys and values are the inputs: what papers on kernels time",
    steps=_steps,
    takes=("qk_scale", "num_kv_tokens", "num_kv_heads", "attn_bias", "lengths"),
    fixed={"qkv_bias": False},
    derive=_derive,
    inputs=_inputs,
    output=_output,
    masks=(NONE, CAUSAL, PADDING),
    predicted_masks=(NONE, CAUSAL, PADDING),
    peaks={"eager": core_eager, "sdpa": core_sdpa, "sdpa_flash": core_sdpa},
)
