"""The ways of a product's result, the scores, through a softmax to a second product.

The scores are followed as a tensor without data whose strides say which of them is where: what is done to the scores'
dimensions is done to it, so their order never matters.
"""

import dataclasses
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, Node

from impls.graph.constants import held, number
from impls.graph.dimensions import NO_DIM, Dim, Dims, Odd, dims_of
from impls.graph.memory import COPIES, VIEWS, Memory, is_mutable
from impls.graph.products import Product, product
from impls.graph.tracing import is_tensor, name, shape

SOFTMAX = frozenset({"softmax", "_softmax", "_safe_softmax", "special_softmax"})
STATISTICS = frozenset({"amax", "max", "logsumexp"})
"""Operators whose results may be subtracted from all scores of a query, which its softmax doesn't notice."""

ENDS = STATISTICS | {"sum", "size", "sym_size", "output"}
"""Operators that don't lead on to a core, and say nothing against one."""

LOWEST = -1000.0
"""A score of at most this has no weight beside usual ones: its key is hidden."""

SMALL = 1e-5
"""What a sum of exponentials may be larger by, against a division by zero."""

ADD, HIDE, TIMES, FACTOR, ROW = "add", "hide", "times", "factor", "row"


@dataclass(frozen=True, eq=False)
class Term:
    """What an operator does to scores of dimensions `dims`, before the softmax.

    `kind` is ADD (`weight` times a tensor), HIDE (`value` where a tensor is True, or False if it `shows`), TIMES (the
    number `value`), FACTOR (a tensor, or 1 by it if it `divides`), or ROW (a statistic of each query is subtracted).
    `tensor` is argument `place` of the operator `at`.
    """

    kind: str
    at: Node
    place: int
    dims: Dims = ()
    tensor: Node | None = None
    weight: float = 1.0
    value: float = 1.0
    shows: bool = False
    divides: bool = False

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of the tensor in the scores' dimensions, 1 where it is broadcast."""
        own = shape(self.tensor) if self.tensor is not None else ()
        return (1,) * (len(self.dims) - len(own)) + own


@dataclass(frozen=True, eq=False)
class Sink:
    """Columns that stand beside the scores at a place of their dimensions, and whether they were left out after."""

    column: Node
    place: int
    dims: Dims
    is_left_out: bool = False

    @property
    def size(self) -> int:
        """The number of columns."""
        return shape(self.column)[self.place]


@dataclass(frozen=True, eq=False)
class Scores:
    """What is known of the result of a product at a place on its way.

    `layout` is a tensor without data whose strides are those of the product's result, `layouts` are all dimensions so
    far; `keys` is the dimension of the softmax; `since` is the place of the last change of its memory.
    """

    product: Product
    layout: Tensor
    terms: tuple[Term, ...] = ()
    layouts: tuple[Dims, ...] = ()
    exponentials: Node | None = None
    softmax: Node | None = None
    keys: Dim = NO_DIM
    weights: tuple[Node, ...] = ()
    dropout: float = 0.0
    sink: Sink | None = None
    since: int = -1

    @property
    def dims(self) -> Dims:
        """The dimensions in the present order."""
        return dims_of(self.layout)

    def after(self, **changes: Any) -> "Scores":
        """Return the scores with changes, their dimensions noted."""
        new = dataclasses.replace(self, **changes)
        return new if new.dims in new.layouts else dataclasses.replace(new, layouts=(*new.layouts, new.dims))

    def with_term(self, kind: str, at: Node, place: int, tensor: Node | None = None, **more: Any) -> "Scores":
        """Return the scores after an operator, which may add dimensions of size 1."""
        if tensor is None:
            return self.after(terms=(*self.terms, Term(kind, at, place, **more)))
        full = torch.broadcast_shapes(self.layout.shape, shape(tensor))
        if math.prod(full) != self.layout.numel():
            raise Odd("a tensor that makes more scores", at)
        layout = self.layout.broadcast_to(full)
        term = Term(kind, at, place, dims_of(layout), tensor, **more)
        return self.after(layout=layout, terms=(*self.terms, term))


@dataclass(frozen=True, eq=False)
class Way:
    """Scores as the second product takes them: what they went through, that product and its operand."""

    scores: Scores
    last: Product
    weights: Node


@dataclass(frozen=True, eq=False)
class Blocked:
    """Scores that `node` changes in a way that attention can't express; `user` is what takes them."""

    scores: Scores
    user: Node
    node: Node
    reason: str


def ways(first: Product, memory: Memory) -> Iterator[Way | Blocked]:
    """Return the ways of a product's result."""
    return Walk(first, memory).ways()


