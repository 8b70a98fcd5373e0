"""The tensors of a point: the reference layer, its inputs, and one call of an implementation."""

import copy
import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

import impls
from bench.measure.cores import equal_weights, is_plain
from bench.plan import layers
from bench.plan.case import COLUMNS, Point
from bench.plan.work import Work
from bench.sampling.inputs import SHIFTS, InputValues, TimedCall, windows
from impls.contract import NO_MASK
from impls.modules.core import with_attend
from impls.modules.making import make as make_module
from impls.modules.making import statement
from impls.modules.wrapper import Wrapper, wrapped
from impls.signatures import parameters_of

SEED = 20_200_914
"""The default seed of weights and inputs: profiles and memory measurements use the same values."""

GAMMA = 0.5
"""The weight of the residual of `conv`: at its initial 0 the layer returns its input, and any kernel would pass."""

SPREAD = 2.5
"""The standard deviation of inputs. The logits of a layer with torch's usual weights then have one of 2.

In bfloat16 plain eager is off by 0.5 % of the largest value then, as with smaller inputs, and the mean of the values by
20 %. With a standard deviation of 1 the mean is off by 2 %, which the tolerance hides."""

INPUTS = f"normal(0, {SPREAD})"
"""The distribution of inputs."""

VALUES_SEED = 1
"""What is added to the seed for the values of inputs: they must be the same for layers that draw other weights."""

INPUTS_BYTES = 1 << 26
"""The most memory for the inputs of a timing. Each call has one of its own, as long as they fit into it: then no result
can be used again."""


class Given(NamedTuple):
    """Weights and values that another process has saved; `names` has for each own weight the name that it has there."""

    path: Path
    names: Mapping[str, str]


