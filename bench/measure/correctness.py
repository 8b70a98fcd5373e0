"""The comparison of outputs with those of the reference: an implementation with other numbers gets no time."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from torch import Tensor

import impls
from bench.measure import reference
from bench.measure.elements import Elements, spread
from bench.measure.place import OF_HEADS, place
from bench.measure.reference import Check, Target, targets_of_calls
from bench.measure.workload import Workload
from bench.plan.errors import NOT_FINITE
from bench.sampling.inputs import TIMED, Part


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


def compare(work: Workload, check: Check, tensors: Sequence[Tensor], allowed: float = 0.0) -> CheckResult:
    """Return the result of checking an output, and its gradients if the mode has any, for one input.

    An error up to the share `allowed` of the largest value is accepted, also beyond the tolerance.

    The error of a tensor is its largest absolute deviation, divided by the largest absolute expected value of the
    tensor, or of all weights' gradients if this one cancels out.
    """
    if not tensors[0].isfinite().all():
        return _not_finite(check, check.name)
    results = (
        result
        for expected in check.expected
        for result in _compared(work, tensors, _allowing(expected.targets, allowed), expected.items, check.name)
    )
    return max(results, key=lambda result: result.severity)


def compare_timed(
    work: Workload,
    check: Check,
    wholes: Sequence[tuple[Sequence[Tensor], Sequence[Tensor]]],
    parts: Sequence[tuple[Part, Sequence[Tensor]]],
    of_parts: Sequence[Tensor],
    compared: Elements,
    allowed: float = 0.0,
) -> CheckResult:
    """Return the result of checking whole outputs and items of the outputs of timed calls, with their gradients.

    Each whole output has what the layer computes beside it; that of all items is `of_parts`. All have the elements that
    are `compared`. Tolerances are those of `check`, and a little more because what is expected is not computed in
    float64; `allowed` is as in `compare`.
    """
    if not all(tensors[0].isfinite().all() for _, tensors in (*wholes, *parts)):
        return _not_finite(check, TIMED)
    results: list[CheckResult] = []
    for computed, tensors in wholes:
        targets = _allowing(targets_of_calls(check, computed, tensors[0].dtype), allowed)
        of_each = zip(work.names, work.like, tensors, targets, compared.of_whole, strict=True)
        for number, (name, like, tensor, target, places) in enumerate(of_each):
            items = range(len(like)) if number < work.by_item else ()
            in_whole = partial(spread, places=places, shape=like.shape)
            results.append(_compare(work, f"{name} ({TIMED})", tensor, target, items, in_whole))
    targets = _allowing(targets_of_calls(check, of_parts, parts[0][1][0].dtype), allowed)
    for number, (part, tensors) in enumerate(parts):
        results += _compared_part(work, part, tensors, targets, number, compared.of_part)
    return max(results, key=lambda result: result.severity)


def _allowing(targets: Sequence[Target], share: float) -> list[Target]:
    """Return targets whose tolerance is at least this share."""
    return [target._replace(tolerance=max(target.tolerance, share)) for target in targets]


def _compared_part(
    work: Workload,
    part: Part,
    tensors: Sequence[Tensor],
    targets: Sequence[Target],
    number: int,
    compared: Sequence[Tensor | None],
) -> Iterator[CheckResult]:
    of_each = zip(work.names, work.like, tensors, targets, compared, strict=False)
    for name, like, tensor, target, places in of_each:
        own = target._replace(tensor=target.tensor[[number]])
        in_item = partial(spread, places=places, shape=[1, *like.shape[1:]])
        yield _compare(work, f"{name} of item {part.item} ({TIMED})", tensor[None], own, [part.item], in_item)


def _compared(
    work: Workload, tensors: Sequence[Tensor], targets: Sequence[Target], items: Sequence[int], check: str
) -> Iterator[CheckResult]:
    """Yield the result of each tensor; output and gradients of inputs are compared in these items."""
    for number, (name, tensor, target) in enumerate(zip(work.names, tensors, targets, strict=False)):
        of_items, of = (tensor[[*items]], items) if number < work.by_item else (tensor, ())
        yield _compare(work, f"{name} ({check})", of_items, target, of)


def _not_finite(check: Check, name: str) -> CheckResult:
    return CheckResult(math.inf, check.expected[0].targets[0].tolerance, f"output {NOT_FINITE} ({name})")


def _compare(
    work: Workload,
    name: str,
    result: Tensor,
    target: Target,
    items: Sequence[int],
    in_whole: Callable[[Tensor], Tensor] = lambda some: some,
) -> CheckResult:
    """Return the result of a tensor for some items; `in_whole` puts its elements where they are in the whole one."""
    error = reference.relative_error(result, target.tensor, target.scale)
    reason = ""
    if target.tensor.isinf().any() or target.tensor.isnan().all():
        error, reason = math.inf, f"{name} can't be judged: what is expected {NOT_FINITE}"
    elif not error <= target.tolerance:
        is_wrong = ~(reference.difference(result, target.tensor).abs() <= target.tolerance * target.scale)
        judged = in_whole(~target.tensor.isnan())
        axes = OF_HEADS if isinstance(work.layer, impls.Core) else ()
        where = place(in_whole(is_wrong), judged, items, axes) if items else ""
        reason = f"{name} is off by {error:.2g} of its largest value, tolerance {target.tolerance:.2g}"
        reason += f", at {where}" if where else ""
    return CheckResult(error, target.tolerance, reason)