Next = Iterator[tuple[Node, Scores]]


class Walk:
    """A walk from a product along the users of its result."""

    def __init__(self, first: Product, memory: Memory) -> None:
        self.memory = memory
        self.first = first
        sizes = first.sizes
        scores = Scores(first, torch.empty([sizes[label] for label in first.out], device="meta")).after()
        if first.scale != 1:
            scores = scores.with_term(TIMES, first.node, 1, value=first.scale)
        if first.added is not None:
            scores = scores.with_term(ADD, first.node, 0, first.added, weight=first.beta)
        self.at: dict[Node, Scores] = {first.node: scores}

    def ways(self) -> Iterator[Way | Blocked]:
        """Yield where each way ends."""
        todo, seen = [*self.at.items()], set[tuple[Node, Node, int]]()
        while todo:
            node, scores = todo.pop()
            self.at[node] = scores
            for user in node.users:
                if (node, user, scores.since) in seen or self.memory.order[user] < scores.since:
                    continue
                seen.add((node, user, scores.since))
                if change := self.memory.change(node, scores.since, user):
                    yield Blocked(scores, user, change, f"{name(change)}: a change of some scores in place")
                    continue
                last = None if scores.softmax is None else product(user)
                if last is not None and node in (last.left, last.right):
                    yield Way(scores, last, node)
                    continue
                try:
                    todo += self._next(node, user, scores)
                except Odd as odd:
                    yield Blocked(scores, user, odd.node or user, str(odd))

    def _next(self, node: Node, user: Node, scores: Scores) -> list[tuple[Node, Scores]]:
        """Return where scores are after an operator; raises `Odd`."""
        kind = name(user)
        if user.op == "output" or kind in ENDS:
            return []
        if kind == "copy" and is_mutable(user):
            return self._copied(node, user, scores)
        is_past_exp = scores.exponentials is not None and scores.softmax is None
        if is_past_exp and kind != "div" and kind not in COPIES:
            raise Odd(f"{kind} of exponentials")
        handle = HANDLERS.get(kind)
        if handle is None or (scores.softmax is not None and kind not in AFTER_SOFTMAX):
            raise Odd(f"{kind} on the weights" if scores.softmax is not None else kind)
        new = handle(self, node, user, scores)
        if new is None:
            return []
        if is_mutable(user):
            new = dataclasses.replace(new, since=self.memory.order[user])
        if new.softmax is not None:
            new = dataclasses.replace(new, weights=(*new.weights, user))
        return [(user, new)]

    def is_of_scores(self, value: Any) -> bool:
        """Return whether something is computed from the product's result."""
        return isinstance(value, Node) and self.memory.depends(value, self.first.node)

    def _copied(self, node: Node, user: Node, scores: Scores) -> list[tuple[Node, Scores]]:
        """Follow a copy of all scores into the memory of scores from before."""
        if user.args[1] is not node:
            return []
        into, base = user.args[0], self.memory.root(user)
        assert isinstance(into, Node)
        old, of_base = self.at.get(into), self.at.get(base)
        if old is None or of_base is None or scores.softmax is not None:
            raise Odd("a change of some scores in place")
        if old.layout.numel() != of_base.layout.numel() or old.layout.stride() != scores.layout.stride():
            raise Odd("a change of some scores in place")
        since = self.memory.order[user]
        new = scores.after(layout=of_base.layout, since=since)
        return [(base, new), (user, new)] + [
            (other, scores.after(layout=each.layout, since=since))
            for other, each in self.at.items()
            if other not in (base, user)
            and self.memory.root(other) is base
            and each.layout.numel() == new.layout.numel()
        ]


def _softmax(_: Walk, _node: Node, user: Node, scores: Scores) -> Scores:
    if scores.softmax is not None:
        raise Odd("a second softmax")
    return _normalised(scores, user, user.args[1])


def _normalised(scores: Scores, user: Node, place: Any) -> Scores:
    return scores.after(softmax=user, keys=scores.dims[place], sink=scores.sink)


def _exp(_: Walk, _node: Node, user: Node, scores: Scores) -> Scores:
    return scores.after(exponentials=user)


