"""Adapters of tests, written as functions that run at each call."""

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from impls import Adapt, Implementation


class Own:
    """The state of an implementation: its layer, the number of its calls, and values kept from call to call."""

    def __init__(self, layer: nn.Module) -> None:
        self.layer = layer
        self.calls = 0
        self.kept: dict[Any, Any] = {}
        self.others: tuple[Tensor, ...] = ()

    def __call__(self, x: Tensor) -> Tensor:
        """Return the layer's output; its inputs after x come from the call."""
        y: Tensor = self.layer(x, *self.others)
        return y


def each_call(work: Callable[[Own, Tensor], Tensor]) -> Adapt:
    """Return the adapter of an implementation that does this work at each call."""

    def adapt(layer: nn.Module) -> Implementation:
        own = Own(layer)

        def call(x: Tensor, *others: Tensor) -> Tensor:
            own.calls += 1
            own.others = others
            return work(own, x)

        return call

    return adapt


HONEST_CALLS = 4
"""More than the calls of the correctness check, and fewer than a warm-up."""


def later(work: Callable[[Own, Tensor], Tensor]) -> Adapt:
    """Return the adapter of an implementation that is honest for HONEST_CALLS, and does this work from then on."""
    return each_call(lambda own, x: own(x) if own.calls <= HONEST_CALLS else work(own, x))


def honest(change: Callable[[], object], when: Callable[[], bool] = lambda: True, *, once: bool = False) -> Adapt:
    """Return the adapter of an implementation that makes a change before a call, `when` this is so, and then works."""

    def work(own: Own, x: Tensor) -> Tensor:
        if when() and not (once and own.kept):
            own.kept["changed"] = True
            change()
        return own(x)

    return each_call(work)
