"""The ways of a product's result, the scores, through a softmax to a second product: what operators do to them."""

import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from bench.modules.graph.constants import held, number
from bench.modules.graph.dimensions import Odd, viewed
from bench.modules.graph.masks import LOWEST
from bench.modules.graph.memory import COPIES, VIEWS, Memory, is_mutable, origin
from bench.modules.graph.products import Product, product
from bench.modules.graph.scores import ADD, FACTOR, HIDE, ROW, SOFTMAX, TIMES, Blocked, Scores, Sink, Way
from bench.modules.graph.tracing import is_tensor, name, shape

STATISTICS = frozenset({"amax", "max", "logsumexp"})
"""Operators whose results may be subtracted from all scores of a query, which its softmax doesn't notice."""

ENDS = STATISTICS | {"sum", "size", "sym_size", "output"}
"""Operators that don't lead on to a core, and say nothing against one."""

SMALL = 1e-5
"""What a sum of exponentials may be larger by, against a division by zero."""


def is_of_scores(value: Any, scores: Scores, memory: Memory) -> bool:
    """Return whether something is computed from the product's result."""
    return isinstance(value, Node) and memory.depends(value, scores.product.node)


def _softmax(_: Memory, _node: Node, user: Node, scores: Scores) -> Scores:
    if scores.softmax is not None:
        raise Odd("a second softmax")
    return _normalised(scores, user, user.args[1])


def _normalised(scores: Scores, user: Node, place: Any) -> Scores:
    return scores.after(softmax=user, keys=scores.dims[place])


def _divided(memory: Memory, node: Node, user: Node, scores: Scores) -> Scores:
    """Follow exponentials that are divided by their sum, which is a softmax, or scores that are divided."""
    if scores.exponentials is None:
        return _multiplied(memory, node, user, scores)
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
    if not isinstance(total.args[0], Node) or origin(total.args[0]) is not scores.exponentials or len(places) != 1:
        raise Odd("a division of exponentials by another sum")
    return _normalised(scores, user, places[0])


def _exponential(_: Memory, node: Node, user: Node, scores: Scores) -> Scores:
    """Follow exponentials; those of scores less their logsumexp are a softmax."""
    last = scores.terms[-1] if scores.terms else None
    total = origin(last.tensor) if last and last.tensor and last.kind == ROW and last.at is node else None
    if total is None or name(total) != "logsumexp" or total.args[0] is not node.args[0]:
        return scores.after(exponentials=user)
    places: Any = total.args[1]
    if len(places) != 1:
        raise Odd("a logsumexp over several dimensions", total)
    return _normalised(scores.after(terms=scores.terms[:-1]), total, places[0])


def _dropped(_: Memory, _node: Node, user: Node, scores: Scores) -> Scores:
    share, is_on = user.args[1], bool(user.args[2] if len(user.args) > 2 else True)
    assert isinstance(share, int | float)
    if is_on and share and scores.softmax is None:
        raise Odd("dropout before the softmax")
    return scores.after(dropout=float(share)) if is_on and share else scores


def _taken(_: Memory, node: Node, user: Node, scores: Scores) -> Scores | None:
    if name(node) == "native_dropout":
        return scores if user.args[1] == 0 else None
    raise Odd(f"{name(node)}: some {scores.what} apart from others", node)


def _same(_: Memory, node: Node, user: Node, scores: Scores) -> Scores | None:
    return scores if user.args[0] is node else None


def _viewed(_: Memory, node: Node, user: Node, scores: Scores) -> Scores | None:
    if user.args[0] is not node:
        return None
    kind = name(user)
    try:
        layout = viewed(user, scores.layout)
    except RuntimeError:
        raise Odd(f"{kind}: {scores.what} in an order that can't be followed") from None
    if not isinstance(layout, Tensor):
        return scores  # its parts are asked one by one
    if layout.numel() == scores.layout.numel():
        return scores.after(layout=layout)
    if kind == "slice" and scores.sink and scores.softmax is not None and not scores.sink.is_left_out:
        place: Any = user.args[1]
        is_end = layout.shape[place] == scores.keys.size - scores.sink.size and user.args[2] in (0, None)
        if is_end and scores.dims[place].stride == scores.keys.stride:
            return scores.after(layout=layout, sink=dataclasses.replace(scores.sink, is_left_out=True))
    raise Odd(f"{kind}: some {scores.what} apart from others")


def _added(memory: Memory, node: Node, user: Node, scores: Scores) -> Scores:
    place = 0 if user.args[0] is node else 1
    other: Any = user.args[1 - place]
    is_minus = name(user) == "sub"
    alpha = float(user.kwargs.get("alpha", user.args[2] if len(user.args) > 2 else 1))  # type: ignore[arg-type]
    signs = 1.0, -alpha if is_minus else alpha
    if signs[place] != 1:
        scores = scores.with_term(TIMES, user, place, value=signs[place])
    if not is_tensor(other):
        return scores  # the same is added to all scores
    if not is_of_scores(other, scores, memory):
        return scores.with_term(ADD, user, 1 - place, other, weight=signs[1 - place])
    if not _is_statistic(other):
        raise Odd(f"{name(user)} of something that is computed from the scores")
    return scores.with_term(ROW, user, 1 - place, other)


