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
"""The standard deviation of inputs. The logits of a layer with torch's usual weights then have one of 2.

In bfloat16 plain eager is off by 0.5 % of the largest value then, as with smaller inputs, and the mean of the values by
20 %. With a standard deviation of 1 the mean is off by 2 %, which the tolerance hides."""

INPUTS = f"normal(0, {SPREAD})"
"""The distribution of inputs."""

VALUES_SEED = 1
"""What is added to the seed for the values of inputs: they must be the same for layers that draw other weights."""


class Layout:
    """How items lie in tensors: the batch comes first. An implementation that packs items has another."""

    lengths: tuple[int, ...] = ()
    """The lengths for which the implementation is arranged."""

    def arrange(self, lengths: tuple[int, ...]) -> None:
        """Let the implementation compute items of these lengths from now on."""

    def packed(self, padded: Tensor) -> Tensor:
        """Return padded items as the implementation takes them."""
        return padded

    def taken(self, inputs: Tensors) -> Tensors:
        """Return the inputs of a call as the implementation takes them."""
        return inputs

    def whole(self, tensor: Tensor) -> Tensor:
        """Return all items, one after the other in the batch."""
        return tensor

    def item(self, tensor: Tensor, item: int) -> Tensor:
        """Return one of the items."""
        return tensor[item]


@dataclass(frozen=True)
class Workload:
    """The layer and the values that all implementations of a point use.

    `layer` has the weights, inputs of these `shapes` are cut out of `values`, `direction` is the gradient of the
    output in checks: all random from `seed`, on the point's device in the point's dtype. The batch comes first in each.
    `lengths` are those of the items in checks, empty if all have the same. Their order differs from timing to timing.
    `flops` are the operations of a call, None if they are unknown. An implementation that packs items has a `layout` of
    its own, and its `direction` is the `padded_direction`, packed.
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
        """The least work of a call: its operations, and inputs, weights and output moved once, and a bias of `core`.

        Padding of items with different lengths is no part of it.
        """
        if self.lengths:
            return Work(self.flops, layers.least_bytes(self.point))
        is_module = layers.layer_of(self.point.layer).is_module
        held = self.layer.parameters() if is_module else self.layer.state_dict().values()
        tensors = [*self.inputs(), self.direction, *held]
        return Work(self.flops, sum(tensor.nbytes for tensor in tensors))

    def inputs(self, values: InputValues = InputValues()) -> Tensors:  # noqa: B008 - it can't be changed
        """Return inputs, to be copied: a window of the values, shifted by 0 to SHIFTS of them, times a factor."""
        self.layout.arrange(self.lengths)
        parts = _window(self.values, values.shift, self.shapes)
        parts = parts if values.factor == 1 else tuple(part * values.factor for part in parts)
        return self.layout.taken((*parts, *self._padding(self.lengths)))

    def leaves(self, inputs: Tensors) -> Tensors:
        """Return the inputs of a call with those that have gradients as leaves of a graph of their own."""
        varied = len(self.shapes)
        return *(each.detach().requires_grad_(self.with_gradients) for each in inputs[:varied]), *inputs[varied:]

    @property
    def by_item(self) -> int:
        """The tensors of an output, with gradients if the mode has any, that have an item of the batch each.

        They are the output and the gradients of inputs; the gradients of weights are sums over all items.
        """
        return 1 + len(self.shapes) * self.with_gradients

    @property
    def names(self) -> list[str]:
        """The names of an output and its gradients, if the mode has any, in their order."""
        if not self.with_gradients:
            return ["output"]
        varied, weights = len(self.shapes), (name for name, _ in self.layer.named_parameters())
        inputs = [f"input {number}" for number in range(1, 1 + varied)] if varied > 1 else ["x"]
        return ["output", *(f"gradient of {name}" for name in (*inputs, *weights))]

    def items(self, number: int, dtype: torch.dtype) -> Tensors:
        """Return the first items of the inputs, on the CPU in another dtype."""
        return tuple(cast_to(each[:number], "cpu", dtype) for each in self.inputs())

    @cached_property
    def has_plain_core(self) -> bool:
        """Whether the layer has a core of its own that is the plain formula: then the judge may put others there."""
        return is_plain(copied(self.layer).to("cpu", torch.float32), self.items(1, torch.float32))

    def timed(self, key: int, shift: int) -> Tensors:
        """Return the inputs of a call in a timing of a key, whose window begins there.

        The order of items with different lengths differs from timing to timing, because a batch is packed once for all
        layers of a model.
        """
        padding = self._padding(self.timed_lengths(key))
        return self.layout.taken((*_window(self.values, shift, self.shapes), *padding))

    def of_call(self, call: TimedCall) -> Tensors:
        """Return the inputs of a timed call."""
        return self.timed(call.key, shifts(call.key, call.number + 1)[-1])

    def timed_lengths(self, key: int) -> tuple[int, ...]:
        """Return the lengths of the items in a timing by its key; empty if all have the same."""
        return tuple(random.Random(key).sample(self.lengths, len(self.lengths)))  # noqa: S311 - the judge repeats it

    def _padding(self, lengths: Sequence[int]) -> Tensors:
        return _padding(self.point, lengths, self.values.device)

    @property
    def with_gradients(self) -> bool:
        """Whether the point's mode builds a graph."""
        return self.point.mode != "inference"

    def direction_of(self, key: int) -> Tensor:
        """Return the gradient of the outputs of a timing by its key; in mode forward no call has one.

        There it is that of checks, unless items have other places: what is padding differs from timing to timing.
        """
        if self.point.mode not in TRAINED and not self.lengths:
            return self.direction
        direction = self.direction if self.padded_direction is None else self.padded_direction
        shift = random.Random(f"direction {key}").randrange(direction.numel())  # noqa: S311 - the judge repeats it
        rolled = direction.flatten().roll(shift).view(direction.shape)
        if not self.lengths:
            return rolled
        return self.layout.packed(without_padding(rolled, self._padding(self.timed_lengths(key))[-1]))

    @property
    def like(self) -> list[Tensor]:
        """Tensors of the form of an output, and of its gradients if the mode has any."""
        of_gradients = (*self.inputs()[: len(self.shapes)], *self.layer.parameters()) if self.with_gradients else ()
        return [self.direction, *of_gradients]

    def handed_over(self, output: Sequence[Tensor]) -> list[Tensor]:
        """Return an output and its gradients as the judge expects them."""
        return [*(self.layout.whole(each) for each in output[: self.by_item]), *output[self.by_item :]]

    def item(self, output: Sequence[Tensor], item: int) -> list[Tensor]:
        """Return an item of an output and of its gradients that have a batch, as the judge expects it."""
        return [self.layout.item(each, item) for each in output[: self.by_item]]

    def gradient_mode(self) -> AbstractContextManager[object]:
        """Return the gradient mode in which the point's calls run."""
        return torch.enable_grad() if self.with_gradients else torch.inference_mode()


