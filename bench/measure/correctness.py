"""The comparison of outputs with those of the reference: an implementation with other numbers gets no time."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

import impls
from bench.measure import reference
from bench.measure.reference import EQUAL_WEIGHTS, Check, Target
from bench.measure.workload import TRAINED, Workload
from bench.sampling.inputs import TIMED, Part, TimedCall

AXES = {3: ("item", "token", "channel"), 4: ("item", "channel", "row", "column")}
"""The axes of an output by their number: tokens, or maps."""

OF_HEADS = ("item", "head", "token", "channel")
"""The axes of queries, keys, values and the output of a core."""


@dataclass(frozen=True)
class CheckResult:
    """The error that is largest relative to its tolerance; `reason` says what is incorrect, empty if nothing is."""

    error: float
    tolerance: float
    reason: str = ""

    @property
    def severity(self) -> float:
        """The error in units of its tolerance; infinite if an output within the tolerance is incorrect."""
        severity = self.error / self.tolerance
        return severity if severity > 1 or (severity <= 1 and not self.reason) else math.inf


def compare(workload: Workload, check: Check, tensors: Sequence[Tensor]) -> CheckResult:
    """Return the result of checking an output, and its gradients if the mode has any, for one input.

    The error of a tensor is its largest absolute deviation, divided by the largest absolute expected value of the
    tensor, or of all weights' gradients if this one cancels out.
    """
    if not tensors[0].isfinite().all():
        return _not_finite(check, check.name)
    results = (
        result
        for expected in check.expected
        for result in _compared(workload, tensors, expected.targets, expected.items, check.name)
    )
    return max(results, key=lambda result: result.severity)


def compare_timed(
    workload: Workload,
    check: Check,
    numbers: int,
    wholes: Sequence[tuple[TimedCall, Sequence[Tensor]]],
    parts: Sequence[tuple[Part, Sequence[Tensor]]],
) -> CheckResult:
    """Return the result of checking whole outputs and items of the outputs of timed calls, with their gradients.

    `numbers` is the key of the numbers of their inputs. Tolerances are those of `check`, and a little more because what
    is expected is not computed in float64.
    """
    if not all(tensors[0].isfinite().all() for _, tensors in (*wholes, *parts)):
        return _not_finite(check, TIMED)
    results: list[CheckResult] = []
    for call, tensors in wholes:
        inputs = workload.timed.inputs(numbers, call)
        targets = reference.of_calls(workload, check, inputs, _direction(workload, call.key))
        results += _compared(workload, tensors, targets, range(workload.point.batch), TIMED)
    results += _compared_parts(workload, check, numbers, parts)
    return max(results, key=lambda result: result.severity)


def _compared_parts(
    workload: Workload, check: Check, numbers: int, parts: Sequence[tuple[Part, Sequence[Tensor]]]
) -> Iterator[CheckResult]:
    items = [workload.timed.inputs(numbers, TimedCall(*part[:2]), part.item) for part, _ in parts]
    xs = tuple(map(torch.stack, zip(*items, strict=True)))
    direction = torch.stack([_direction(workload, part.key)[part.item] for part, _ in parts])
    targets = reference.of_calls(workload, check, xs, direction if len(parts[0][1]) > 1 else None)
    for place, (part, tensors) in enumerate(parts):
        for name, tensor, target in zip(_names(workload), tensors, targets, strict=False):
            equal = None if target.equal is None else target.equal[[place]]
            own = target._replace(tensor=target.tensor[[place]], equal=equal)
            yield _compare(workload, f"{name} of item {part.item} ({TIMED})", tensor[None], own, [part.item])


def _direction(workload: Workload, key: int) -> Tensor:
    """Return the gradient of the outputs of a timing; in mode forward no call has one."""
    return workload.timed.direction(key) if workload.point.mode in TRAINED else workload.direction


def _names(workload: Workload) -> list[str]:
    """Return the names of the tensors of an output that have an item of the batch each."""
    several = len(workload.shapes) > 1
    inputs = [f"input {number}" if several else "x" for number in range(1, 1 + len(workload.shapes))]
    return ["output", *(f"gradient of {name}" for name in inputs)]


def _compared(
    workload: Workload, tensors: Sequence[Tensor], targets: Sequence[Target], items: Sequence[int], check: str
) -> Iterator[CheckResult]:
    """Yield the result of each tensor; output and gradients of inputs are compared in these items."""
    names = _names(workload)
    by_item, every = len(names), [*names, *(f"gradient of {name}" for name, _ in workload.layer.named_parameters())]
    for number, (name, tensor, target) in enumerate(zip(every, tensors, targets, strict=False)):
        of_items, of = (tensor[[*items]], items) if number < by_item else (tensor, ())
        yield _compare(workload, f"{name} ({check})", of_items, target, of)


def _not_finite(check: Check, name: str) -> CheckResult:
    return CheckResult(math.inf, check.expected[0].targets[0].tolerance, f"output is not finite ({name})")


def place(wrong: Tensor, items: Sequence[int], axes: Sequence[str] = ()) -> str:
    """Return where the wrong elements of an output for these items are: `items 0 to 3, tokens 64 to 196`.

    `axes` are their names if they aren't the usual ones. An axis that is all wrong is left out.
    """
    words = []
    for axis, name in enumerate(axes or AXES.get(wrong.dim(), ())):
        others = [each for each in range(wrong.dim()) if each != axis]
        indices = wrong.any(dim=others).nonzero().flatten().tolist()
        if len(indices) == wrong.shape[axis]:
            continue
        indices = [items[index] for index in indices] if axis == 0 else indices
        first, last = indices[0], indices[-1]
        if len(indices) == 1:
            words.append(f"{name} {first}")
        elif last - first + 1 == len(indices):
            words.append(f"{name}s {first} to {last}")
        else:
            words.append(f"{len(indices)} of {wrong.shape[axis]} {name}s, the first is {first}")
    return ", ".join(words)


def _compare(workload: Workload, name: str, result: Tensor, target: Target, items: Sequence[int]) -> CheckResult:
    error = reference.relative_error(result, target.tensor, target.scale)
    way = reference.way_to_equal_weights(result, target)
    reason = ""
    if not error <= target.tolerance:
        is_wrong = ~(reference.difference(result, target.tensor).abs() <= target.tolerance * target.scale)
        where = place(is_wrong, items, OF_HEADS if isinstance(workload.layer, impls.Core) else ()) if items else ""
        reason = f"{name} is off by {error:.2g} of its largest value, tolerance {target.tolerance:.2g}"
        reason += f", at {where}" if where else ""
    elif way > EQUAL_WEIGHTS:
        reason = f"{name} has {way:.0%} of the error of equal weights for all keys: it is no attention"
    return CheckResult(error, target.tolerance, reason)
