"""The core alone: queries, keys and values are the inputs (`impls.layers.core`)."""

from bench.plan.case import Point
from bench.plan.layers.attention import IMAGES, kv_channels
from bench.plan.layers.layer import NONE, Layer, Sizes, Step, Values, check_core, core
from bench.plan.layers.peaks import core_eager, core_sdpa
from impls.catalogue import CAUSAL, GIVEN, LEARNED, PADDING


def _derive(values: Values) -> Values:
    check_core(values, (GIVEN, LEARNED))
    if values.get("num_kv_tokens") == values["num_tokens"]:
        values["num_kv_tokens"] = None  # the same function
    return {"token_len": values["channels"]}


def _steps(point: Point) -> dict[str, Step]:
    return core(point, point.channels, point.channels)


def _sizes(point: Point) -> Sizes:
    queries = point.batch * point.num_tokens * point.channels
    keys = point.batch * point.kv_tokens * kv_channels(point)
    bias = 0 if point.attn_bias == NONE else point.num_heads * point.num_tokens * point.kv_tokens
    return Sizes(queries + 2 * keys, queries, bias)


LAYER = Layer(
    name="core",
    module="layers.core:Core",
    meaning="queries, keys and values are the inputs: what papers on kernels time",
    needs=("num_tokens",),
    without=(*IMAGES, "context_dim", "qk_norm", "rope", "window_size"),
    derive=_derive,
    steps=_steps,
    sizes=_sizes,
    fixed={"qkv_bias": False},
    masks=(NONE, CAUSAL, PADDING),
    predicted_masks=(NONE, CAUSAL, PADDING),
    peaks={"eager": core_eager, "sdpa": core_sdpa, "sdpa_flash": core_sdpa},
)
