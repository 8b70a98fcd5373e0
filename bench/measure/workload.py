"""The tensors of a point: the reference layer, its inputs, and one call of an implementation."""

import copy
import dataclasses
import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from itertools import cycle
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

import impls
from bench.plan import layers
from bench.plan.case import COLUMNS, Point
from bench.plan.layers.layer import Work
from bench.sampling.inputs import SHIFTS, TURNS, drawn
from impls.catalogue import is_model
from impls.contract import NO_MASK
from impls.layers import construct, statement

SEED = 20_200_914
"""The default seed of weights and inputs: profiles and memory measurements use the same values."""

GAMMA = 0.5
"""The weight of the residual of `conv`: at its initial 0 the layer returns its input, and any kernel would pass."""

INPUTS = "normal(0, 1)"
"""The distribution of inputs and output gradients."""


@dataclass(frozen=True)
class Workload:
    """The layer and the values that all implementations of a point use.

    `layer` has the weights, inputs are cut out of `values`, `direction` is the gradient of the output: all random from
    `seed`, on the point's device in the point's dtype.
    `flops` are the operations of a call, None if they are unknown.
    """

    point: Point
    seed: int
    layer: nn.Module
    values: Tensor
    shape: tuple[int, ...]
    direction: Tensor
    flops: int | None = None

    @property
    def least_work(self) -> Work:
        """The least work of a call: its operations, and input, weights and output moved once."""
        tensors = [self.x, self.direction, *self.layer.parameters()]
        return Work(self.flops, sum(tensor.nbytes for tensor in tensors))

    @property
    def x(self) -> Tensor:
        """The first input."""
        return self.input(0)

    def input(self, shift: int) -> Tensor:
        """Return the input that begins `shift` values after the first one, 0 to SHIFTS; a view, to be copied."""
        return self.values[shift : shift + math.prod(self.shape)].view(self.shape)

    @cached_property
    def timed(self) -> "TimedValues":
        """The values of timed inputs."""
        return TimedValues(self)

    @property
    def with_gradients(self) -> bool:
        """Whether the point's mode builds a graph."""
        return self.point.mode != "inference"

    def gradient_mode(self) -> AbstractContextManager[object]:
        """Return the gradient mode in which the point's calls run."""
        return torch.enable_grad() if self.with_gradients else torch.inference_mode()


class TimedValues:
    """The values of timed inputs: sums and differences of two windows of random numbers, which follow from keys.

    They are none of the values of the workload, so that no answer can be computed before a key is known.
    `numbers` are the random numbers.
    """

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self.numbers = torch.zeros_like(workload.values)
        self._key: int | None = None

    def begin(self, key: int) -> None:
        """Make the random numbers of a key, unless they are here."""
        if key != self._key:
            generator = torch.Generator().manual_seed(key)
            self.numbers.copy_(torch.randn(self.numbers.shape, generator=generator).mul_(math.sqrt(0.5)))
            self._key = key

    def write(self, values: tuple[int, int, int], x: Tensor) -> Tensor:
        """Write the sum or the difference of two windows into x, and return it."""
        first, second, sign = values
        return torch.add(self._window(first), self._window(second), alpha=sign, out=x)

    def tensor(self, values: tuple[int, int, int], item: int | slice = slice(None)) -> Tensor:
        """Return the sum or the difference of two windows, or of one item of each."""
        first, second, sign = values
        return torch.add(self._window(first)[item], self._window(second)[item], alpha=sign)

    def input(self, numbers: int, key: int, place: int, item: int | slice = slice(None)) -> Tensor:
        """Return an input, by the keys of the numbers and of its timing, and its place among the timing's inputs.

        If an item is given, only that item of it is returned.
        """
        self.begin(numbers)
        return self.tensor(drawn(key).values[place], item)

    def _window(self, shift: int) -> Tensor:
        return self.numbers[shift : shift + math.prod(self._workload.shape)].view(self._workload.shape)


class Inputs:
    """The inputs of one implementation: its own tensors, which alternate from call to call.

    `next()` returns the input of the next call, `direction` is the gradient of its output in training.
    """

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self.direction = workload.direction.clone()
        self._tensors = [workload.x.clone().requires_grad_(workload.with_gradients) for _ in range(TURNS)]
        self._order = [*range(TURNS)]
        self._written: dict[int, tuple[int, int, int]] = {}
        self.next: Callable[[], Tensor] = cycle(self._tensors).__next__

    def renew(self, calls: int, key: int) -> None:
        """Write the values of a key into the inputs of the next `calls` calls, and put them into its order."""
        tensors = min(calls, TURNS)
        order, values = drawn(key, tensors)
        self._order = [*order]
        self._written = dict(zip(order, values, strict=True))
        with torch.no_grad():
            for index, each in self._written.items():
                self._workload.timed.write(each, self._tensors[index].detach())
        self.next = cycle([self._tensors[index] for index in order]).__next__

    def of_call(self, call: int) -> tuple[int, Tensor]:
        """Return the number among the inputs of the last timing, and the input, that a call had."""
        number = call % len(self._order)
        return number, self._tensors[self._order[number]]

    @property
    def tensors(self) -> list[Tensor]:
        """All tensors of the inputs, and the gradient of the output."""
        return [*self._tensors, self.direction, self._workload.timed.numbers]

    def holding(self, shift: int) -> Tensor:
        """Return one of the inputs, with the values of the workload at that shift."""
        self._written.pop(0, None)
        with torch.no_grad():
            self._tensors[0].copy_(self._workload.input(shift))
        return self._tensors[0]

    def are_edited(self) -> bool:
        """Return whether an input has other values than the last timing has written into it."""
        tensor = self._workload.timed.tensor
        return any(not torch.equal(self._tensors[at].detach(), tensor(values)) for at, values in self._written.items())


