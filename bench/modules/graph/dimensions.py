"""The dimensions of tensors in terms of the scores, and views that bring tensors into other dimensions."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.fx import Graph, Node

from bench.modules.graph.memory import COPIES, VIEWS
from bench.modules.graph.tracing import dtype, is_tensor, name, shape

ATEN = torch.ops.aten


class Dim(NamedTuple):
    """A dimension: its place in the scores as the first product gives them, or a width that the scores don't have.

    `stride` is the distance in the scores, as if they were contiguous, between neighbours along it.
    """

    size: int
    stride: int = 0
    axis: str = ""

    def is_inside(self, other: "Dim") -> bool:
        """Return whether it is a part of another dimension."""
        return self.size > 1 and other.stride <= self.stride and self.stride * self.size <= other.stride * other.size

    def overlaps(self, other: "Dim") -> bool:
        """Return whether it has places in common with another dimension."""
        ends = self.stride * self.size, other.stride * other.size
        return max(self.stride, other.stride) < min(ends)


Dims = tuple[Dim, ...]

NO_DIM, ONE = Dim(0), Dim(1, 1)


class Odd(Exception):  # noqa: N818 - an answer, not an error
    """What stands between products and can't be expressed; `node` is where it stands, None if that is known."""

    def __init__(self, reason: str, node: Node | None = None) -> None:
        super().__init__(reason)
        self.node = node


def dims_of(layout: Tensor) -> Dims:
    """Return the dimensions of a tensor whose strides are those of scores."""
    return tuple(
        Dim(size, stride if size > 1 else 1) for size, stride in zip(layout.shape, layout.stride(), strict=True)
    )


def viewed(view: Node, layout: Tensor) -> Any:
    """Return what a view makes of a layout: one, or several for an operator with several results."""
    if name(view) in ("view", "reshape", "_unsafe_view", "_reshape_alias"):
        return layout.view(view.args[1])  # type: ignore[arg-type]  # a list of numbers
    assert callable(view.target)
    return view.target(layout, *view.args[1:], **view.kwargs)


def called(graph: Graph, target: Any, *args: Any, **kwargs: Any) -> Node:
    """Return a new call of an operator, with the tensor that it would return as far as shape and strides go."""
    node = graph.call_function(target, args, kwargs)
    node.meta["val"] = target(*map(_on_meta, args), **kwargs)
    return node


def _on_meta(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(map(_on_meta, value))
    if not isinstance(value, Node):
        return value
    held = value.meta["val"]
    return torch.empty_strided(held.shape, held.stride(), dtype=held.dtype, device="meta")


def reshaped(graph: Graph, node: Node, sizes: Sequence[int]) -> Node:
    """Return a node with these sizes: itself if it has them."""
    return node if shape(node) == tuple(sizes) else called(graph, ATEN.reshape.default, node, [*sizes])


def expanded(graph: Graph, node: Node, sizes: Sequence[int]) -> Node:
    """Return a node whose dimensions of size 1 have these sizes: itself if it has them."""
    return node if shape(node) == tuple(sizes) else called(graph, ATEN.expand.default, node, [*sizes])


def cast(graph: Graph, node: Node, kind: torch.dtype) -> Node:
    """Return a node of a type: itself if it has it."""
    return node if dtype(node) == kind else called(graph, ATEN.to.dtype, node, kind)


def rearranged(graph: Graph, node: Node, dims: Sequence[Dim], wanted: Sequence[Dim]) -> Node:
    """Return views that bring a tensor with some dimensions, of size 1 where it is broadcast, into those wanted.

    A wanted dimension has size 1 if the tensor is the same along all of it. Raises `Odd` if there are no such views.
    """
    cuts = {edge for dim in (*dims, *wanted) for edge in (dim.stride, dim.stride * dim.size) if not dim.axis}
    sizes = {
        atom: 1 if size == 1 else atom.size
        for dim, size in zip(dims, shape(node), strict=True)
        for atom in _atoms(dim, cuts)
    }
    targets = [_atoms(dim, cuts) for dim in wanted]
    order = [atom for target in targets for atom in target]
    if any(size != 1 and atom not in order for atom, size in sizes.items()):
        raise Odd("a tensor with dimensions that the core doesn't have")
    present = [*sizes, *(atom for atom in order if atom not in sizes)]
    node = reshaped(graph, node, [sizes.get(atom, 1) for atom in present])
    places = [present.index(atom) for atom in order] + [i for i, atom in enumerate(present) if atom not in order]
    if places != [*range(len(places))]:
        node = called(graph, ATEN.permute.default, node, places)
    return _with_joined(graph, node, targets, {atom: sizes.get(atom, 1) for atom in order})


def _with_joined(graph: Graph, node: Node, targets: Sequence[Sequence[Dim]], sizes: dict[Dim, int]) -> Node:
    """Return a tensor whose dimensions are parts of those wanted with these parts joined."""
    is_partly = [len({sizes[atom] == 1 for atom in target}) > 1 for target in targets]  # broadcast along some alone
    full = [
        atom.size if partly else sizes[atom]
        for target, partly in zip(targets, is_partly, strict=True)
        for atom in target
    ]
    if any(is_partly):
        node = reshaped(graph, node, [size for target in targets for size in map(sizes.__getitem__, target)])
        node = expanded(graph, node, full)
    parts = iter(full)
    return reshaped(graph, node, [math.prod(itertools.islice(parts, len(target))) for target in targets])


def _atoms(dim: Dim, cuts: set[int]) -> list[Dim]:
    """Return the parts of a dimension between cuts, those with the largest strides first; none of size 1."""
    if dim.axis:
        return [dim]
    if dim.size == 1:
        return []
    inside = [cut for cut in sorted(cuts) if dim.stride < cut < dim.stride * dim.size]
    edges = [*itertools.pairwise([dim.stride, *inside, dim.stride * dim.size])]
    if any(high % low for low, high in edges):
        raise Odd("dimensions of scores that are split in two ways")
    return [Dim(high // low, low) for low, high in reversed(edges)]


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