def _divided(walk: Walk, node: Node, user: Node, scores: Scores) -> Scores:
    """Follow exponentials that are divided by their sum, which is a softmax, or scores that are divided."""
    if scores.exponentials is None:
        return _multiplied(walk, node, user, scores)
    total = user.args[1]
    if isinstance(total, Node) and name(total) in ("add", "clamp", "clamp_min") and len(total.args) > 1:
        small = total.args[1]
        if not isinstance(small, int | float) or abs(small) > SMALL:
            raise Odd("a sum of exponentials and something else", total)
        total = total.args[0]
    if user.args[0] is not node or not isinstance(total, Node) or name(total) != "sum":
        raise Odd("a division of exponentials")
    places = total.args[1] if len(total.args) > 1 else ()
    places = [places] if isinstance(places, int) else [*places] if isinstance(places, list | tuple) else []
    if not isinstance(total.args[0], Node) or _origin(total.args[0]) is not scores.exponentials or len(places) != 1:
        raise Odd("a division of exponentials by another sum")
    return _normalised(scores, user, places[0])


def _origin(node: Node) -> Node:
    while name(node) in COPIES and isinstance(node.args[0], Node):
        node = node.args[0]
    return node


def _dropped(_: Walk, _node: Node, user: Node, scores: Scores) -> Scores:
    share, is_on = user.args[1], bool(user.args[2] if len(user.args) > 2 else True)
    assert isinstance(share, int | float)
    if is_on and share and scores.softmax is None:
        raise Odd("dropout before the softmax")
    return scores.after(dropout=float(share)) if is_on and share else scores


def _taken(_: Walk, node: Node, user: Node, scores: Scores) -> Scores | None:
    if name(node) == "native_dropout":
        return scores if user.args[1] == 0 else None
    raise Odd(f"{name(node)}: some scores apart from others", node)


def _same(_: Walk, node: Node, user: Node, scores: Scores) -> Scores | None:
    return scores if user.args[0] is node else None


def _viewed(_: Walk, node: Node, user: Node, scores: Scores) -> Scores | None:
    if user.args[0] is not node:
        return None
    kind = name(user)
    try:
        layout = _as_layout(user, scores.layout)
    except RuntimeError:
        raise Odd(f"{kind}: scores in an order that can't be followed") from None
    if not isinstance(layout, Tensor):
        return scores  # its parts are asked one by one
    if layout.numel() == scores.layout.numel():
        return scores.after(layout=layout)
    if kind == "slice" and scores.sink and scores.softmax is not None and not scores.sink.is_left_out:
        place: Any = user.args[1]
        is_end = layout.shape[place] == scores.keys.size - scores.sink.size and user.args[2] in (0, None)
        if is_end and scores.dims[place].stride == scores.keys.stride:
            return scores.after(layout=layout, sink=dataclasses.replace(scores.sink, is_left_out=True))
    raise Odd(f"{kind}: some scores apart from others")


def _as_layout(user: Node, layout: Tensor) -> Any:
    kind, args = name(user), user.args[1:]
    if kind in ("view", "reshape", "_unsafe_view", "_reshape_alias"):
        return layout.view(args[0])  # type: ignore[arg-type]  # a list of numbers
    if kind in ("view_as", "expand_as"):
        return layout.view(shape(user)) if kind == "view_as" else layout.expand(shape(user))
    assert callable(user.target)
    return user.target(layout, *args, **user.kwargs)


def _added(walk: Walk, node: Node, user: Node, scores: Scores) -> Scores:
    place = 0 if user.args[0] is node else 1
    other: Any = user.args[1 - place]
    is_minus = name(user) == "sub"
    alpha = float(user.kwargs.get("alpha", user.args[2] if len(user.args) > 2 else 1))  # type: ignore[arg-type]
    signs = 1.0, -alpha if is_minus else alpha
    if signs[place] != 1:
        scores = scores.with_term(TIMES, user, place, value=signs[place])
    if not is_tensor(other):
        return scores  # the same is added to all scores
    if not walk.is_of_scores(other):
        return scores.with_term(ADD, user, 1 - place, other, weight=signs[1 - place])
    if not _is_statistic(other):
        raise Odd(f"{name(user)} of something that is computed from the scores")
    return scores.with_term(ROW, user, 1 - place, other)


def _is_statistic(node: Node) -> bool:
    while name(node) in COPIES or "getitem" in name(node):
        node = node.args[0]  # type: ignore[assignment]  # these take one tensor
    return name(node) in STATISTICS


def _multiplied(walk: Walk, node: Node, user: Node, scores: Scores) -> Scores:
    place, divides = 0 if user.args[0] is node else 1, name(user) == "div"
    other: Any = user.args[1 - place]
    if divides and place:
        raise Odd("a division by scores")
    if user.args[0] is user.args[1] or walk.is_of_scores(other):
        raise Odd(f"{name(user)} by something that is computed from the scores")
    if is_tensor(other):
        return scores.with_term(FACTOR, user, 1 - place, other, divides=divides)
    return scores.with_term(TIMES, user, 1 - place, value=1 / other if divides else float(other))