def _window(numbers: Tensor, shift: int, shapes: Shapes) -> Tensors:
    """Return consecutive parts of numbers, from one on, as tensors of these shapes."""
    sizes = [math.prod(shape) for shape in shapes]
    parts = numbers[shift : shift + sum(sizes)].split(sizes)
    return tuple(part.view(shape) for part, shape in zip(parts, shapes, strict=True))


def without_padding(tensor: Tensor, padding: Tensor, instead: float = 0.0) -> Tensor:
    """Return `[B, …, N, X]` with zeros, or another number, at the tokens `[B, N]` that are padding."""
    hidden = padding.view(len(padding), *[1] * (tensor.ndim - 3), padding.shape[1], 1)
    return tensor.masked_fill(hidden, instead)


def spread_of(layer: nn.Module) -> float:
    """Return the standard deviation of a layer's inputs."""
    return float(getattr(layer, "input_sd", SPREAD))


def set_up(point: Point) -> None:
    """Set the number of threads of this process to the point's, and on a GPU the current device."""
    torch.set_num_threads(point.threads)
    device(point.device).choose()


def make(point: Point, seed: int = SEED, given: str | None = None) -> Workload:
    """Return the workload of a point; its values depend only on the seed and the shape, or are those of a file.

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
        number, spread = sum(map(math.prod, shapes)) + SHIFTS, spread_of(layer)
        values = torch.randn(number).mul_(spread).to(dtype)
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
    """Let Python and NumPy draw the same random numbers inside, from which a layer may choose how it computes."""
    before = random.getstate(), numpy_random.get_state()
    random.seed(seed)
    numpy_random.seed(seed)
    try:
        yield
    finally:
        random.setstate(before[0])
        numpy_random.set_state(before[1])


def _lengths(point: Point) -> tuple[int, ...]:
    """Return the tokens of each item, in any order; empty if all have the same."""
    return tuple(point.items[item] for item in torch.randperm(point.batch).tolist()) if point.is_padded else ()


def _padding(point: Point, lengths: Sequence[int], place: torch.device | None = None) -> Tensors:
    """Return the padding mask of items of these lengths, `[B, N]`, True at padding; nothing without lengths."""
    if not lengths:
        return ()
    return (torch.arange(point.num_tokens, device=place) >= torch.tensor(lengths, device=place)[:, None],)


def weights(layer: nn.Module) -> dict[str, Tensor]:
    """Return the weights and buffers of a layer by their names, without that of a wrapper."""
    return {_bare(layer, name): tensor for name, tensor in layer.state_dict().items()}


def _bare(layer: nn.Module, name: str) -> str:
    return name.removeprefix("inner.") if isinstance(layer, Wrapper) else name


def save(work: Workload, path: str) -> None:
    """Write the weights and values of a workload into a file, from which `make` takes them in another process."""
    all_of_it = {
        "weights": weights(work.layer),
        "values": work.values.float(),
        "direction": work.direction.float(),
    }
    torch.save(all_of_it, path)


def load(layer: nn.Module, path: str) -> dict[str, Any]:
    """Give a layer the weights in a file, and return the file's content."""
    saved: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    with torch.no_grad():
        for name, tensor in weights(layer).items():
            tensor.copy_(saved["weights"][name])
    return saved
