"""The peak memory of the layers `attention` and `core`, in elements beyond input and weights; a boolean is a quarter.

The functions count the tensors that live at the places of the largest sums, on a CPU, in float32, in inference.
x = B·N·chan elements are queries and outputs, kv = B·M·kv_chan those of keys and of values, scores = B·H·N·M.
"""

import math
from fractions import Fraction

from bench.plan.case import Point
from bench.plan.layers.layer import NONE
from impls.catalogue import CAUSAL, PADDING

Elements = int | Fraction

BOOLEAN = Fraction(1, 4)
"""The elements of a boolean."""

FLASH_KEYS = 512
"""The keys of a block of the flash kernel."""

STATISTICS = {NONE: 0, "rms": 1, "layer": 2}
"""The numbers that a norm keeps of each head of a token."""


def flash(point: Point) -> int:
    """Return the elements of a sum for each query, and for each thread a block of scores, maxima, sums and outputs.

    Source: PyTorch, aten/src/ATen/native/cpu/FlashAttentionKernel.cpp.
    """
    tokens = _queries(point)
    queries = min(tokens, 256 if tokens >= 768 else 64 if tokens >= 192 else 32)
    scratch = queries * (min(point.keys, FLASH_KEYS) + 2 + point.channels // point.num_heads)
    return _lines(point) + point.threads * scratch


def core_eager(point: Point) -> Elements:
    """Return the peak of the plain formula on contiguous inputs, which no product has to copy."""
    return _mask(point) + _eager(point)


def core_sdpa(point: Point) -> Elements:
    """Return the peak of the flash kernel: the output and its scratch."""
    return _mask(point) + _sdpa(point)


def attention_eager(point: Point) -> Elements:
    """Return the peak of the layer with the plain formula, which copies heads that don't lie one after another."""
    is_strided = _items(point) > 1 and point.num_heads > 1
    prefix = _queries(point) - math.isqrt(_queries(point)) ** 2
    is_packed = is_strided and point.qk_norm == NONE and not (point.rope != NONE and prefix)
    is_grouped = point.kv_heads < point.num_heads  # they are repeated, into tensors of their own
    core = _eager(
        point,
        q_copy=_x(point) if is_packed and _queries(point) > 1 else 0,
        k_copy=_kv(point) if is_packed and not is_grouped else 0,
        v_copy=_kv(point) if is_strided and not is_grouped else 0,
    )
    return _around(point, core)


def attention_sdpa(point: Point) -> Elements:
    """Return the peak of the layer with the flash kernel, which takes heads as they lie."""
    return _around(point, _sdpa(point))


def _around(point: Point, core: Elements) -> Elements:
    """Return the peak of the layer, at the norms, the rotation, the mask, in the core, or at the output projection."""
    x, kv = _x(point), _kv(point)
    is_windowed = point.keys < point.kv_tokens  # a single window is a view
    projected = x + 2 * kv + (point.batch * point.num_tokens * point.token_len if is_windowed else 0)
    has_context = point.num_kv_tokens is not None
    # those of the packed projection live as long as v does; the queries of a context have a projection of their own
    normed = (kv if has_context else x + kv) if point.qk_norm != NONE else 0
    rotated = x + kv if point.rope != NONE and not normed else 0
    held = projected + normed + rotated
    return max(
        projected + _norms(point),
        projected + normed + _rotation(point),
        held + _making_mask(point),
        held + _mask(point) + core,
        held + 2 * x,  # the output of the core, and its copy or its projection
    )


def _norms(point: Point) -> int:
    """Return the elements at the larger norm: a tensor before its output, this, its statistics, and the other's output.

    The first is the input over the root of its mean square, or for LayerNorm a copy of an input that isn't contiguous.
    """
    if point.qk_norm == NONE:
        return 0
    x, kv, each, items = _x(point), _kv(point), STATISTICS[point.qk_norm], _items(point)
    alone = point.num_heads == 1 or _queries(point) == 1
    contiguous = alone if point.num_kv_tokens is not None else _queries(point) * items == 1
    is_layer, lines = point.qk_norm == "layer", point.batch * point.kv_heads * point.kv_tokens
    of_q = x + (0 if is_layer and contiguous else x) + each * _lines(point)
    of_k = kv + (0 if is_layer and point.keys * items == 1 else kv) + each * lines
    return max(of_q, x + of_k)


def _rotation(point: Point) -> int:
    """Return the elements at the larger rotation: the swapped numbers, both products and their sum, on the grid."""
    if point.rope == NONE:
        return 0
    placed = Fraction(math.isqrt(_queries(point)) ** 2, _queries(point))
    return int(max(4 * _x(point) * placed, _x(point) + 4 * _kv(point) * placed))


def _making_mask(point: Point) -> Elements:
    """Return the elements that live when the mask is made: the gathered bias with its copy, and one with padding."""
    tokens = _queries(point)
    gathered, bias = point.num_heads * math.isqrt(tokens) ** 4, point.num_heads * tokens**2
    if point.attn_bias != "relative":
        return _mask(point)
    is_copied = point.num_heads > 1 or bias > gathered
    return max(gathered + is_copied * bias, (point.mask == PADDING) * bias + _mask(point))


def _mask(point: Point) -> Elements:
    """Return the elements of the mask tensor that the layer makes for its core."""
    bias = point.num_heads * _queries(point) * point.keys
    if point.mask == PADDING:
        return BOOLEAN * point.batch * point.kv_tokens if point.attn_bias == NONE else point.batch * bias
    return bias if point.attn_bias == "relative" else 0


def _eager(point: Point, q_copy: int = 0, k_copy: int = 0, v_copy: int = 0) -> Elements:
    """Return the elements of the plain formula: at the first product, at the softmax, or at the second product."""
    x, scores = _x(point), _lines(point) * point.keys
    repeated = 2 * point.batch * point.kv_tokens * point.channels if point.kv_heads < point.num_heads else 0
    hidden = _hidden(point)
    places = 2 * (point.num_tokens + point.keys) if hidden else 0  # those of queries and keys, of 64 bits each
    inverted = BOOLEAN * point.batch * point.kv_tokens if point.mask == PADDING and point.attn_bias == NONE else 0
    return repeated + max(
        x + q_copy + k_copy + scores,
        scores + hidden + max(places, scores),
        (3 if hidden and point.attn_bias != NONE else 2) * scores + inverted,  # with both masks a copy between
        scores + v_copy + x,
    )


def _sdpa(point: Point) -> Elements:
    """Return the elements of the flash kernel; a boolean mask is made a floating one, a causal bias one more bias."""
    flashed = _x(point) + flash(point)
    if point.mask == PADDING and point.attn_bias == NONE:
        return point.batch * point.kv_tokens + flashed
    if point.mask == CAUSAL and point.attn_bias != NONE:
        return point.num_heads * point.num_tokens * point.keys + max(flashed, _hidden(point))
    return flashed


def _hidden(point: Point) -> Elements:
    """Return the elements of the boolean that says which keys a causal mask hides."""
    return BOOLEAN * point.num_tokens * point.keys if point.mask == CAUSAL else 0


def _items(point: Point) -> int:
    """Return the items of the core: windows are items of their own."""
    return point.batch * point.kv_tokens // point.keys


def _queries(point: Point) -> int:
    """Return the queries of an item of the core."""
    return point.num_tokens if point.window_size is None else point.keys


def _lines(point: Point) -> int:
    return point.batch * point.num_heads * point.num_tokens


def _x(point: Point) -> int:
    return point.batch * point.num_tokens * point.channels


def _kv(point: Point) -> int:
    return point.batch * point.kv_tokens * (point.channels // point.num_heads) * point.kv_heads