@dataclass(frozen=True)
class Subject:
    """One implementation of a point with its own copy of the weights, so that it can't disturb another."""

    layer: nn.Module
    function: impls.Implementation


def set_up(point: Point) -> None:
    """Set the number of threads of this process to the point's, and on a GPU the current device."""
    torch.set_num_threads(point.threads)
    if point.device != "cpu":
        torch.cuda.set_device(torch.device(point.device).index or 0)


def make(point: Point, seed: int = SEED) -> Workload:
    """Return the workload of a point; its values depend only on the seed and the shape.

    Raises `impls.Unresolved` if a user's own layer can't be imported or breaks the contract, `impls.Unsupported` if it
    doesn't take the point's mask.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layer = _layer(point).train(point.mode != "inference")
        shape = _input_shape(point, layer)
        values = torch.randn(math.prod(shape) + SHIFTS)
        output_shape, flops = _traced(point, layer, values[: math.prod(shape)].view(shape))
        direction = torch.randn(output_shape)
    there = point.device, getattr(torch, point.dtype)
    return Workload(point, seed, layer.to(*there), values.to(*there), shape, direction.to(*there), flops)


def subject(workload: Workload, implementation: str) -> Subject:
    """Return an implementation, built on its own copy of the weights; nothing is computed.

    Raises `impls.Unsupported` if the implementation can't express the layer.
    """
    layer = copy.deepcopy(workload.layer)
    return Subject(layer, impls.build(layer, implementation))


def step(subject: Subject, workload: Workload, inputs: Inputs | None = None) -> Callable[[], object]:
    """Return one call of the implementation in the point's mode; it must run in the workload's gradient mode.

    The call returns the output. A training step computes the gradients of x and of every weight from a fresh graph, and
    returns the output with them.
    """
    function, inputs = subject.function, inputs or Inputs(workload)
    if workload.point.mode != "train":
        return lambda: function(inputs.next())
    weights, direction = [*subject.layer.parameters()], inputs.direction

    def train() -> object:
        x = inputs.next()
        y = function(x)
        return y, torch.autograd.grad(y, [x, *weights], direction, allow_unused=True)

    return train


def _layer(point: Point) -> nn.Module:
    columns = (column for column in COLUMNS.values() if column.name not in layers.fixed(point.layer))
    required = [each.name for each in columns if each.changes_function and not each.is_usual(point)]
    layer = construct(layers.module_of(point.layer), dataclasses.asdict(point), required)
    if isinstance(layer, impls.ConvSelfAttention):
        nn.init.constant_(layer.gamma, GAMMA)
    return layer


def _input_shape(point: Point, layer: nn.Module) -> tuple[int, ...]:
    """Return the shape of the layer's input: the stated one, or that of tokens, or of images for our image layers."""
    is_own = layers.is_own(point.layer)
    if is_own and (input_shape := statement(point.layer, layer, "input_shape")):
        return _checked_shape(point, input_shape(point))
    if is_own or point.image_size is None:
        return point.batch, point.num_tokens, point.token_len
    image_channels = point.token_len // (point.patch_size or 1) ** 2
    return point.batch, image_channels, point.image_size, point.image_size


def _checked_shape(point: Point, shape: Any) -> tuple[int, ...]:
    sizes = tuple(shape) if isinstance(shape, tuple | list) else ()
    if not all(isinstance(size, int) and size > 0 for size in sizes) or sizes[:1] != (point.batch,):
        raise impls.Unresolved(
            f"layer {point.layer!r}: input_shape(point) must return whole numbers that begin with the batch "
            f"{point.batch}, got {shape!r}"
        )
    return sizes


def _traced(point: Point, layer: nn.Module, x: Tensor) -> tuple[torch.Size, int | None]:
    """Return the shape of the layer's output and the operations of a call, None if they are unknown."""
    if not layers.is_own(point.layer):
        output: Tensor = copy.deepcopy(layer).to("meta")(x.to("meta"))
        return output.shape, layers.flops(point)
    try:
        result, counted = _counted(point, copy.deepcopy(layer).to("meta"), x.to("meta"))
    except Exception:  # a layer may need tensors with values
        result, counted = _counted_with_values(point, layer, x)
    if type(result) is not Tensor or result.shape[:1] != (point.batch,):
        got = list(result.shape) if isinstance(result, Tensor) else type(result).__name__
        raise impls.Unresolved(
            f"layer {point.layer!r} must return a tensor whose first dimension is the batch {point.batch}, got {got}"
        )
    flops = statement(point.layer, layer, "flops")
    return result.shape, flops(point) if flops else counted


def _counted_with_values(point: Point, layer: nn.Module, x: Tensor) -> tuple[Any, int | None]:
    try:
        return _counted(point, copy.deepcopy(layer), x)
    except Exception as error:
        first = f"{type(error).__name__}: {error}".splitlines()[0]
        hint = "a layer whose input isn't [B, N, token_len] states its shape by input_shape(point)"
        if is_model(point.layer):
            hint = "another shape is given by --input, as 8x3x224x224"
        raise impls.Unresolved(f"layer {point.layer!r} can't take x {list(x.shape)}: {first}; {hint}") from error


def _counted(point: Point, layer: nn.Module, x: Tensor) -> tuple[Any, int | None]:
    """Return a layer's output, and the operations that torch counts in a call of the point's mode.

    The count of a masked layer is None: it may compute scores that the mask removes, so the work is unknown.
    """
    with FlopCounterMode(display=False) as counter, torch.enable_grad():
        output = layer(x.detach().requires_grad_(point.mode == "train"))
        if point.mode == "train" and isinstance(output, Tensor):
            output.sum().backward()
    return output, None if point.mask != NO_MASK else counter.get_total_flops() or None
