"""One implementation of a point: on its own copy of the weights, with inputs of its own, and its call."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, cycle
from typing import Protocol

import torch
from torch import Tensor, nn

import impls
from bench.measure.layer import TRAINED, Tensors
from bench.measure.workload import Workload
from bench.modules.wrapper import copied
from bench.sampling.inputs import InputValues, shifts

INPUTS_BYTES = 1 << 26
"""The most memory for the inputs of a timing. Each call has one of its own, as long as they fit into it: then no result
can be used again."""


@dataclass(frozen=True)
class Subject:
    """One implementation of a point with its own copy of the weights, so that it can't disturb another."""

    layer: nn.Module
    function: impls.Implementation

    @cached_property
    def weights(self) -> Tensors:
        """The weights of the layer: it is asked for them once, because an implementation may answer in its place."""
        return tuple(self.layer.parameters())

    @cached_property
    def trained(self) -> Tensors:
        """The weights that need gradients: a user may have frozen the others."""
        return tuple(weight for weight in self.weights if weight.requires_grad)


def subject(workload: Workload, implementation: str) -> Subject:
    """Return an implementation, built on its own copy of the weights; nothing is computed.

    Raises `impls.Unsupported` if the implementation can't express the layer.
    """
    layer = copied(workload.layer)
    return Subject(layer, impls.build(layer, implementation))


class InputsOfCalls(Protocol):
    """Where a call gets its inputs from, and in a training step the gradient of its output."""

    direction: Tensor
    next: Callable[[], Tensors]


class Inputs:
    """The inputs of one implementation: tensors of its own, some for each call of a timing.

    `next()` returns the inputs of the next call, `direction` is the gradient of its output.
    """

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self.direction = workload.direction
        self._tensors: list[Tensors] = []
        self._shifts: list[int] = []
        self._key = 0
        self._make(1)
        self.next: Callable[[], Tensors] = cycle(self._tensors).__next__

    def _make(self, number: int) -> None:
        """Have tensors for so many calls at least."""
        with torch.inference_mode(False):  # else those that are made in the rounds would be of another kind
            while len(self._tensors) < number:
                self._tensors.append(self._workload.leaves(tuple(each.clone() for each in self._workload.inputs())))

    def renew(self, calls: int, key: int, hold: Callable[[], None] | None = None) -> None:
        """Write the values of a key into the inputs of the next `calls` calls; with very many calls they repeat.

        `hold` is called before they are written, and after all for which a GPU must be waited.
        """
        most = max(1, INPUTS_BYTES // sum(each.nbytes for each in self._tensors[0]))
        self._shifts, self._key = shifts(key, min(calls, most)), key
        self._make(len(self._shifts))
        self._workload.layout.arrange(self._workload.timed_lengths(key))
        if self._workload.with_gradients:
            self.direction = self._workload.direction_of(key)
        self.next = cycle(self._tensors[: len(self._shifts)]).__next__
        with torch.no_grad():
            values = [self._workload.timed(self._key, shift) for shift in self._shifts]
            if hold is not None:
                hold()
            for tensors, of in zip(self._tensors, values, strict=False):
                for tensor, value in zip(tensors, of, strict=True):
                    tensor.detach().copy_(value)

    def clear(self) -> None:
        """Write zeros in place of all values."""
        with torch.no_grad():
            for each in chain(*self._tensors):
                each.detach().zero_()

    def of_call(self, call: int) -> tuple[int, Tensors]:
        """Return the number among the inputs of the last timing, and the inputs, that a call had."""
        number = call % len(self._shifts)
        return number, self._tensors[number]

    @property
    def with_directions(self) -> bool:
        """Whether a call returns gradients, each timing's for a direction of its own."""
        return self._workload.point.mode in TRAINED

    @property
    def tensors(self) -> list[Tensor]:
        """All tensors of the inputs."""
        return [*chain(*self._tensors), self.direction]

    def holding(self, values: InputValues) -> Tensors:
        """Return the inputs of one call, with values of the workload."""
        self._shifts = []
        with torch.no_grad():
            for tensor, value in zip(self._tensors[0], self._workload.inputs(values), strict=True):
                tensor.copy_(value)
        return self._tensors[0]

    def are_edited(self) -> bool:
        """Return whether an input has other values than the last timing has written into it."""
        made = (self._workload.timed(self._key, shift) for shift in self._shifts)
        return any(
            not torch.equal(tensor.detach(), value)
            for tensors, values in zip(self._tensors, made, strict=False)
            for tensor, value in zip(tensors, values, strict=True)
        )


def step(subject: Subject, workload: Workload, inputs: InputsOfCalls | None = None) -> Callable[[], object]:
    """Return one call of the implementation in the point's mode; it must run in the workload's gradient mode.

    The call returns the output. A training step computes the gradients of inputs and of every weight that needs one
    from a fresh graph, and returns the output with them. So does a backward pass; its attribute `prepare` makes the
    forward passes of so many calls to come.
    """
    function, inputs = subject.function, inputs or Inputs(workload)
    varied = len(workload.shapes)
    ready: deque[tuple[Tensors, Tensor]] = deque()

    def forward() -> tuple[Tensors, Tensor]:
        xs = inputs.next()
        return xs, function(*xs)

    def with_gradients(xs: Tensors, y: Tensor) -> object:
        return y, torch.autograd.grad(y, [*xs[:varied], *subject.trained], inputs.direction, allow_unused=True)

    def prepare(calls: int) -> None:
        ready.extend(forward() for _ in range(calls - len(ready)))

    def backward() -> object:
        return with_gradients(*(ready.popleft() if ready else forward()))

    backward.prepare = prepare  # type: ignore[attr-defined]  # functions take attributes
    if workload.point.mode in TRAINED:
        return backward if workload.point.mode == "backward" else lambda: with_gradients(*forward())
    return lambda: function(*inputs.next())
