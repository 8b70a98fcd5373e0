"""The attention cores of a model as points of the layer `core`."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from bench.plan.case import COLUMNS, Point
from bench.plan.layers.layer import NONE
from impls.catalogue import CAUSAL, GIVEN, LEARNED, PADDING

Core = Mapping[str, Any]
"""A core as a look reports it."""


def obstacle(core: Core) -> str:
    """Return why a core can't be a point of the layer `core`, empty if it can."""
    q, k, v = shapes = _shapes(core)
    if not all(len(shape) == len("BHND") for shape in shapes):
        return f"q, k and v have {', '.join(str(len(shape)) for shape in core['shapes'])} dimensions"
    if q[-1] != v[-1]:
        return f"q has a width of {q[-1]}, v of {v[-1]}"
    if k[:-1] != v[:-1] or q[0] != k[0] or q[1] % k[1]:
        return f"q {q}, k {k} and v {v} are not of the same items and groups of heads"
    if core["dtype"] not in COLUMNS["dtype"].choices:
        return f"the dtype is {core['dtype']}"
    if core["dropout"]:
        return f"dropout of {core['dropout']:g}"
    if core.get("sink"):
        return "columns stand beside the scores in the softmax (a sink)"
    if core["obstacle"] and not core["weights_are_used"]:
        return str(core["obstacle"])
    return _obstacle_of_masks(core)


def columns(core: Core, model: Point) -> dict[str, Any]:
    """Return the columns of a core at a point of its model, those alone that a sweep must give."""
    (batch, heads, tokens, width), (_, kv_heads, kv_tokens, _), _ = _shapes(core)
    kinds = {mask["kind"] for mask in core["masks"]}
    hiding = CAUSAL if core["causal"] else next((kind for kind in (CAUSAL, PADDING) if kind in kinds), NONE)
    bias = next((kind for kind in (LEARNED, GIVEN) if kind in kinds), NONE)
    return {
        "layer": "core",
        "device": model.device,
        "dtype": core["dtype"],
        "mode": model.mode,
        "batch": batch,
        "num_tokens": tokens,
        **({"num_kv_tokens": kv_tokens} if kv_tokens != tokens else {}),
        "channels": heads * width,
        "num_heads": heads,
        **({"num_kv_heads": kv_heads} if kv_heads != heads else {}),
        **({"attn_bias": bias} if bias != NONE else {}),
        **({"mask": hiding} if hiding != NONE else {}),
        "threads": model.threads,
    }


def _shapes(core: Core) -> list[list[int]]:
    """Return the shapes of q, k and v, with items and heads if they lack these."""
    if core.get("heads") and len(core["shapes"][0]) == 3:  # one operator computes the whole layer, of tokens alone
        batch, tokens, channels = core["shapes"][0]
        return [[batch, core["heads"], tokens, channels // core["heads"]]] * 3
    missing = {2: (1, 1), 3: (1,)}  # the heads of three dimensions are among the items, or there are none
    return [[*shape[:-2], *missing.get(len(shape), ()), *shape[-2:]] for shape in core["shapes"]]


def _obstacle_of_masks(core: Core) -> str:
    masks: Sequence[Mapping[str, Any]] = core["masks"]
    hiding = {mask["kind"] for mask in masks} - {GIVEN, LEARNED} | {CAUSAL for _ in range(core["causal"])}
    if not hiding <= {CAUSAL, PADDING}:
        return f"the mask is neither causal from the upper left corner nor a padding of keys: {core['mask']}"
    if len(hiding) > 1:
        return f"a causal mask and one of keys exclude each other: {core['mask']}"
    q, k, _ = _shapes(core)
    if PADDING in hiding and q[0] == 1:
        return f"a mask of keys needs a batch of at least 2: {core['mask']}"
    for mask in masks:
        shape: list[int] = [1] * (len("HNM") - len(mask["shape"])) + mask["shape"]
        *items, heads, queries, keys = shape
        fits = math.prod(items) == 1 and heads in (1, q[1]) and queries in (1, q[2]) and keys in (1, k[2])
        if mask["kind"] in (GIVEN, LEARNED) and not fits:
            return f"the bias is another one for each item or window: {core['mask']}"
    return ""
