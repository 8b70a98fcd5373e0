"""The gate: an implementation that computes another function than the reference is never timed."""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

import impls
from bench.measure.workload import Subject, Workload

PEAK = 5.0
"""What a normal input is multiplied by so that its softmax is peaked: logits grow with the square."""

MARGIN = 8.0
"""How many times the error of plain eager in the same dtype is tolerated: another order of the same sums.
Flash attention's backward, which computes the weights anew, was seen at 4.4 times."""

FLOOR_EPS = 4.0
"""The least tolerance in units of the dtype's epsilon, for shapes at which eager happens to be exact."""

WHOLE_BATCH_SCORES = 4_000_000
"""Up to so many attention scores the whole batch is compared; above, its first and last item,
because attention doesn't mix items and float64 on the CPU is slow."""


@dataclass(frozen=True)
class Trial:
    """An input with what float64 on the CPU says about it.

    `expected` holds the output of the compared items, then, where the mode has gradients, those of x and of
    every weight; `direction` is zero for items that are not compared, so that the weights' gradients compare.
    `tolerances` belong to `expected` one by one.
    """

    name: str
    x: Tensor
    direction: Tensor | None
    items: list[int]
    expected: tuple[Tensor, ...]
    tolerances: tuple[float, ...]


@dataclass(frozen=True)
class Answer:
    """What an implementation made of a trial: the input as it left it, the output, and the gradients if any."""

    x: Tensor
    output: Tensor
    gradients: tuple[Tensor, ...]


@dataclass(frozen=True)
class Verdict:
    """The error that came nearest to its tolerance or passed it, and what there is to object."""

    error: float
    tolerance: float
    objection: str = ""


def trials(workload: Workload, *, thorough: bool = True) -> tuple[Trial, ...]:
    """Return the inputs that an implementation must get right: one with a peaked softmax, and first a normal one.

    Where the look is not `thorough`, the peaked one stands alone: it is the harder.
    """
    peaked = _trial(workload, "peaked", PEAK)
    return (_trial(workload, "normal", 1.0), peaked) if thorough else (peaked,)


def answer(subject: Subject, trial: Trial) -> Answer:
    """Return what an implementation makes of a trial, on a copy of its input."""
    x = trial.x.clone()
    output, *gradients = _run(subject.function, subject.layer, x, trial.direction)
    return Answer(x, output, tuple(gradients))


def judge(subject: Subject, workload: Workload, trials: Sequence[Trial], first: Answer | None = None) -> Verdict:
    """Return the verdict on an implementation over all trials, the first objection ending it.

    `first` is its answer to the first trial, where it was asked already.
    The error of a tensor is its largest absolute deviation over the largest absolute value expected.
    """
    verdict = Verdict(0.0, trials[0].tolerances[0])
    for trial in trials:
        given = first if first is not None and trial is trials[0] else answer(subject, trial)
        verdict = max(verdict, _judge(subject, workload, trial, given), key=_severity)
        if verdict.objection:
            break
    return verdict


def _trial(workload: Workload, name: str, factor: float) -> Trial:
    items = _items(workload)
    x = workload.x * factor
    direction = _only(workload.direction, items) if workload.with_gradients else None
    reference = copy.deepcopy(workload.layer).to("cpu", torch.float64)
    expected = _run(reference, reference, *_select(x, direction, items, dtype=torch.float64, device="cpu"))
    plain = _run(workload.layer, workload.layer, *_select(x, direction, items))
    floor = FLOOR_EPS * torch.finfo(x.dtype).eps
    errors = [_error(tensor, wanted) for tensor, wanted in zip(plain, expected, strict=True)]
    tolerances = tuple(max(floor, MARGIN * error) if math.isfinite(error) else floor for error in errors)
    return Trial(name, x, direction, items, expected, tolerances)


def _judge(subject: Subject, workload: Workload, trial: Trial, answer: Answer) -> Verdict:
    objection = _object(subject, workload, trial, answer)
    if objection:
        return Verdict(math.inf, trial.tolerances[0], f"{objection} ({trial.name} input)")
    names = ["output", "gradient of x", *(f"gradient of {name}" for name, _ in subject.layer.named_parameters())]
    of_x = [gradient[trial.items] for gradient in answer.gradients[:1]]
    results = [answer.output[trial.items], *of_x, *answer.gradients[1:]]
    verdicts = [
        _compare(f"{name} ({trial.name} input)", result, expected, tolerance)
        for name, result, expected, tolerance in zip(names, results, trial.expected, trial.tolerances, strict=False)
    ]
    return max(verdicts, key=_severity)


def _object(subject: Subject, workload: Workload, trial: Trial, answer: Answer) -> str:
    """Return what is wrong before any number is compared, empty where nothing is."""
    output = answer.output
    if not torch.equal(answer.x, trial.x):
        return "edited its input in place"
    if not _same_weights(subject.layer, workload.layer):
        return "edited the layer's weights"
    if output.shape != workload.direction.shape:
        return f"output has shape {list(output.shape)}, expected {list(workload.direction.shape)}"
    if output.dtype != workload.x.dtype:
        return f"output is {output.dtype}, expected {workload.x.dtype}"
    if not bool(output.isfinite().all()):
        return "output is not finite"
    return ""


def _compare(name: str, result: Tensor, expected: Tensor, tolerance: float) -> Verdict:
    error = _error(result, expected)
    if error <= tolerance:
        return Verdict(error, tolerance)
    return Verdict(error, tolerance, f"{name} is off by {error:.2g} of its largest value, tolerance {tolerance:.2g}")


def _severity(verdict: Verdict) -> float:
    severity = verdict.error / verdict.tolerance
    return math.inf if math.isnan(severity) else severity


def _run(function: impls.Implementation, layer: nn.Module, x: Tensor, direction: Tensor | None) -> tuple[Tensor, ...]:
    if direction is None:
        with torch.inference_mode():
            return (function(x),)
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        output = function(x)
        wanted = [x, *layer.parameters()]
        gradients = torch.autograd.grad(output, wanted, direction, allow_unused=True, materialize_grads=True)
    return output.detach(), *gradients


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


def _items(workload: Workload) -> list[int]:
    point = workload.point
    if point.batch * point.num_heads * point.num_tokens**2 <= WHOLE_BATCH_SCORES or point.batch <= 2:
        return list(range(point.batch))
    return [0, point.batch - 1]


def _only(direction: Tensor, items: list[int]) -> Tensor:
    masked = torch.zeros_like(direction)
    masked[items] = direction[items]
    return masked


def _error(result: Tensor, expected: Tensor) -> float:
    deviation = (result.to("cpu", torch.float64) - expected).abs().max()
    largest = expected.abs().max()
    return float(deviation / largest) if largest > 0 else float(deviation)


def _same_weights(layer: nn.Module, reference: nn.Module) -> bool:
    pairs = zip(layer.parameters(), reference.parameters(), strict=True)
    return all(torch.equal(weight, original) for weight, original in pairs)
