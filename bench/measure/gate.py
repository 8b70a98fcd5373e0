"""The gate: an implementation that computes another function than the reference has no time."""

import copy
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat

import torch
from torch import Tensor, nn

from bench.measure.workload import Subject, Workload

PEAK = 5.0
"""What a normal input is multiplied by so that its softmax is peaked: logits grow with the square."""

MARGIN = 8.0
"""How many times the error of plain eager in the same dtype is tolerated: another order of the same sums.
Flash attention's backward, which computes the weights anew, was seen at 4.4 times."""

FLOOR_EPS = 4.0
"""The least tolerance in units of the dtype's epsilon, for shapes at which eager happens to be exact."""

GRADIENT_EPS = 32.0
"""What gradients may have beyond that in units of float32's epsilon, or the root of the number of tokens if it is more.
With one token eager's gradient of the scores is exactly 0, where flash attention was seen to be off by 9.
A weight's gradient is a sum over all tokens: Inductor's sum over 8192 of them was seen to be off by 30."""

CANCELLED, FEW = 1e-4, 16
"""A weight's gradient that is so much smaller than the largest one of all weights has cancelled out, as that of the
keys' bias does, and one of fewer elements may have by chance, as that of `gamma` does. What is left of it is rounding,
so its errors are held against the largest one."""

WHOLE_BATCH_SCORES = 4_000_000
"""Up to so many attention scores the whole batch is compared with float64, which is slow on the CPU.
Above, so many are computed at a time."""

ITEMS = 2
"""So many items of a larger batch are compared with float64, at random; attention doesn't mix items."""

TIMED, AFTERWARDS = "in a timed call", "on fresh values after the rounds"
"""The names of the trials that come with the rounds, as messages have them."""


class Incorrect(Exception):  # noqa: N818 - an outcome that becomes a row
    """An answer can't be the layer's, whatever its numbers; the message says why."""


@dataclass(frozen=True)
class Standard:
    """What an answer is compared with: the output of some items of the batch, and gradients if the mode has any.

    `tensors` are the output, then the gradients of x and of every weight, as far as they can be compared;
    `scales`, which errors are relative to, and `tolerances` belong to them one by one.
    """

    items: list[int]
    tensors: tuple[Tensor, ...]
    scales: tuple[float, ...]
    tolerances: tuple[float, ...]


@dataclass(frozen=True)
class Trial:
    """An input, the gradient of its output if the mode has gradients, and what the answer is compared with."""

    name: str
    x: Tensor
    direction: Tensor | None
    standards: tuple[Standard, ...]


