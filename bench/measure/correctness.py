"""Compare outputs with the reference."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torch import Tensor

import impls
from bench.measure import reference
from bench.measure.place import OF_HEADS, place
from bench.measure.reference import Check, Target
from bench.measure.workload import Workload
from bench.plan.errors import NOT_FINITE
from bench.sampling.inputs import TIMED, TimedCall


@dataclass(frozen=True)
class CheckResult:
    """The error that is largest relative to its tolerance; `reason` is empty if the output is correct."""

    error: float
    tolerance: float
    reason: str = ""

    @property
    def severity(self) -> float:
        """The error in units of its tolerance; infinite if the output is incorrect for another reason, or NaN."""
        severity = self.error / self.tolerance
        return severity if severity > 1 or (severity <= 1 and not self.reason) else math.inf


def compare(work: Workload, check: Check, tensors: Sequence[Tensor]) -> CheckResult:
    """Compare an output, and its gradients if the mode has any, with the expected results for one input.

    The error of a tensor is its largest absolute deviation, divided by the largest absolute expected value of the
    tensor. For a weight's gradient that cancels out, the divisor is the largest expected gradient of any weight.
    """
    if not tensors[0].isfinite().all():
        return _not_finite(check, check.name)
    targets = check.targets if len(check.items) == work.point.batch else check.targets[: work.by_item]
    results = _compared(work, tensors, targets, check.items, check.name)
    return max(results, key=lambda result: result.severity)


def compare_timed(work: Workload, check: Check, kept: Sequence[tuple[TimedCall, Sequence[Tensor]]]) -> CheckResult:
    """Replay timed calls, and compare their outputs, whole or of single items, with the results.

    Tolerances are a little wider than in `check`, because the replay isn't in float64.
    Raises `impls.Unsupported` if the layer's own result is not finite.
    """
    if not all(tensors[0].isfinite().all() for _, tensors in kept):
        return _not_finite(check, TIMED)
    results: list[CheckResult] = []
    calls = [call for call, _ in kept if call.item is not None]
    of_items = iter(reference.of_items(work, check, calls) if calls else ())
    for call, tensors in kept:
        if call.item is None:
            targets = reference.of_call(work, check, call)
            results += _compared(work, tensors, targets, range(work.point.batch), TIMED)
        else:
            for name, tensor, target in zip(work.names, tensors, next(of_items), strict=False):
                what = f"{name} of item {call.item} ({TIMED})"
                results.append(_compare(work, what, tensor[None], target, [call.item]))
    nothing = CheckResult(0.0, check.targets[0].tolerance)
    return max(results, key=lambda result: result.severity, default=nothing)


def _compared(
    work: Workload, tensors: Sequence[Tensor], targets: Sequence[Target], items: Sequence[int], check: str
) -> Iterator[CheckResult]:
    """Yield the result of each tensor; outputs and gradients of inputs are compared for these items only."""
    for number, (name, tensor, target) in enumerate(zip(work.names, tensors, targets, strict=False)):
        of_items, of = (tensor[[*items]], items) if number < work.by_item else (tensor, ())
        yield _compare(work, f"{name} ({check})", of_items, target, of)


def _not_finite(check: Check, name: str) -> CheckResult:
    return CheckResult(math.inf, check.targets[0].tolerance, f"output {NOT_FINITE} ({name})")


def _compare(work: Workload, name: str, result: Tensor, target: Target, items: Sequence[int]) -> CheckResult:
    """Compare a tensor with its target; `items` are the batch items it holds, empty without a batch."""
    error = reference.relative_error(result, target.tensor, target.scale)
    reason = ""
    if target.tensor.isinf().any() or target.tensor.isnan().all():
        error, reason = math.inf, f"{name} can't be judged, because the expected value {NOT_FINITE}"
    elif not error <= target.tolerance:
        is_wrong = ~(reference.difference(result, target.tensor).abs() <= target.tolerance * target.scale)
        axes = OF_HEADS if isinstance(work.layer, impls.Core) else ()
        where = place(is_wrong, ~target.tensor.isnan(), items, axes) if items else ""
        reason = f"{name} is off by {error:.2g} of its largest value, tolerance {target.tolerance:.2g}"
        reason += f", at {where}" if where else ""
    return CheckResult(error, target.tolerance, reason)
