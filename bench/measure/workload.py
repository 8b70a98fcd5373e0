"""The tensors of a point: the layer with its weights, and the values of inputs."""

import math
import random
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from numpy import random as numpy_random
from torch import Tensor, nn

from bench.measure.cores import is_plain
from bench.measure.devices import device
from bench.measure.layer import TRAINED, Shapes, Tensors, cast_to, made, traced
from bench.modules.wrapper import Wrapper, copied
from bench.plan import layers
from bench.plan.case import Point
from bench.plan.work import Work
from bench.sampling.inputs import SHIFTS, InputValues, TimedCall, shifts

SEED = 20_200_914
"""The default seed of weights and inputs: profiles and memory measurements use the same values."""

SPREAD = 2.5
"""The standard deviation of inputs, unless a layer has an `input_sd`. With torch's usual weights logits then have one
of 2.

In bfloat16 plain eager is then off by 0.5 % of the largest value, as with smaller inputs, and the mean of the values is
off by 20 %. With a standard deviation of 1 the mean is off by 2 %, which is within the tolerance."""

INPUTS = f"normal(0, {SPREAD})"
"""The distribution of inputs."""

VALUES_SEED = 1
"""The seed of input values minus the seed of weights: inputs must not depend on how many weights a layer draws."""


class Layout:
    """The layout of items in tensors, with the batch first; an implementation that packs items has another one."""

    lengths: tuple[int, ...] = ()
    """The lengths of the items for which the implementation is set."""

    def arrange(self, lengths: tuple[int, ...]) -> None:
        """Set the lengths of items for the implementation's next calls."""

    def packed(self, padded: Tensor) -> Tensor:
        """Return padded items in this layout."""
        return padded

    def taken(self, inputs: Tensors) -> Tensors:
        """Return the inputs of a call in this layout."""
        return inputs

    def whole(self, tensor: Tensor) -> Tensor:
        """Return all items, padded, with the batch first."""
        return tensor

    def item(self, tensor: Tensor, item: int) -> Tensor:
        """Return one item, padded."""
        return tensor[item]


