"""The layers `attention`, `core` and `vit` by their formulas, in float64 with NumPy; nothing is shared with the suite.

Gradients are complex steps: `f(x + ih)` has the slope of f at x in its imaginary part, exact to rounding
(Squire and Trapp 1998, SIAM Review 40, 110-112).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Values = Mapping[str, Array]
"""Inputs and weights by their names; the inputs are `input 1`, `input 2` and so on."""

STEP = 1e-30
"""The length of a complex step; it has no rounding that would limit it."""

EPS = 1e-6


def inputs(*arrays: Array) -> dict[str, Array]:
    """Return inputs by their names."""
    return {f"input {number}": array for number, array in enumerate(arrays, 1)}


def attention(at: Any, values: Values, padding: Array | None = None) -> Array:
    """Return the output of the layer `attention` at a point, or at anything that has its columns."""
    x, tokens = values["input 1"], values["input 1"].shape[1]
    if at.window_size is None:
        return _attention(at, values, x, values.get("input 2", x), padding)
    side, size = math.isqrt(tokens), at.window_size
    y = np.zeros((*x.shape[:2], at.channels), np.result_type(*values.values()))
    for row in range(0, side, size):
        for column in range(0, side, size):
            window = [(row + i) * side + column + j for i in range(size) for j in range(size)]
            y[:, window] = _attention(at, values, x[:, window], x[:, window], padding)
    return y


def _attention(at: Any, values: Values, x: Array, context: Array, padding: Array | None) -> Array:
    heads, kv_heads = at.num_heads, at.num_kv_heads or at.num_heads
    width = at.channels // heads
    if at.num_kv_tokens is None:
        projected = _linear(values, "qkv", x)
        q, k, v = np.split(projected, [heads * width, (heads + kv_heads) * width], axis=-1)
    else:
        q = _linear(values, "q", x)
        k, v = np.split(_linear(values, "kv", context), 2, axis=-1)
    q, k, v = (_heads(q, heads), _heads(k, kv_heads), _heads(v, kv_heads))
    q, k = _norm(at, values, "q_norm", q), _norm(at, values, "k_norm", k)
    tokens = x.shape[1]
    if at.rope == "axial":
        q, k = _rotated(q, tokens), _rotated(k, tokens)
    bias = np.zeros((heads, tokens, context.shape[1]))
    if at.attn_bias == "relative":
        bias = _relative(values["relative_position_bias_table"], tokens)
    if at.attn_bias == "alibi":
        for h in range(heads):
            slope = 2.0 ** (-8 * (h + 1) / heads)
            bias[h] = [[-slope * abs(i - j) for j in range(tokens)] for i in range(tokens)]
    o = weighted(q, k, v, bias, at.mask == "causal", padding)
    return _linear(values, "proj", np.concatenate([o[:, h] for h in range(heads)], axis=-1))


def core(at: Any, values: Values, padding: Array | None = None) -> Array:
    """Return the output of the layer `core` at a point."""
    q, k, v = (values[f"input {number}"] for number in (1, 2, 3))
    bias = values.get("bias", np.zeros((1, q.shape[1], q.shape[2], k.shape[2])))
    return weighted(q, k, v, bias[0], at.mask == "causal", padding)


def vit(at: Any, values: Values, scale: float | None = None) -> Array:
    """Return the output of the layer `vit` at a point, or at anything that has its heads and its mask."""
    q, k, v = (_heads(each, at.num_heads) for each in np.split(_linear(values, "qkv", values["input 1"]), 3, axis=-1))
    o = weighted(q, k, v, np.zeros((at.num_heads, 1, 1)), at.mask == "causal", None, scale)
    merged, skipped = (np.concatenate([each[:, h] for h in range(at.num_heads)], axis=-1) for each in (o, v))
    return skipped + _linear(values, "proj", merged)


def by_item(formula: Callable[..., Array], at: Any, values: Values, lengths: Sequence[int]) -> list[Array]:
    """Return the outputs of a layer for padded items of these lengths, each computed separately without padding."""
    outputs = []
    for item, length in enumerate(lengths):
        real = {n: x[item : item + 1, ..., :length, :] if n.startswith("input") else x for n, x in values.items()}
        outputs.append(formula(at, real)[0])
    return outputs


def weighted(
    q: Array, k: Array, v: Array, bias: Array, is_causal: bool, padding: Array | None, scale: float | None = None
) -> Array:
    """Return the weighted values, item by item and head by head; `padding` `[B, M]` is true at keys that are hidden."""
    factor = q.shape[-1] ** -0.5 if scale is None else scale
    o = np.zeros(q.shape, np.result_type(q, k, v, bias))
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            group = h // (q.shape[1] // k.shape[1])
            scores = q[b, h] @ k[b, group].T * factor + bias[h]
            seen = np.ones(scores.shape, bool)
            if is_causal:
                seen &= np.arange(scores.shape[1]) <= np.arange(scores.shape[0])[:, None]
            if padding is not None:
                seen &= ~padding[b]
            exponentials = np.exp(scores - scores.real.max(axis=1, keepdims=True)) * seen
            o[b, h] = exponentials / exponentials.sum(axis=1, keepdims=True) @ v[b, group]
    return o


def _linear(values: Values, name: str, x: Array) -> Array:
    return np.asarray(x @ values[f"{name}.weight"].T + values.get(f"{name}.bias", 0.0))


def _heads(tokens: Array, heads: int) -> Array:
    return np.stack(np.split(tokens, heads, axis=-1), axis=1)


def _norm(at: Any, values: Values, name: str, heads: Array) -> Array:
    if at.qk_norm == "none":
        return heads
    if at.qk_norm == "layer":
        heads = heads - heads.mean(axis=-1, keepdims=True)
    normal = heads / np.sqrt((heads**2).mean(axis=-1, keepdims=True) + EPS)
    return np.asarray(normal * values[f"{name}.weight"] + values.get(f"{name}.bias", 0.0))


def _place(token: int, tokens: int) -> tuple[int, int] | None:
    """Return the row and the column of a token on the largest square grid; None for one before the grid."""
    side = math.isqrt(tokens)
    place = token - (tokens - side**2)
    return divmod(place, side) if place >= 0 else None


def _rotated(heads: Array, tokens: int) -> Array:
    turned, bands = heads.copy(), heads.shape[-1] // 4
    for token in range(tokens):
        place = _place(token, tokens)
        if place is None:
            continue
        for pair in range(2 * bands):
            angle = place[pair // bands] * 10_000 ** -(pair % bands / bands)
            a, b = heads[..., token, 2 * pair], heads[..., token, 2 * pair + 1]
            turned[..., token, 2 * pair] = a * math.cos(angle) - b * math.sin(angle)
            turned[..., token, 2 * pair + 1] = a * math.sin(angle) + b * math.cos(angle)
    return turned


def _relative(table: Array, tokens: int) -> Array:
    """Return the bias `[H, N, N]`: Swin's table has a row for each offset of two places, rows before columns."""
    side, bias = math.isqrt(tokens), np.zeros((table.shape[1], tokens, tokens), table.dtype)
    for i in range(tokens):
        for j in range(tokens):
            query, key = _place(i, tokens), _place(j, tokens)
            if query and key:
                row, column = query[0] - key[0] + side - 1, query[1] - key[1] + side - 1
                bias[:, i, j] = table[row * (2 * side - 1) + column]
    return bias


def slope(function: Callable[[Values], Array], values: Values, name: str, direction: Array, dy: Array) -> float:
    """Return the slope of `sum(y·dy)` if one of the values moves in a direction."""
    moved = function({**values, name: values[name] + 1j * STEP * direction})
    return float((moved.imag * dy).sum() / STEP)