def _negated(_: Walk, _node: Node, user: Node, scores: Scores) -> Scores:
    return scores.with_term(TIMES, user, 0, value=-1.0)


def _hidden(walk: Walk, node: Node, user: Node, scores: Scores) -> Scores:
    """Follow scores of which some are replaced by a number; weights, if they are those of hidden keys."""
    args: Any = user.args
    is_where = name(user) == "where"
    if len(args) < 3:
        raise Odd(f"{name(user)} without scores")
    condition, value = (args[0], args[2 if args[1] is node else 1]) if is_where else args[1:3]
    if walk.is_of_scores(condition) or condition is node:
        raise Odd(f"{name(user)} by a condition on the scores")
    if args[1 if is_where and args[1] is node else 2 if is_where else 0] is not node:
        raise Odd(f"{name(user)} of something else")
    shows, fill = is_where and args[1] is node, number(value, walk.memory)
    if scores.softmax is not None:
        return _hidden_again(scores, condition, fill, shows=shows, at=user)
    if fill is None:
        raise Odd(f"{name(user)} by scores of another kind")
    if fill > LOWEST:
        raise Odd(f"{name(user)} by {fill:g}, which hides no key")
    return scores.with_term(HIDE, user, 0 if is_where else 1, condition, value=fill, shows=shows)


def _hidden_again(scores: Scores, condition: Node, fill: float | None, *, shows: bool, at: Node) -> Scores:
    """Follow weights of hidden keys that are set to zero: a query without keys gets zeros."""
    for place, term in enumerate(scores.terms):
        if fill == 0 and term.kind == HIDE and term.shows == shows and _are_same(term.tensor, condition):
            terms = [*scores.terms]
            terms[place] = dataclasses.replace(term, value=-math.inf)
            return scores.after(terms=tuple(terms))
    raise Odd(f"{name(at)} on the weights")


def _are_same(tensor: Node | None, other: Node) -> bool:
    """Return whether two nodes hold the same tensor."""
    return tensor is other or (
        tensor is not None and tensor.op == other.op == "get_attr" and held(tensor) is held(other)
    )


def _limited(_: Walk, _node: Node, user: Node, scores: Scores) -> Scores:
    low, high = (*user.args[1:3], None, None)[:2]
    if name(user) == "clamp_max":
        low, high = None, low
    low, high = user.kwargs.get("min", low), user.kwargs.get("max", high)
    limits = [each for each in (low, high) if each is not None]
    if all(isinstance(each, int | float) and abs(each) >= -LOWEST for each in limits):
        return scores  # no usual score is that large
    raise Odd(f"{name(user)}: scores have a limit")


def _beside(walk: Walk, node: Node, user: Node, scores: Scores) -> Scores:
    """Follow scores beside which columns are put, as an attention sink does."""
    parts: Any = user.args[0]
    place: Any = user.args[1] if len(user.args) > 1 else 0
    if len(parts) != 2 or parts[0] is not node or scores.sink is not None:
        raise Odd("cat of scores")
    if walk.is_of_scores(parts[1]) or product(parts[1]) is not None:
        raise Odd("cat of several products")
    place %= scores.layout.dim()
    sizes = [*scores.layout.shape]
    sizes[place] += shape(parts[1])[place]
    layout = torch.empty_strided(sizes, scores.layout.stride(), device="meta")
    return dataclasses.replace(scores, layout=layout, sink=Sink(parts[1], place, scores.dims))


Handler = Callable[[Walk, Node, Node, Scores], Scores | None]

HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(VIEWS, _viewed),
    **dict.fromkeys(COPIES, _same),
    **dict.fromkeys(SOFTMAX, _softmax),
    **dict.fromkeys(("dropout", "native_dropout", "feature_dropout"), _dropped),
    **dict.fromkeys(("add", "sub"), _added),
    **dict.fromkeys(("clamp", "clamp_min", "clamp_max", "hardtanh"), _limited),
    **dict.fromkeys(("masked_fill", "where"), _hidden),
    "exp": _exp,
    "div": _divided,
    "mul": _multiplied,
    "neg": _negated,
    "cat": _beside,
    "getitem": _taken,
}
"""What is done for an operator that takes scores, by its name."""

AFTER_SOFTMAX = VIEWS | COPIES | SOFTMAX | {"dropout", "native_dropout", "masked_fill", "where", "getitem"}
"""The operators that may stand between the softmax and the second product."""


def softmaxes(graph: Graph) -> Iterator[Node]:
    """Yield the softmaxes of a graph, and the sums that stand for one."""
    for node in graph.nodes:
        if node.op == "call_function" and (name(node) in SOFTMAX or name(node) == "logsumexp"):
            yield node