@dataclass(frozen=True)
class Workload:
    """The layer and the values that all implementations of a point use.

    `layer` has the weights, inputs of these `shapes` are windows of `values`, and `direction` is the gradient of the
    output in checks. All are random from `seed`, on the point's device, in its dtype, with the batch first.
    `lengths` are the items' lengths in checks, empty if all are the same; their order differs from timing to timing.
    `flops` are the operations of a call, None if unknown. An implementation that packs items has its own `layout`, and
    its `direction` is `padded_direction`, packed.
    """

    point: Point
    seed: int
    layer: nn.Module
    values: Tensor
    shapes: Shapes
    direction: Tensor
    flops: int | None = None
    lengths: tuple[int, ...] = ()
    layout: Layout = Layout()  # noqa: RUF009 - it has no state
    padded_direction: Tensor | None = None

    @property
    def least_work(self) -> Work:
        """The least work of a call: its operations, and inputs, weights, output and a bias of `core` moved once.

        It excludes padding.
        """
        if self.lengths:
            return Work(self.flops, layers.least_bytes(self.point))
        is_module = layers.layer_of(self.point.layer).is_module
        held = self.layer.parameters() if is_module else self.layer.state_dict().values()
        tensors = [*self.inputs(), self.direction, *held]
        return Work(self.flops, sum(tensor.nbytes for tensor in tensors))

    def inputs(self, values: InputValues = InputValues()) -> Tensors:  # noqa: B008 - it can't be changed
        """Return a window of the values, shifted by 0 to SHIFTS numbers, times a factor; copy it before use."""
        self.layout.arrange(self.lengths)
        parts = _window(self.values, values.shift, self.shapes)
        parts = parts if values.factor == 1 else tuple(part * values.factor for part in parts)
        return self.layout.taken((*parts, *self._padding(self.lengths)))

    def leaves(self, inputs: Tensors) -> Tensors:
        """Return the inputs of a call detached, so that the ones with gradients are leaves of a new graph."""
        varied = len(self.shapes)
        return *(each.detach().requires_grad_(self.with_gradients) for each in inputs[:varied]), *inputs[varied:]

    @property
    def by_item(self) -> int:
        """The number of result tensors that have the batch first: the output and the gradients of inputs.

        The gradients of weights are sums over all items.
        """
        return 1 + len(self.shapes) * self.with_gradients

    @property
    def names(self) -> list[str]:
        """The names of the output and its gradients, if the mode has any, in their order."""
        if not self.with_gradients:
            return ["output"]
        varied, weights = len(self.shapes), (name for name, _ in self.layer.named_parameters())
        inputs = [f"input {number}" for number in range(1, 1 + varied)] if varied > 1 else ["x"]
        return ["output", *(f"gradient of {name}" for name in (*inputs, *weights))]

    def items(self, number: int, dtype: torch.dtype) -> Tensors:
        """Return the first `number` items of the inputs, on the CPU in another dtype."""
        return tuple(cast_to(each[:number], "cpu", dtype) for each in self.inputs())

    @cached_property
    def has_plain_core(self) -> bool:
        """Whether the layer's own core is the plain formula, so that the judge may replace it."""
        return is_plain(copied(self.layer).to("cpu", torch.float32), self.items(1, torch.float32))

    def timed(self, key: int, shift: int) -> Tensors:
        """Return the inputs of a call in the timing of a key, as the window that begins at `shift`.

        The order of items with different lengths differs between timings, but not between calls of one, because a model
        packs a batch once for all layers.
        """
        padding = self._padding(self.timed_lengths(key))
        return self.layout.taken((*_window(self.values, shift, self.shapes), *padding))

    def of_call(self, call: TimedCall) -> Tensors:
        """Return the inputs of a timed call."""
        return self.timed(call.key, shifts(call.key, call.number + 1)[-1])

    def timed_lengths(self, key: int) -> tuple[int, ...]:
        """Return the lengths of the items in the timing of a key; empty if all are the same."""
        return tuple(random.Random(key).sample(self.lengths, len(self.lengths)))  # noqa: S311 - the judge repeats it

    def _padding(self, lengths: Sequence[int]) -> Tensors:
        return _padding(self.point, lengths, self.values.device)

    @property
    def with_gradients(self) -> bool:
        """Whether the point's mode builds an autograd graph."""
        return self.point.mode != "inference"

    def direction_of(self, key: int) -> Tensor:
        """Return the gradient of the outputs in the timing of a key.

        In mode forward, where no call uses it, it equals the one of checks, unless padding differs between timings.
        """
        if self.point.mode not in TRAINED and not self.lengths:
            return self.direction
        direction = self.direction if self.padded_direction is None else self.padded_direction
        shift = random.Random(f"direction {key}").randrange(direction.numel())  # noqa: S311 - the judge repeats it
        rolled = direction.flatten().roll(shift).view(direction.shape)
        if not self.lengths:
            return self.layout.packed(rolled)
        return self.layout.packed(without_padding(rolled, self._padding(self.timed_lengths(key))[-1]))

    @property
    def like(self) -> list[Tensor]:
        """Tensors with the shapes and dtypes of an output, and of its gradients if the mode has any."""
        of_gradients = (*self.inputs()[: len(self.shapes)], *self.layer.parameters()) if self.with_gradients else ()
        return [self.direction, *of_gradients]

    def handed_over(self, output: Sequence[Tensor]) -> list[Tensor]:
        """Return an output and its gradients in the judge's layout."""
        return [*(self.layout.whole(each) for each in output[: self.by_item]), *output[self.by_item :]]

    def item(self, output: Sequence[Tensor], item: int) -> list[Tensor]:
        """Return one item of an output and of the gradients of inputs, in the judge's layout."""
        return [self.layout.item(each, item) for each in output[: self.by_item]]

    def gradient_mode(self) -> AbstractContextManager[object]:
        """Return a context with the gradient mode of the point's calls."""
        return torch.enable_grad() if self.with_gradients else torch.inference_mode()