def _is_statistic(node: Node) -> bool:
    return name(origin(node, COPIES | {"getitem"})) in STATISTICS


def _multiplied(memory: Memory, node: Node, user: Node, scores: Scores) -> Scores:
    place, divides = 0 if user.args[0] is node else 1, name(user) == "div"
    other: Any = user.args[1 - place]
    if divides and place:
        raise Odd("a division by scores")
    if user.args[0] is user.args[1] or is_of_scores(other, scores, memory):
        raise Odd(f"{name(user)} by something that is computed from the scores")
    if is_tensor(other):
        return scores.with_term(FACTOR, user, 1 - place, other, divides=divides)
    return scores.with_term(TIMES, user, 1 - place, value=1 / other if divides else float(other))


def _hidden(memory: Memory, node: Node, user: Node, scores: Scores) -> Scores:
    """Follow scores of which some are replaced by a number; weights, if they are those of hidden keys."""
    args: Any = user.args
    is_where = name(user) == "where"
    if len(args) < 3:
        raise Odd(f"{name(user)} without scores")
    condition, value = (args[0], args[2 if args[1] is node else 1]) if is_where else args[1:3]
    if is_of_scores(condition, scores, memory) or condition is node:
        raise Odd(f"{name(user)} by a condition on the scores")
    if args[1 if is_where and args[1] is node else 2 if is_where else 0] is not node:
        raise Odd(f"{name(user)} of something else")
    shows, fill = is_where and args[1] is node, number(value, memory)
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


def _limited(_: Memory, _node: Node, user: Node, scores: Scores) -> Scores:
    low, high = (*user.args[1:3], None, None)[:2]
    if name(user) == "clamp_max":
        low, high = None, low
    low, high = user.kwargs.get("min", low), user.kwargs.get("max", high)
    limits = [each for each in (low, high) if each is not None]
    if all(isinstance(each, int | float) and abs(each) >= -LOWEST for each in limits):
        return scores  # no usual score is that large
    raise Odd(f"{name(user)}: scores have a limit")


def _beside(memory: Memory, node: Node, user: Node, scores: Scores) -> Scores:
    """Follow scores beside which columns are put, as an attention sink does."""
    parts: Any = user.args[0]
    place: Any = user.args[1] if len(user.args) > 1 else 0
    if len(parts) != 2 or parts[0] is not node or scores.sink is not None:
        raise Odd("cat of scores")
    if is_of_scores(parts[1], scores, memory) or product(parts[1]) is not None:
        raise Odd("cat of several products")
    place %= scores.layout.dim()
    sizes = [*scores.layout.shape]
    sizes[place] += shape(parts[1])[place]
    layout = torch.empty_strided(sizes, scores.layout.stride(), device="meta")
    return dataclasses.replace(scores, layout=layout, sink=Sink(parts[1], place, scores.dims))


Handler = Callable[[Memory, Node, Node, Scores], Scores | None]

HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(VIEWS, _viewed),
    **dict.fromkeys(COPIES, _same),
    **dict.fromkeys(SOFTMAX, _softmax),
    **dict.fromkeys(("dropout", "native_dropout", "feature_dropout"), _dropped),
    **dict.fromkeys(("add", "sub"), _added),
    **dict.fromkeys(("clamp", "clamp_min", "clamp_max", "hardtanh"), _limited),
    **dict.fromkeys(("masked_fill", "where"), _hidden),
    "exp": _exponential,
    "div": _divided,
    "mul": _multiplied,
    "neg": lambda _, _node, user, scores: scores.with_term(TIMES, user, 0, value=-1.0),
    "cat": _beside,
    "getitem": _taken,
}
"""What is done for an operator that takes scores, by its name."""

AFTER_SOFTMAX = VIEWS | COPIES | SOFTMAX | {"dropout", "native_dropout", "masked_fill", "where", "getitem"}
"""The operators that may stand between the softmax and the second product."""


class Walk:
    """A walk from a product along the users of its result."""

    def __init__(self, first: Product, memory: Memory) -> None:
        self.memory = memory
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
                    yield Blocked(scores, user, change, f"{name(change)}: a change of some {scores.what} in place")
                    continue
                other = product(user)
                if other is not None and node in (other.left, other.right):
                    if _sums_over_heads(node, other, scores):
                        reason = f"{scores.what} of heads are mixed (talking heads)"
                        yield Blocked(scores, user, user, reason, is_mixed=True)
                        continue
                    if scores.softmax is not None:
                        yield Way(scores, other, node)
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
        new = handle(self.memory, node, user, scores)
        if new is None:
            return []
        if is_mutable(user):
            new = dataclasses.replace(new, since=self.memory.order[user])
        if new.softmax is not None:
            new = dataclasses.replace(new, weights=(*new.weights, user))
        return [(user, new)]

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


def _sums_over_heads(node: Node, other: Product, scores: Scores) -> bool:
    """Return whether a product of scores, or weights, sums over a dimension that queries and keys share."""
    first = scores.product
    shared = [
        dim
        for label, dim in zip(first.out, scores.layouts[0], strict=True)
        if label in first.of_left and label in first.of_right and dim.size > 1
    ]
    labels = other.of_left if other.left is node else other.of_right
    return any(dim in shared and label in other.summed for label, dim in zip(labels, scores.dims, strict=True))
