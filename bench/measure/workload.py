"""From a point to tensors: the reference layer, its input, and one call of an implementation."""

import copy
import dataclasses
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

import impls
from bench.plan.case import Point
from bench.plan.layers import LAYERS
from impls.layers import construct

SEED = 20_200_914
"""The same weights and inputs in every process and run."""

GAMMA = 0.5
"""What the residual of `conv` is weighted with: at its initial 0 the layer returns its input, and any kernel passes."""

INPUTS = "normal(0, 1)"
"""The distribution that inputs and output gradients are drawn from."""


@dataclass(frozen=True)
class Workload:
    """What every implementation of a point is given.

    `layer` holds the weights, `x` is the input and `direction` the gradient of the output,
    all on the point's device in the point's dtype.
    """

    point: Point
    layer: nn.Module
    x: Tensor
    direction: Tensor

    @property
    def with_gradients(self) -> bool:
        """Whether the point's mode builds a graph."""
        return self.point.mode != "inference"

    def context(self) -> AbstractContextManager[object]:
        """Return the gradient mode in which the point's calls run."""
        return torch.enable_grad() if self.with_gradients else torch.inference_mode()


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


def make(point: Point) -> Workload:
    """Return the workload of a point; its values depend on the shape alone."""
    dtype = getattr(torch, point.dtype)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        layer = _layer(point)
        x = torch.randn(_input_shape(point))
        direction = torch.randn(_output_shape(layer, x))
    layer.train(point.mode != "inference")
    return Workload(point, layer.to(point.device, dtype), x.to(point.device, dtype), direction.to(point.device, dtype))


def subject(workload: Workload, implementation: str) -> Subject:
    """Return an implementation, built on its own copy of the weights; preparing it runs nothing.

    Raises `impls.Unsupported` where the implementation can't express the layer.
    """
    layer = copy.deepcopy(workload.layer)
    return Subject(layer, impls.build(layer, implementation))


def step(subject: Subject, workload: Workload) -> Callable[[], object]:
    """Return one call of the implementation in the point's mode, to be run in the workload's context.

    A training step computes the gradients of x and of every weight from a fresh graph.
    """
    function, x = subject.function, workload.x
    if not workload.with_gradients:
        return lambda: function(x)
    x = x.detach().requires_grad_()
    if workload.point.mode == "forward":
        return lambda: function(x)
    wanted = [x, *subject.layer.parameters()]
    return lambda: torch.autograd.grad(function(x), wanted, workload.direction, allow_unused=True)


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


def _output_shape(layer: nn.Module, x: Tensor) -> torch.Size:
    output: Tensor = copy.deepcopy(layer).to("meta")(x.to("meta"))
    return output.shape
