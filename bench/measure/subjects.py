"""One implementation of a point, with its own copy of the weights, its own inputs, and its call."""

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
"""The most bytes for the inputs of a timing. As long as they fit, each call has its own input, so that no result can be
reused."""


@dataclass(frozen=True)
class Subject:
    """One implementation of a point with its own copy of the weights, so that it can't affect another."""

    layer: nn.Module
    function: impls.Implementation

    @cached_property
    def weights(self) -> Tensors:
        """The weights of the layer, read once, because an implementation may replace the method that returns them."""
        return tuple(self.layer.parameters())

    @cached_property
    def trained(self) -> Tensors:
        """The weights that need gradients; others may be frozen."""
        return tuple(weight for weight in self.weights if weight.requires_grad)


def subject(workload: Workload, implementation: str) -> Subject:
    """Return an implementation, built on its own copy of the weights; nothing is computed.

    Raises `impls.Unsupported` if the implementation can't express the layer.
    """
    layer = copied(workload.layer)
    return Subject(layer, impls.build(layer, implementation))


class InputsOfCalls(Protocol):
    """The source of a call's inputs and, in a training step, of the gradient of its output."""

    direction: Tensor
    next: Callable[[], Tensors]


class Inputs:
    """The inputs of one implementation, with separate tensors for each call of a timing.

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
        """Make tensors until there are enough for `number` calls."""
        with torch.inference_mode(False):  # else tensors made in the rounds would be inference tensors
            while len(self._tensors) < number:
                self._tensors.append(self._workload.leaves(tuple(each.clone() for each in self._workload.inputs())))

    def renew(self, calls: int, key: int, hold: Callable[[], None] | None = None) -> None:
        """Write the values of a key into the inputs of the next `calls` calls; very many calls share inputs.

        `hold` is called just before writing, after everything that waits for a GPU.
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
        """Return the inputs of a call in the last timing, preceded by their number."""
        number = call % len(self._shifts)
        return number, self._tensors[number]

    @property
    def with_directions(self) -> bool:
        """Whether a call returns gradients; each timing then has its own direction."""
        return self._workload.point.mode in TRAINED

    @property
    def tensors(self) -> list[Tensor]:
        """All tensors of the inputs."""
        return [*chain(*self._tensors), self.direction]

    def holding(self, values: InputValues) -> Tensors:
        """Write the workload's inputs for these values into the tensors of one call, and return these."""
        self._shifts = []
        with torch.no_grad():
            for tensor, value in zip(self._tensors[0], self._workload.inputs(values), strict=True):
                tensor.copy_(value)
        return self._tensors[0]

    def are_edited(self) -> bool:
        """Return whether an input differs from the values that the last timing wrote into it."""
        made = (self._workload.timed(self._key, shift) for shift in self._shifts)
        return any(
            not torch.equal(tensor.detach(), value)
            for tensors, values in zip(self._tensors, made, strict=False)
            for tensor, value in zip(tensors, values, strict=True)
        )


def step(subject: Subject, workload: Workload, inputs: InputsOfCalls | None = None) -> Callable[[], object]:
    """Return a function that calls the implementation once in the point's mode, in the workload's gradient mode.

    It returns the output. A training step also returns the gradients of inputs and of every weight that needs one, from
    a fresh graph. So does a backward pass; its attribute `prepare` makes the forward passes for a number of calls.
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
