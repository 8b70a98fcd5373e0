"""Implementations of the layers `attention` and `core`, each wrong in one way: the check must reject every one.

Each is listed with the columns of a point at which it is wrong; the right version there differs only in the fault.
"""

import copy
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from impls import Adapt, Implementation, with_attend
from impls.attend import eager
from impls.layers.attention import NORM_EPS, Attention, rotated, undone, windows


def core(change: Callable[[Any], dict[str, Any]]) -> Adapt:
    """Return the adapter of eager's core with some of its arguments changed."""

    def attend(
        q: Tensor,
        k: Tensor,
        v: Tensor,
        scale: float,
        *,
        mask: str | None = None,
        attn_mask: Tensor | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        given: dict[str, Any] = {"q": q, "k": k, "v": v, "scale": scale}
        given |= {"mask": mask, "attn_mask": attn_mask, "enable_gqa": enable_gqa}
        return eager.attend(**(given | change(SimpleNamespace(**given))))

    return with_attend(attend)


def layer(change: Callable[[Any], dict[str, Any]]) -> Adapt:
    """Return the adapter of a layer with some of its attributes changed."""

    def adapt(own: Attention) -> Implementation:
        other = copy.copy(own)
        other._modules = dict(own._modules)
        other._buffers = dict(own._buffers)
        for name, value in change(own).items():
            other._modules.pop(name, None)
            other._buffers.pop(name, None)
            vars(other)[name] = value
        return other

    return adapt


def in_windows(cut: Callable[[Tensor, int], Tensor], undo: Callable[[Tensor, int, int], Tensor]) -> Adapt:
    """Return the adapter of a layer that cuts windows and undoes them by these functions."""

    def adapt(own: Any) -> Implementation:
        inside = layer(lambda _: {"window_size": None})(own)
        return lambda x: undo(inside(cut(x, own.window_size)), own.window_size, x.shape[1])

    return adapt


def called(call: Callable[..., Tensor]) -> Adapt:
    """Return the adapter of a layer that is called in this way."""
    return lambda own: lambda *xs: call(own, *xs)


def _tiled(of: Tensor, heads: int) -> Tensor:
    return of.repeat(1, heads // of.shape[1], 1, 1)


def _lower_right(given: Any) -> dict[str, Any]:
    queries, keys = given.q.shape[-2], given.k.shape[-2]
    return {"mask": None, "attn_mask": torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)}


def _columns_first(angles: Tensor) -> Tensor:
    return torch.cat([*reversed(angles.chunk(2, dim=1))], dim=1)


def _with_prefix(angles: Tensor) -> Tensor:
    """Return angles also for the token before the grid, which gets the second place's; the first place has none."""
    return torch.cat([angles[1:2], angles])


def _only_queries_turned(own: Any) -> dict[str, Any]:
    def project(*xs: Tensor) -> tuple[Tensor, ...]:
        q, k, v = own.project(*xs)
        return q, rotated(k, -own.sin, own.cos), v

    return {"project": project}


def _over_all_heads(norm: Any) -> Callable[[Tensor], Tensor]:
    def normalised(heads: Tensor) -> Tensor:
        square = heads.float().square().mean((1, 3), keepdim=True)
        normal: Tensor = (heads * (square + NORM_EPS).rsqrt()).to(heads.dtype) * norm.weight
        return normal

    return normalised


def _without_gradient(norm: Any) -> Callable[[Tensor], Tensor]:
    return lambda heads: torch.rms_norm(heads, [heads.shape[-1]], norm.weight.detach(), NORM_EPS)


def _by_columns(x: Tensor, size: int) -> Tensor:
    """Return windows column by column of the grid."""
    each: Any = windows(x, size)
    side = int((each.shape[0] // len(x)) ** 0.5)
    by_columns: Tensor = each.unflatten(0, (len(x), side, side)).transpose(1, 2).flatten(0, 2)
    return by_columns


def _transposed(x: Tensor, size: int) -> Tensor:
    """Return windows whose tokens stand column by column."""
    return _other_way(windows(x, size), size)


def _transposed_back(y: Tensor, size: int, tokens: int) -> Tensor:
    return undone(_other_way(y, size), size, tokens)


def _other_way(each: Any, size: int) -> Tensor:
    other: Tensor = each.unflatten(1, (size, size)).transpose(1, 2).flatten(1, 2)
    return other


boolean_added = core(lambda given: {"attn_mask": given.attn_mask.to(given.q.dtype)})
without_mask = core(lambda _given: {"attn_mask": None})
without_causal_mask = core(lambda _given: {"mask": None})
padding_of_queries = bias_transposed = core(lambda given: {"attn_mask": given.attn_mask.mT})
padding_of_first_item = core(lambda given: {"attn_mask": given.attn_mask[:1]})
padding_inverted = core(lambda given: {"attn_mask": ~given.attn_mask})
bias_of_first_head = core(lambda given: {"attn_mask": given.attn_mask[:, :1]})
bias_scaled = core(lambda given: {"attn_mask": given.attn_mask * given.scale})
bias_subtracted = core(lambda given: {"attn_mask": -given.attn_mask})
groups_tiled = core(
    lambda given: {
        "k": _tiled(given.k, given.q.shape[1]),
        "v": _tiled(given.v, given.q.shape[1]),
        "enable_gqa": False,
    }
)
keys_tiled = core(
    lambda given: {
        "k": _tiled(given.k, given.q.shape[1]),
        "v": given.v.repeat_interleave(given.q.shape[1] // given.v.shape[1], 1),
        "enable_gqa": False,
    }
)
first_group_alone = core(lambda given: {"k": given.k[:, :1], "v": given.v[:, :1]})
lower_right = core(_lower_right)
without_scale = core(lambda _given: {"scale": 1.0})
prefix_turned = layer(lambda own: {"sin": _with_prefix(own.sin), "cos": _with_prefix(own.cos)})
rows_for_columns = layer(lambda own: {"sin": _columns_first(own.sin), "cos": _columns_first(own.cos)})
turned_backwards = layer(lambda own: {"sin": -own.sin})
only_queries_turned = layer(_only_queries_turned)
not_turned = layer(lambda _own: {"rope": "none"})
without_norm = layer(lambda _own: {"q_norm": lambda q: q, "k_norm": lambda k: k})
without_norm_of_keys = layer(lambda _own: {"k_norm": lambda k: k})
norm_over_all_heads = layer(lambda own: {"q_norm": _over_all_heads(own.q_norm), "k_norm": _over_all_heads(own.k_norm)})
norms_exchanged = layer(lambda own: {"q_norm": own.k_norm, "k_norm": own.q_norm})
windows_kept = in_windows(windows, lambda y, _size, tokens: y.reshape(-1, tokens, y.shape[-1]))
windows_of_neighbours = in_windows(
    lambda x, size: x.reshape(-1, size**2, x.shape[-1]), lambda y, _size, tokens: y.reshape(-1, tokens, y.shape[-1])
)
windows_by_columns = in_windows(_by_columns, undone)
windows_transposed = in_windows(_transposed, _transposed_back)
no_windows = layer(lambda _own: {"window_size": None})
context_is_x = called(lambda own, x, _context: own(x, x))
context_detached = called(lambda own, x, context: own(x, context.detach() + 0 * context))
bias_detached = core(lambda given: {"attn_mask": given.attn_mask.detach()})
norm_detached = layer(lambda own: {"k_norm": _without_gradient(own.k_norm)})
values_detached = core(lambda given: {"v": given.v.detach()})
keys_detached = core(lambda given: {"k": given.k.detach()})

CONTEXT = {"num_kv_tokens": 5, "context_dim": 12}
RELATIVE, ALIBI, PADDED, ROPE = (
    {"attn_bias": "relative"},
    {"attn_bias": "alibi"},
    {"lengths": "uniform"},
    {"rope": "axial"},
)
GROUPS, RMS, CAUSAL = {"num_kv_heads": 2}, {"qk_norm": "rms"}, {"mask": "causal"}
WINDOWS = {"window_size": 2, "num_tokens": 16}

WRONG: dict[str, list[dict[str, Any]]] = {
    "boolean_added": [PADDED],
    "without_mask": [PADDED, RELATIVE, ALIBI, RELATIVE | WINDOWS, PADDED | RELATIVE],
    "without_causal_mask": [CAUSAL, CAUSAL | RELATIVE, CAUSAL | CONTEXT],
    "padding_of_queries": [PADDED],
    "padding_of_first_item": [PADDED],
    "padding_inverted": [PADDED],
    "bias_transposed": [RELATIVE, RELATIVE | WINDOWS],
    "bias_of_first_head": [RELATIVE, ALIBI, RELATIVE | WINDOWS],
    "bias_scaled": [RELATIVE, ALIBI],
    "bias_subtracted": [RELATIVE, ALIBI],
    "groups_tiled": [GROUPS, GROUPS | CONTEXT],
    "keys_tiled": [GROUPS],
    "first_group_alone": [GROUPS],
    "lower_right": [CAUSAL | CONTEXT, CAUSAL | {"num_kv_tokens": 13}],
    "without_scale": [{}, CONTEXT, RELATIVE, RMS],
    "prefix_turned": [ROPE],
    "rows_for_columns": [ROPE],
    "turned_backwards": [ROPE],
    "only_queries_turned": [ROPE],
    "not_turned": [ROPE],
    "without_norm": [RMS, {"qk_norm": "layer"}],
    "without_norm_of_keys": [RMS],
    "norm_over_all_heads": [RMS],
    "norms_exchanged": [{"qk_norm": "layer"}],  # weights alone may be exchanged
    "windows_kept": [WINDOWS],
    "windows_of_neighbours": [WINDOWS],
    "windows_by_columns": [WINDOWS],
    "windows_transposed": [WINDOWS | RELATIVE, WINDOWS | ROPE],
    "no_windows": [WINDOWS],
    "context_is_x": [{"num_kv_tokens": 10}],
}
"""What returns another output, and the points of the layer `attention` at which it does."""

WRONG_GRADIENTS: dict[str, list[dict[str, Any]]] = {
    "context_detached": [CONTEXT],
    "bias_detached": [RELATIVE, RELATIVE | WINDOWS],
    "norm_detached": [RMS],
    "values_detached": [{}, CONTEXT],
    "keys_detached": [{}, CONTEXT],
}
"""What returns the right output and wrong gradients."""

OF_CORE = (
    "boolean_added", "without_mask", "without_causal_mask", "padding_of_queries", "groups_tiled", "keys_tiled",
    "first_group_alone", "lower_right", "without_scale",
)  # fmt: skip
"""Those that are wrong in the layer `core` too."""