@dataclass(frozen=True)
class Workload:
    """The layer and the values that all implementations of a point use.

    `layer` has the weights, inputs are cut out of `values`, `direction` is the gradient of the output: all random from
    `seed`, on the point's device in the point's dtype.
    `flops` are the operations of a call, None if they are unknown. `order` has the places of the weights in the order
    of those that were given, empty if it is their own.
    """

    point: Point
    seed: int
    layer: nn.Module
    values: Tensor
    shape: tuple[int, ...]
    direction: Tensor
    flops: int | None = None
    order: tuple[int, ...] = ()

    @property
    def least_work(self) -> Work:
        """The least work of a call: its operations, and input, weights and output moved once."""
        tensors = [self.x, self.direction, *self.layer.parameters()]
        return Work(self.flops, sum(tensor.nbytes for tensor in tensors))

    @property
    def x(self) -> Tensor:
        """The first input."""
        return self.input()

    def input(self, values: InputValues = InputValues()) -> Tensor:  # noqa: B008 - it can't be changed
        """Return an input, to be copied: a window of the values, shifted by 0 to SHIFTS of them, times a factor."""
        window = _window(self.values, values.shift, self.shape)
        return window if values.factor == 1 else window * values.factor

    @cached_property
    def has_plain_core(self) -> bool:
        """Whether the layer has a core of its own that is the plain formula: then the judge may put others there."""
        return is_plain(copy.deepcopy(self.layer).to("cpu", torch.float32), self.x[:1].to("cpu", torch.float32))

    @cached_property
    def with_equal_weights(self) -> nn.Module | None:
        """The layer with a core that gives all keys equal weights, None if it takes no such core."""
        try:
            other = with_attend(equal_weights)(self.layer)
            with self.gradient_mode():
                other(self.x[:1])
        except (impls.Unsupported, RuntimeError):  # it may ask its core for more than this one can do
            return None
        return cast(nn.Module, other)

    @cached_property
    def timed(self) -> "TimedValues":
        """The values of timed inputs."""
        return TimedValues(self)

    @property
    def with_gradients(self) -> bool:
        """Whether the point's mode builds a graph."""
        return self.point.mode != "inference"

    def ordered(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return an output and its gradients, those of the weights in the order of the weights that were given."""
        of_inputs = len(tensors) - len(self.order)
        if of_inputs <= 1:  # no gradients
            return [*tensors]
        return [*tensors[:of_inputs], *(tensors[of_inputs + place] for place in self.order)]

    def gradient_mode(self) -> AbstractContextManager[object]:
        """Return the gradient mode in which the point's calls run."""
        return torch.enable_grad() if self.with_gradients else torch.inference_mode()


class TimedValues:
    """The values of timed inputs: products of windows of two vectors of random numbers, which follow from keys.

    They are none of the values of the workload, so that no answer can be computed before a key is known. The product of
    a radius and a wave is normal (Box and Muller 1958). It is no sum, so that no projection of it follows from those of
    the windows.
    """

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._radii, self._waves = torch.zeros_like(workload.values), torch.zeros_like(workload.values)
        self._key: int | None = None

    @property
    def numbers(self) -> list[Tensor]:
        """The random numbers."""
        return [self._radii, self._waves]

    def begin(self, key: int) -> None:
        """Make the random numbers of a key, unless they are here."""
        if key != self._key:
            generator = torch.Generator().manual_seed(key)
            first, second = torch.rand((2, len(self._radii)), generator=generator).numpy()
            # by NumPy: on an Intel Xeon, torch's log1p was seen to have 11 right bits in the part of one thread of two,
            # in one of 30 judges; the outputs that it expected were then off by 1e-4
            np.multiply(np.sqrt(-2 * np.log1p(-first)), SPREAD, out=first)
            np.cos(2 * math.pi * second, out=second)
            self._radii.copy_(torch.from_numpy(first))
            self._waves.copy_(torch.from_numpy(second))
            self._key = key

    def product(self, of: tuple[int, int], item: int | slice = slice(None), out: Tensor | None = None) -> Tensor:
        """Return the product of two windows, or of an item of them; it is written into `out` if that is given."""
        shape = self._workload.shape
        radii, waves = (_window(each, shift, shape)[item] for each, shift in zip(self.numbers, of, strict=True))
        return torch.mul(radii, waves, out=out)

    def input(self, numbers: int, call: TimedCall, item: int | slice = slice(None)) -> Tensor:
        """Return the input of a call, or an item of it, by the key of the numbers and the call."""
        self.begin(numbers)
        return self.product(windows(call.key, call.number + 1)[-1], item)


def _window(numbers: Tensor, shift: int, shape: tuple[int, ...]) -> Tensor:
    return numbers[shift : shift + math.prod(shape)].view(shape)


class Inputs:
    """The inputs of one implementation: tensors of its own, one for each call of a timing.

    `next()` returns the input of the next call.
    """

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._tensors: list[Tensor] = []
        self._windows: list[tuple[int, int]] = []
        self._make(1)
        self.next: Callable[[], Tensor] = cycle(self._tensors).__next__

    def _make(self, number: int) -> None:
        """Have so many tensors at least."""
        with torch.inference_mode(False):  # else those that are made in the rounds would be of another kind
            while len(self._tensors) < number:
                self._tensors.append(self._workload.x.clone().requires_grad_(self._workload.with_gradients))

    def renew(self, calls: int, key: int) -> None:
        """Write the values of a key into the inputs of the next `calls` calls; with very many calls they repeat."""
        self._windows = windows(key, min(calls, max(1, INPUTS_BYTES // self._workload.x.nbytes)))
        self._make(len(self._windows))
        with torch.no_grad():
            for tensor, of in zip(self._tensors, self._windows, strict=False):
                self._workload.timed.product(of, out=tensor.detach())
        self.next = cycle(self._tensors[: len(self._windows)]).__next__

    def of_call(self, call: int) -> tuple[int, Tensor]:
        """Return the number among the inputs of the last timing, and the input, that a call had."""
        number = call % len(self._windows)
        return number, self._tensors[number]

    @property
    def tensors(self) -> list[Tensor]:
        """All tensors of the inputs, and the random numbers that they are made of."""
        return [*self._tensors, *self._workload.timed.numbers]

    def holding(self, values: InputValues) -> Tensor:
        """Return one of the inputs, with values of the workload."""
        self._windows = []
        with torch.no_grad():
            self._tensors[0].copy_(self._workload.input(values))
        return self._tensors[0]

    def are_edited(self) -> bool:
        """Return whether an input has other values than the last timing has written into it."""
        product = self._workload.timed.product
        pairs = zip(self._tensors, self._windows, strict=False)
        return any(not torch.equal(tensor.detach(), product(of)) for tensor, of in pairs)


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


def make(point: Point, seed: int = SEED, given: Given | None = None) -> Workload:
    """Return the workload of a point; its values depend only on the seed and the shape, or are those that are given.

    Raises `impls.Unresolved` if a user's own layer can't be imported or breaks the contract, `impls.Unsupported` if it
    doesn't take the point's mask.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layer, shape = _made(point)
        layer.train(point.mode != "inference")
        torch.manual_seed(seed + VALUES_SEED)
        values = torch.randn(math.prod(shape) + SHIFTS) * SPREAD
        saved, order = _load(layer, given) if given else ({}, ())
        values = saved.get("values", values)
        output_shape, flops = _traced(point, layer, values[: math.prod(shape)].view(shape))
        direction = torch.randn(output_shape)
        direction = saved.get("direction", direction)
    there = point.device, getattr(torch, point.dtype)
    return Workload(point, seed, layer.to(*there), values.to(*there), shape, direction.to(*there), flops, order)


def weights(layer: nn.Module) -> dict[str, Tensor]:
    """Return the weights and buffers of a layer by their names, without that of a wrapper."""
    return {_bare(layer, name): tensor for name, tensor in layer.state_dict().items()}


def _bare(layer: nn.Module, name: str) -> str:
    return name.removeprefix("inner.") if isinstance(layer, Wrapper) else name


def save(work: Workload, path: Path) -> None:
    """Write the weights and values of a workload into a file, from which `make` takes them in another process."""
    saved = {
        "weights": weights(work.layer),
        "parameters": [_bare(work.layer, name) for name, _ in work.layer.named_parameters()],
        "values": work.values.float(),
        "direction": work.direction.float(),
    }
    torch.save(saved, path)


def _load(layer: nn.Module, given: Given) -> tuple[dict[str, Any], tuple[int, ...]]:
    """Give a layer the weights in a file; return the file's content, and the places of its weights in their order."""
    saved = torch.load(given.path, map_location="cpu", weights_only=True)
    with torch.no_grad():
        for name, tensor in weights(layer).items():
            tensor.copy_(saved["weights"][given.names[name]])
    own = [given.names[_bare(layer, name)] for name, _ in layer.named_parameters()]
    return saved, tuple(map(own.index, saved["parameters"]))


def shown(point: Point) -> tuple[Wrapper, tuple[int, ...]]:
    """Return the module of a point, to be looked at on a CPU, and the shape of an item; raises as `make` does."""
    set_up(dataclasses.replace(point, device="cpu"))
    layer, shape = _made(point)
    _counted_with_values(point, layer.eval(), torch.zeros(1, *shape[1:]))
    return wrapped(layer, shape[1:]), shape[1:]


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
    weights, direction = [*subject.layer.parameters()], workload.direction

    def train() -> object:
        x = inputs.next()
        y = function(x)
        return y, torch.autograd.grad(y, [x, *weights], direction, allow_unused=True)

    return train


def _made(point: Point) -> tuple[nn.Module, tuple[int, ...]]:
    """Return the module of a point, and the shape of its input."""
    columns = (column for column in COLUMNS.values() if column.name not in layers.fixed(point.layer))
    required = [each.name for each in columns if each.changes_function and not each.is_usual(point)]
    layer, shape = make_module(layers.module_of(point.layer), dataclasses.asdict(point), required)
    if isinstance(layer, impls.ConvSelfAttention):
        nn.init.constant_(layer.gamma, GAMMA)
    return layer, shape


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
        inner = layer.inner if isinstance(layer, Wrapper) else layer
        names = ", ".join(each.name for each in parameters_of(inner))
        raise impls.Unresolved(
            f"layer {point.layer!r}: {type(inner).__name__}({names}) was called with x {list(x.shape)}: {first}; "
            "give another shape as [input=2x56x56x96], or all arguments as [input=mymodule:function]"
        ) from error


def _counted(point: Point, layer: nn.Module, x: Tensor) -> tuple[Any, int | None]:
    """Return a layer's output, and the operations that torch counts in a call of the point's mode.

    The count of a masked layer is None: it may compute scores that the mask removes, so the work is unknown.
    """
    with FlopCounterMode(display=False) as counter, torch.enable_grad():
        output = layer(x.detach().requires_grad_(point.mode == "train"))
        if point.mode == "train" and isinstance(output, Tensor):
            output.sum().backward()
    return output, None if point.mask != NO_MASK else counter.get_total_flops() or None