@dataclass(frozen=True)
class Answer:
    """What an implementation made of an input: the input as it left it, the output, and the gradients if any."""

    x: Tensor
    output: Tensor
    gradients: tuple[Tensor, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """The error that came nearest to its tolerance or passed it, and what there is to object."""

    error: float
    tolerance: float
    objection: str = ""


def trials(workload: Workload, *, thorough: bool = True) -> tuple[Trial, ...]:
    """Return the inputs that an implementation must get right: one with a peaked softmax, and first a normal one.

    If the look is not `thorough`, the peaked one stands alone: it is the harder.
    """
    peaked = trial(workload, "peaked input", workload.x * PEAK)
    return (trial(workload, "normal input", workload.x), peaked) if thorough else (peaked,)


def trial(workload: Workload, name: str, x: Tensor, items: int = ITEMS) -> Trial:
    """Return what an answer to an input is compared with.

    A small batch is compared with float64 on the CPU. Of a larger one so many `items`, drawn at random, are compared
    with float64, and all of it with plain eager in the same dtype.
    Tolerances are multiples of plain eager's own error, which is known for the items that float64 has computed.
    """
    direction = workload.direction if workload.with_gradients else None
    chosen = _items(workload, name, items)
    reference = copy.deepcopy(workload.layer).to("cpu", torch.float64)
    exact = _computed(workload, reference, *_select(x, direction, chosen, dtype=torch.float64, device="cpu"))
    plain = _computed(workload, workload.layer, *_select(x, direction, chosen))
    cancelled = _cancelled(exact)
    scales = _scales(exact, cancelled)
    found = [_error(*three) for three in zip(plain, exact, scales, strict=True)]
    errors = [error if math.isfinite(error) else 0.0 for error in found]
    floors = _floors(workload, x.dtype)
    tolerances = tuple(max(floor, MARGIN * error) for floor, error in zip(floors, errors, strict=False))
    if len(chosen) == workload.point.batch:
        return Trial(name, x, direction, (Standard(chosen, exact, scales, tolerances),))
    whole = _computed(workload, workload.layer, x, direction)
    wider = tuple(tolerance + error for tolerance, error in zip(tolerances, errors, strict=True))
    by_item = slice(2)  # the gradients of weights are sums over all items
    standards = (
        Standard(chosen, exact[by_item], scales[by_item], tolerances[by_item]),
        Standard([*range(workload.point.batch)], whole, _scales(whole, cancelled), wider),
    )
    return Trial(name, x, direction, standards)


def ask(subject: Subject, x: Tensor, direction: Tensor | None) -> Answer:
    """Return what an implementation makes of an input, in the point's mode."""
    if direction is None:
        with torch.inference_mode():
            return Answer(x, subject.function(x))
    with torch.enable_grad():
        x = x if x.requires_grad else x.detach().requires_grad_()
        output = subject.function(x)
        if type(output) is not Tensor:
            return Answer(x, output)
        return Answer(x, output.detach(), _gradients(output, x, subject.layer, direction))


def judge(
    subject: Subject, workload: Workload, trials: Sequence[Trial], answer: Callable[[Trial], Answer] | None = None
) -> Verdict:
    """Return the verdict on an implementation over all trials, the first objection ending it.

    `answer` returns what it makes of a trial; if nobody says how, it is asked on a copy of the input.
    """
    answer = answer or (lambda trial: ask(subject, trial.x.clone(), trial.direction))
    verdict = Verdict(0.0, trials[0].standards[0].tolerances[0])
    for one in trials:
        verdict = max(verdict, compare(subject, workload, one, answer(one)), key=_severity)
        if verdict.objection:
            break
    return verdict


def compare(subject: Subject, workload: Workload, trial: Trial, answer: Answer) -> Verdict:
    """Return the verdict on the answer to one trial.

    The error of a tensor is its largest absolute deviation over the largest absolute value expected of it, or of all
    weights' gradients if this one cancels out.
    """
    try:
        check(subject, workload, trial.x, answer)
        if not bool(answer.output.isfinite().all()):
            raise Incorrect("output is not finite")
    except Incorrect as objection:
        return Verdict(math.inf, trial.standards[0].tolerances[0], f"{objection} ({trial.name})")
    names = ["output", "gradient of x", *(f"gradient of {name}" for name, _ in subject.layer.named_parameters())]
    verdicts = [
        _compare(f"{name} ({trial.name})", _error(result, expected, scale), tolerance)
        for standard in trial.standards
        for name, result, expected, scale, tolerance in zip(
            names, _results(answer, standard), standard.tensors, standard.scales, standard.tolerances, strict=False
        )
    ]
    return max(verdicts, key=_severity)


def check(subject: Subject, workload: Workload, x: Tensor, answer: Answer) -> None:
    """Look at all of an answer to `x` but its numbers; raises Incorrect, which says what is wrong."""
    output, expected = answer.output, workload.direction
    if type(output) is not Tensor:
        raise Incorrect(f"output is a {type(output).__name__}, expected a plain torch.Tensor")
    if not torch.equal(answer.x, x):
        raise Incorrect("edited its input in place")
    if not has_weights_of(subject, workload):
        raise Incorrect("edited the layer's weights")
    if output.shape != expected.shape:
        raise Incorrect(f"output has shape {list(output.shape)}, expected {list(expected.shape)}")
    if output.dtype != expected.dtype:
        raise Incorrect(f"output is {output.dtype}, expected {expected.dtype}")
    if output.device != expected.device:
        raise Incorrect(f"output is on {output.device}, expected {expected.device}")
    if output.untyped_storage().data_ptr() in {_address(tensor) for tensor in (answer.x, *subject.layer.parameters())}:
        raise Incorrect("output shares memory with its input or with a weight")


def has_weights_of(subject: Subject, workload: Workload) -> bool:
    """Return whether an implementation's weights are still the layer's."""
    pairs = zip(subject.layer.parameters(), workload.layer.parameters(), strict=True)
    return all(torch.equal(weight, original) for weight, original in pairs)


def finite(error: float) -> float | None:
    """Return an error, None if it isn't finite."""
    return error if math.isfinite(error) else None


def _address(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _results(answer: Answer, standard: Standard) -> list[Tensor]:
    by_item = [tensor[standard.items] for tensor in (answer.output, *answer.gradients[:1])]
    return [*by_item, *answer.gradients[1:]]


def _compare(name: str, error: float, tolerance: float) -> Verdict:
    if error <= tolerance:
        return Verdict(error, tolerance)
    return Verdict(error, tolerance, f"{name} is off by {error:.2g} of its largest value, tolerance {tolerance:.2g}")


def _severity(verdict: Verdict) -> float:
    severity = verdict.error / verdict.tolerance
    return math.inf if math.isnan(severity) else severity


def _computed(workload: Workload, layer: nn.Module, x: Tensor, direction: Tensor | None) -> tuple[Tensor, ...]:
    """Return the layer's output, and its gradients if there is a direction, computed some items at a time."""
    point = workload.point
    size = max(1, WHOLE_BATCH_SCORES // (point.num_heads * point.num_tokens**2))
    directions = [None] * len(x) if direction is None else direction.split(size)
    parts = [_run(layer, *pair) for pair in zip(x.split(size), directions, strict=False)]
    by_item, weights = 1 if direction is None else 2, [part[2:] for part in parts]
    whole = [torch.cat([part[place] for part in parts]) for place in range(by_item)]
    return *whole, *(torch.stack(sums).sum(0) for sums in zip(*weights, strict=True))


def _run(layer: nn.Module, x: Tensor, direction: Tensor | None) -> tuple[Tensor, ...]:
    if direction is None:
        with torch.inference_mode():
            return (layer(x),)
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        output = layer(x)
        return output.detach(), *(_wide(gradient) for gradient in _gradients(output, x, layer, direction))


def _gradients(output: Tensor, x: Tensor, layer: nn.Module, direction: Tensor) -> tuple[Tensor, ...]:
    wanted = [x, *layer.parameters()]
    return torch.autograd.grad(output, wanted, direction, allow_unused=True, materialize_grads=True)


def _floors(workload: Workload, dtype: torch.dtype) -> Iterator[float]:
    """Return the least tolerance of the output, then of each gradient, which is rounded twice as often."""
    point, floor = workload.point, FLOOR_EPS * torch.finfo(dtype).eps
    units = max(GRADIENT_EPS, math.sqrt(point.batch * point.num_tokens))
    return chain([floor], repeat(2 * floor + units * torch.finfo(torch.float32).eps))


def _wide(tensor: Tensor) -> Tensor:
    """Return a tensor in a dtype that sums don't make worse."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def _select(
    x: Tensor,
    direction: Tensor | None,
    items: list[int],
    *,
    dtype: torch.dtype | None = None,
    device: str | None = None,
) -> tuple[Tensor, Tensor | None]:
    chosen = x[items].to(device, dtype)
    return chosen, None if direction is None else direction[items].to(device, dtype)


def _items(workload: Workload, name: str, items: int) -> list[int]:
    point = workload.point
    if point.batch * point.num_heads * point.num_tokens**2 <= WHOLE_BATCH_SCORES or point.batch <= items:
        return [*range(point.batch)]
    return sorted(random.Random(f"{workload.seed} {name}").sample(range(point.batch), items))  # noqa: S311


def _error(result: Tensor, expected: Tensor, scale: float) -> float:
    wide = torch.promote_types(expected.dtype, torch.float32)
    return float((result.to(expected.device, wide) - expected.to(wide)).abs().max()) / scale


def _largest(tensors: Sequence[Tensor]) -> list[float]:
    return [float(tensor.abs().max()) for tensor in tensors]


def _cancelled(exact: Sequence[Tensor]) -> set[int]:
    """Return the places of the weights' gradients that have cancelled out, or may have."""
    largest = _largest(exact)
    least = CANCELLED * max(largest[2:], default=0.0)
    return {place for place in range(2, len(exact)) if largest[place] < least or exact[place].numel() < FEW}


def _scales(tensors: Sequence[Tensor], cancelled: set[int]) -> tuple[float, ...]:
    largest = _largest(tensors)
    of_weights = max(largest[2:], default=0.0)
    values = (of_weights if place in cancelled else value for place, value in enumerate(largest))
    return tuple(value or 1.0 for value in values)
