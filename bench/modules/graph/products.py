"""The products of two tensors in a graph, with labelled dimensions."""

from dataclasses import dataclass
from typing import Any

from torch.fx import Node

from bench.modules.graph.tracing import is_tensor, name, shape

Labels = tuple[str, ...]

PRODUCTS = ("matmul", "bmm", "mm", "baddbmm", "addmm", "einsum", "linear")
"""The names of operators that multiply; `linear` counts as a layer, not as a product of two tensors of a call."""


@dataclass(frozen=True, eq=False)
class Product:
    """A product of two tensors whose dimensions are labelled as in einsum.

    The node computes `scale` · product + `beta` · `added`.
    """

    node: Node
    left: Node
    right: Node
    of_left: Labels
    of_right: Labels
    out: Labels
    scale: float = 1.0
    added: Node | None = None
    beta: float = 1.0

    @property
    def sizes(self) -> dict[str, int]:
        """The size of each label."""
        sizes: dict[str, int] = {}
        for labels, tensor in ((self.of_left, self.left), (self.of_right, self.right)):
            for label, size in zip(labels, shape(tensor), strict=True):
                sizes[label] = max(sizes.get(label, 1), size)
        return sizes

    @property
    def summed(self) -> Labels:
        """The labels of the dimensions that the product sums over."""
        return tuple(label for label in self.of_left if label in self.of_right and label not in self.out)


def product(node: Node) -> Product | None:
    """Return a node as a product of two tensors; None if it isn't one."""
    if node.op != "call_function" or not is_tensor(node):
        return None
    kind = name(node)
    if kind in ("matmul", "bmm", "mm"):
        return _of_matrices(node, *node.args[:2])
    if kind in ("baddbmm", "addmm"):
        third, left, right = node.args[:3]
        beta, alpha = (float(node.kwargs.get(key, 1)) for key in ("beta", "alpha"))  # type: ignore[arg-type]
        return _of_matrices(node, left, right, scale=alpha, added=third if beta else None, beta=beta)
    return _of_einsum(node, *node.args[:2]) if kind == "einsum" else None


def _of_matrices(node: Node, left: Any, right: Any, **more: Any) -> Product | None:
    ranks = len(shape(left)), len(shape(right))
    if min(ranks) < len("nm"):
        return None
    lead = tuple(f"b{number}" for number in range(max(ranks) - 2))
    of_left, of_right = (lead[len(lead) - rank + 2 :] for rank in ranks)
    return Product(node, left, right, (*of_left, "n", "d"), (*of_right, "d", "m"), (*lead, "n", "m"), **more)


def _of_einsum(node: Node, equation: Any, operands: Any) -> Product | None:
    given, arrow, out = equation.replace(" ", "").partition("->")
    parts = given.split(",")
    if len(parts) != 2 or not arrow:
        return None
    hidden = [len(shape(tensor)) - len(part.replace("...", "")) for part, tensor in zip(parts, operands, strict=True)]
    most = max((each for part, each in zip(parts, hidden, strict=True) if "..." in part), default=0)
    left, right = (_labels(part, each, most) for part, each in zip(parts, hidden, strict=True))
    of_out = _labels(out, most, most)
    is_twice = any(len({*each}) < len(each) for each in (left, right, of_out))
    if is_twice or ({*left} ^ {*right}) - {*of_out}:  # a sum over a dimension of one operand is no product
        return None
    return Product(node, operands[0], operands[1], left, right, of_out)


def _labels(part: str, hidden: int, most: int) -> Labels:
    """Return the labels of an einsum operand whose dots stand for `hidden` dimensions, of `most` in any operand."""
    head, dots, tail = part.partition("...")
    return (*head, *(f".{number}" for number in range(most - hidden, most) if dots), *tail)
