"""The ways of a product's result, the scores, through a softmax to a second product."""

import dataclasses
from collections.abc import Iterator

import torch
from torch.fx import Node

from impls.graph.dimensions import Odd
from impls.graph.memory import COPIES, Memory, is_mutable
from impls.graph.products import Product, product
from impls.graph.scores import ADD, TIMES, Blocked, Scores, Way
from impls.graph.steps import AFTER_SOFTMAX, ENDS, HANDLERS
from impls.graph.tracing import name


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