def _window(numbers: Tensor, shift: int, shapes: Shapes) -> Tensors:
    """Return consecutive parts of `numbers`, from `shift` on, as tensors of these shapes."""
    sizes = [math.prod(shape) for shape in shapes]
    parts = numbers[shift : shift + sum(sizes)].split(sizes)
    return tuple(part.view(shape) for part, shape in zip(parts, shapes, strict=True))


def without_padding(tensor: Tensor, padding: Tensor, instead: float = 0.0) -> Tensor:
    """Return a tensor `[B, …, N, X]` with zeros, or another number, at padding tokens, True in `padding` `[B, N]`."""
    hidden = padding.view(len(padding), *[1] * (tensor.ndim - 3), padding.shape[1], 1)
    return tensor.masked_fill(hidden, instead)


def set_up(point: Point) -> None:
    """Set the point's number of threads and its device in this process."""
    torch.set_num_threads(point.threads)
    device(point.device).choose()


def make(point: Point, seed: int = SEED, given: str | None = None) -> Workload:
    """Return the workload of a point; its values depend only on the seed and the shape, or come from the file `given`.

    Raises `impls.Unresolved` if a user's own layer can't be imported or breaks the contract, `impls.Unsupported` if it
    doesn't take the point's mask.
    """
    on, dtype = device(point.device), getattr(torch, point.dtype)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        with _python_seeded(seed):
            layer, shapes = made(point)
        layer.train(point.mode != "inference")
        torch.manual_seed(seed + VALUES_SEED)
        numbers = torch.randn(sum(map(math.prod, shapes)) + SHIFTS)
        values = numbers.mul_(float(getattr(layer, "input_sd", SPREAD))).to(dtype)
        saved = load(layer, given) if given else {}
        values = saved.get("values", values)
        lengths = _lengths(point)
        padding = _padding(point, lengths)
        output_shape, flops = traced(point, layer, (*_window(values, 0, shapes), *padding))
        direction = torch.randn(output_shape).to(dtype)
        direction = saved.get("direction", direction)
        if point.is_padded:
            direction = without_padding(direction, padding[-1])
    there = on.place, dtype
    tensors = layer.to(*there), values.to(*there), shapes, direction.to(*there)
    return Workload(point, seed, *tensors, flops, lengths)


@contextmanager
def _python_seeded(seed: int) -> Iterator[None]:
    """Seed Python's and NumPy's random numbers inside, because a layer may use them."""
    before = random.getstate(), numpy_random.get_state()
    random.seed(seed)
    numpy_random.seed(seed)
    try:
        yield
    finally:
        random.setstate(before[0])
        numpy_random.set_state(before[1])


def _lengths(point: Point) -> tuple[int, ...]:
    """Return the tokens of each item, in random order; empty if all are the same."""
    return tuple(point.items[item] for item in torch.randperm(point.batch).tolist()) if point.is_padded else ()


def _padding(point: Point, lengths: Sequence[int], place: torch.device | None = None) -> Tensors:
    """Return the padding mask of items of these lengths, `[B, N]`, True at padding; nothing without lengths."""
    if not lengths:
        return ()
    return (torch.arange(point.num_tokens, device=place) >= torch.tensor(lengths, device=place)[:, None],)


def weights(layer: nn.Module) -> dict[str, Tensor]:
    """Return the weights and buffers of a layer by name, without a wrapper's prefix."""
    prefix = "inner." if isinstance(layer, Wrapper) else ""
    return {name.removeprefix(prefix): tensor for name, tensor in layer.state_dict().items()}


def save(work: Workload, path: str) -> None:
    """Write the weights and values of a workload into a file, for `make` in another process."""
    all_of_it = {
        "weights": weights(work.layer),
        "values": work.values.float(),
        "direction": work.direction.float(),
    }
    torch.save(all_of_it, path)


def load(layer: nn.Module, path: str) -> dict[str, Any]:
    """Copy the weights in a file into a layer, and return the file's content."""
    saved: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    with torch.no_grad():
        for name, tensor in weights(layer).items():
            tensor.copy_(saved["weights"][name])
    return saved
