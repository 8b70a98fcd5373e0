"""The dimensions of tensors in terms of the scores, and views that bring tensors into other dimensions."""

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.fx import Graph, Node

from impls.graph.tracing import name, shape

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

NO_DIM = Dim(0)


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
    return _joined(graph, node, targets, {atom: sizes.get(atom, 1) for atom in order})


def _joined(graph: Graph, node: Node, targets: Sequence[Sequence[Dim]], sizes: dict[Dim, int]) -> Node:
    """Return a tensor whose dimensions are parts of those wanted with these parts joined."""
    is_partly = [len({sizes[atom] == 1 for atom in target}) > 1 for target in targets]  # broadcast along some alone
    full = [
        atom.size if partly else sizes[atom]
        for target, partly in zip(targets, is_partly, strict=True)
        for atom in target
    ]
    if any(is_partly):
        node = reshaped(graph, node, [size for target in targets for size in map(sizes.__getitem__, target)])
        node = called(graph, ATEN.expand.default, node, full)
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
