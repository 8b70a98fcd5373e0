"""Keys and values before their heads are repeated for groups of queries' heads."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch.fx import Node

from impls.graph.dimensions import Dim, Dims
from impls.graph.memory import COPIES
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
    kind, args, new = name(node), node.args, [*dims]
    sizes: Any = args[1:]
    if kind in ("transpose", "swapaxes", "swapdims"):
        one, other = sizes
        new[one], new[other] = new[other], new[one]
        return tuple(new)
    if kind in ("mT", "adjoint"):
        return (*dims[:-2], dims[-1], dims[-2])
    if kind in ("view", "reshape", "_unsafe_view", "flatten", "unflatten"):
        return _regrouped(dims, shape(before))
    if kind in COPIES or (kind in ("slice", "alias") and shape(node) == shape(before)):
        return dims
    if kind == "permute":
        places = {place % len(dims): dim for place, dim in zip(sizes[0], dims, strict=True)}
        return tuple(places[place] for place in range(len(dims)))
    if kind == "expand":
        own = (1,) * (len(dims) - len(shape(before))) + shape(before)
        grown = [ONE if size == 1 else dim for dim, size in zip(dims, own, strict=True)]
        return tuple(grown[len(dims) - len(shape(before)) :])
    if kind == "unsqueeze":
        return None if new.pop(sizes[0] % len(dims)).size > 1 else tuple(new)
    if kind == "repeat_interleave" and len(sizes) == 2 and isinstance(sizes[0], int):
        times, place = sizes
        new[place] = Dim(new[place].size // times, new[place].stride * times, new[place].axis)
        return None if new[place].axis else tuple(new)
    return None


def _regrouped(dims: Dims, sizes: Sequence[int]) -> Dims | None:
    """Return dimensions as a view of these sizes had them, None if it divides one that has an axis."""
    left = [dim for dim in dims if dim.size > 1]
    new: list[Dim] = []
    for size in reversed(sizes):
        parts: list[Dim] = []
        while math.prod(part.size for part in parts) < size and left:
            dim, missing = left.pop(), size // math.prod(part.size for part in parts)
            if dim.size > missing and not dim.axis and dim.size % missing == 0:
                left.append(Dim(dim.size // missing, dim.stride * missing))
                dim = dim._replace(size=missing)
            parts.insert(0, dim)
        joined = _joined(parts)
        if joined is None or joined.size != size:
            return None
        new.insert(0, joined)
    return tuple(new)


def _joined(parts: Sequence[Dim]) -> Dim | None:
    """Return neighbouring dimensions as one, None if they are no neighbours in the scores."""
    if len(parts) < 2:
        return parts[0] if parts else ONE
    inner = parts[-1]
    for outer in reversed(parts[:-1]):
        if outer.axis or inner.axis or outer.stride != inner.stride * inner.size:
            return None
        inner = inner._replace(size=inner.size * outer.size)
    return inner
