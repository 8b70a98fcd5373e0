"""Keys and values before their heads are repeated for groups of queries' heads."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from impls.graph.dimensions import Dim, Dims, dims_of, viewed
from impls.graph.memory import COPIES, VIEWS
from impls.graph.tracing import dtype, is_tensor, name, shape

ONE = Dim(1, 1)


@dataclass(frozen=True)
class Heads:
    """A tensor before its heads were repeated, its dimensions, and that of its heads."""

    node: Node
    dims: Dims
    heads: Dim


def before_repeat(node: Node, dims: Dims, heads: Dim) -> Heads | None:
    """Return keys or values before their heads were repeated to `heads`; None if no operator repeats them."""
    while True:
        before = node.args[0] if node.op == "call_function" and node.args else None
        if not isinstance(before, Node) or not is_tensor(before) or dtype(before) != dtype(node):
            return None
        own = _dims_before(node, before, dims)
        if own is None:
            return None
        node, dims = before, own
        if found := _grouped(node, dims, heads):
            return found


def before_flattening(node: Node, dims: Dims) -> Iterator[Dims]:
    """Yield the dimensions that a tensor had before the operators that made it, as long as they are known."""
    while node.op == "call_function" and node.args and is_tensor(before := node.args[0]):
        assert isinstance(before, Node)
        own = _dims_before(node, before, dims)
        if own is None:
            return
        node, dims = before, own
        yield dims


def _grouped(node: Node, dims: Dims, heads: Dim) -> Heads | None:
    """Return a tensor if it has fewer heads, each for as many of those as the others."""
    sizes = [size for size in shape(node) if size > 1]
    own = [dim for dim in dims if dim.size > 1]
    if sizes != [dim.size for dim in own] or any(dim == heads for dim in own):
        return None
    inside = [dim for dim in own if dim.is_inside(heads) and not dim.axis]
    if len(inside) > 1:
        return None
    fewer = inside[0] if inside else Dim(1, heads.stride * heads.size)
    is_outer = fewer.size < heads.size and fewer.stride * fewer.size == heads.stride * heads.size
    return Heads(node, dims, fewer) if is_outer else None


def _dims_before(node: Node, before: Node, dims: Dims) -> Dims | None:
    """Return the dimensions of what an operator took by those of its result; None if they aren't known."""
    kind = name(node)
    sizes: Any = node.args[1:]
    if kind in COPIES:
        return dims
    if kind == "repeat_interleave" and len(sizes) == len(("times", "place")) and isinstance(sizes[0], int):
        (times, place), new = sizes, [*dims]
        own = new[place]
        new[place] = Dim(own.size // times, own.stride * times)
        return None if own.axis else tuple(new)
    is_broadcast = any(dim.size not in (1, size) for dim, size in zip(dims, shape(node), strict=True))
    places = torch.empty(shape(before), device="meta")
    layout = None if is_broadcast or kind not in VIEWS else viewed(node, places)
    if not isinstance(layout, Tensor):
        return None
    taken = [*zip(dims_of(layout), dims, strict=True)]
    found = [_dim_before(place, taken) for place in dims_of(places)]
    return None if None in found else tuple(dim for dim in found if dim)


def _dim_before(place: Dim, taken: Sequence[tuple[Dim, Dim]]) -> Dim | None:
    """Return a dimension of what an operator took by where its result's are there; None if they aren't all of it."""
    parts = []
    for there, dim in taken:
        low, high = max(there.stride, place.stride), min(there.stride * there.size, place.stride * place.size)
        if low < high and min(there.size, place.size) > 1:
            is_whole = high - low == there.stride * (there.size - 1)
            if not is_whole and (dim.axis or low % there.stride or high % low):
                return None
            parts.append((low, dim if is_whole else Dim(high // low, dim.stride * low // there.stride)))
    return _joined([part for _, part in sorted(parts, key=lambda each: -each[0])], place.size)


def _joined(parts: Sequence[Dim], size: int) -> Dim | None:
    """Return neighbouring dimensions as one of a size, None if they aren't neighbours in the scores."""
    joined = parts[-1] if parts else ONE
    for outer in reversed(parts[:-1]):
        if outer.axis or joined.axis or outer.stride != joined.stride * joined.size:
            return None
        joined = joined._replace(size=joined.size * outer.size)
    return joined if joined.size == size else None
