"""From a point to tensors: the reference layer, its input, and one call of an implementation."""

import copy
import dataclasses
import math
import random
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import cycle

import torch
from torch import Tensor, nn

import impls
from bench.plan.case import Point
from bench.plan.layers import LAYERS
from impls.layers import construct

SEED = 20_200_914
"""What weights and inputs are drawn from if nobody says another one: profiles and looks at memory see the same."""

TURNS = 3
"""An implementation has so many inputs, which take turns from call to call."""

SHIFTS = 4096
"""So many other inputs can be cut out of the values that were drawn, each shifted by one value more."""

GAMMA = 0.5
"""What the residual of `conv` is weighted with: at its initial 0 the layer returns its input, and any kernel passes."""

INPUTS = "normal(0, 1)"
"""The distribution that inputs and output gradients are drawn from."""


@dataclass(frozen=True)
class Workload:
    """What every implementation of a point is given.

    `layer` holds the weights, `values` what inputs are cut out of, `direction` is the gradient of the output,
    all drawn from `seed`, on the point's device in the point's dtype.
    """

    point: Point
    seed: int
    layer: nn.Module
    values: Tensor
    shape: tuple[int, ...]
    direction: Tensor

    @property
    def x(self) -> Tensor:
        """The first of the inputs."""
        return self.input(0)

    def input(self, shift: int) -> Tensor:
        """Return the input that begins `shift` values after the first one, 0 to SHIFTS; a view, to be copied."""
        return self.values[shift : shift + math.prod(self.shape)].view(self.shape)

    @property
    def with_gradients(self) -> bool:
        """Whether the point's mode builds a graph."""
        return self.point.mode != "inference"

    def context(self) -> AbstractContextManager[object]:
        """Return the gradient mode in which the point's calls run."""
        return torch.enable_grad() if self.with_gradients else torch.inference_mode()


class Inputs:
    """The inputs of one implementation: tensors of its own that take turns from call to call.

    `next()` returns the input of the next call.
    """

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._rng = random.Random(workload.seed)  # noqa: S311 - values, not secrets
        self._tensors = [workload.x.clone().requires_grad_(workload.with_gradients) for _ in range(TURNS)]
        self._shifts = [0] * TURNS
        self.next: Callable[[], Tensor] = cycle(self._tensors).__next__

    def renew(self, calls: int) -> None:
        """Write other values into the inputs of the next so many calls, which are in a random order."""
        places = self._rng.sample(range(TURNS), min(calls, TURNS))
        for place in places:
            self._write(place, self._rng.randint(1, SHIFTS))
        self.next = cycle([self._tensors[place] for place in places]).__next__

    def holding(self, shift: int) -> Tensor:
        """Return one of the inputs, with the values of that shift."""
        place = self._rng.randrange(TURNS)
        self._write(place, shift)
        return self._tensors[place]

    def are_edited(self) -> bool:
        """Return whether one of them holds other values than were written."""
        pairs = zip(self._tensors, self._shifts, strict=True)
        return not all(torch.equal(tensor.detach(), self._workload.input(shift)) for tensor, shift in pairs)

    def _write(self, place: int, shift: int) -> None:
        self._shifts[place] = shift
        with torch.no_grad():
            self._tensors[place].copy_(self._workload.input(shift))


@dataclass(frozen=True)
class Subject:
    """One implementation of a point with its own copy of the weights, so that none can disturb another."""

    layer: nn.Module
    function: impls.Implementation


def set_up(point: Point) -> None:
    """Give this process the point's threads, and on a GPU the point's device as the current one."""
    torch.set_num_threads(point.threads)
    if point.device != "cpu":
        torch.cuda.set_device(torch.device(point.device).index or 0)


def make(point: Point, seed: int = SEED) -> Workload:
    """Return the workload of a point; its values depend on the seed and the shape alone."""
    dtype, shape = getattr(torch, point.dtype), _input_shape(point)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layer = _layer(point)
        values = torch.randn(math.prod(shape) + SHIFTS)
        direction = torch.randn(_output_shape(layer, shape))
    layer.train(point.mode != "inference")
    return Workload(
        point=point,
        seed=seed,
        layer=layer.to(point.device, dtype),
        values=values.to(point.device, dtype),
        shape=shape,
        direction=direction.to(point.device, dtype),
    )


def subject(workload: Workload, implementation: str) -> Subject:
    """Return an implementation, built on its own copy of the weights; preparing it runs nothing.

    Raises `impls.Unsupported` where the implementation can't express the layer.
    """
    layer = copy.deepcopy(workload.layer)
    return Subject(layer, impls.build(layer, implementation))


def step(subject: Subject, workload: Workload, inputs: Inputs | None = None) -> Callable[[], object]:
    """Return one call of the implementation in the point's mode, to be run in the workload's context.

    A training step computes the gradients of x and of every weight from a fresh graph.
    """
    function, inputs = subject.function, inputs or Inputs(workload)
    if workload.point.mode != "train":
        return lambda: function(inputs.next())
    weights, direction = [*subject.layer.parameters()], workload.direction.clone()

    def train() -> object:
        x = inputs.next()
        return torch.autograd.grad(function(x), [x, *weights], direction, allow_unused=True)

    return train


def _layer(point: Point) -> nn.Module:
    layer = construct(LAYERS[point.layer].module, dataclasses.asdict(point))
    if isinstance(layer, impls.ConvSelfAttention):
        nn.init.constant_(layer.gamma, GAMMA)
    return layer


def _input_shape(point: Point) -> tuple[int, ...]:
    """Return the shape of tokens, or of images where the layer takes those."""
    if point.image_size is None:
        return point.batch, point.num_tokens, point.token_len
    return point.batch, _image_channels(point), point.image_size, point.image_size


def _image_channels(point: Point) -> int:
    return point.token_len // (point.patch_size or 1) ** 2


def _output_shape(layer: nn.Module, shape: tuple[int, ...]) -> torch.Size:
    output: Tensor = copy.deepcopy(layer).to("meta")(torch.empty(shape, device="meta"))
    return output.shape
