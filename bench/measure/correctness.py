"""The comparison of outputs with those of the reference: an implementation with other numbers gets no time."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

import impls
from bench.measure import reference
from bench.measure.reference import EQUAL_WEIGHTS, Check, Computed, Target, targets_of_calls
from bench.measure.workload import TRAINED, Workload
from bench.sampling.inputs import TIMED, Part

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


@dataclass(frozen=True)
class Form:
    """The form of an output, and of its gradients if the mode has any: all that a comparison must know of a layer.

    `names` are those of the tensors, of which the first `by_item` have an item of the batch each; `shapes` and `dtypes`
    are theirs. `is_core` says whether the layer is a core, `is_trained` whether a call returns gradients.
    """

    names: list[str]
    by_item: int
    shapes: list[list[int]]
    dtypes: list[str]
    is_core: bool
    is_trained: bool

    @classmethod
    def of(cls, workload: Workload) -> Self:
        """Return the form of the outputs of a workload."""
        varied, weights = [*workload.inputs()[: len(workload.shapes)]], dict(workload.layer.named_parameters())
        inputs = [f"input {number}" for number in range(1, 1 + len(varied))] if len(varied) > 1 else ["x"]
        of = [*varied, *weights.values()] if workload.with_gradients else []
        tensors = [workload.direction, *of]
        return cls(
            ["output", *(f"gradient of {name}" for name in (*inputs, *weights))][: len(tensors)],
            workload.by_item,
            [[*tensor.shape] for tensor in tensors],
            [str(tensor.dtype).removeprefix("torch.") for tensor in tensors],
            isinstance(workload.layer, impls.Core),
            workload.point.mode in TRAINED,
        )

    @property
    def like(self) -> list[Tensor]:
        """Tensors of the form, without memory."""
        pairs = zip(self.shapes, self.dtypes, strict=True)
        return [torch.empty(shape, dtype=getattr(torch, dtype), device="meta") for shape, dtype in pairs]

    @property
    def like_part(self) -> list[Tensor]:
        """Tensors of the form of what is judged of one item of a timed call, without memory."""
        return [tensor[0] for tensor in self.like[: self.by_item if self.is_trained else 1]]


def compare(form: Form, check: Check, tensors: Sequence[Tensor]) -> CheckResult:
    """Return the result of checking an output, and its gradients if the mode has any, for one input.

    The error of a tensor is its largest absolute deviation, divided by the largest absolute expected value of the
    tensor, or of all weights' gradients if this one cancels out.
    """
    if not tensors[0].isfinite().all():
        return _not_finite(check, check.name)
    results = (
        result
        for expected in check.expected
        for result in _compared(form, tensors, expected.targets, expected.items, check.name)
    )
    return max(results, key=lambda result: result.severity)


def compare_timed(
    form: Form,
    check: Check,
    wholes: Sequence[tuple[Sequence[Computed], Sequence[Tensor]]],
    parts: Sequence[tuple[Part, Sequence[Tensor]]],
    of_parts: Sequence[Computed],
) -> CheckResult:
    """Return the result of checking whole outputs and items of the outputs of timed calls, with their gradients.

    Each whole output has what the layer computes beside it; that of all items is `of_parts`. Tolerances are those of
    `check`, and a little more because what is expected is not computed in float64.
    """
    if not all(tensors[0].isfinite().all() for _, tensors in (*wholes, *parts)):
        return _not_finite(check, TIMED)
    results: list[CheckResult] = []
    for computed, tensors in wholes:
        targets = targets_of_calls(check, computed, tensors[0].dtype)
        results += _compared(form, tensors, targets, range(len(tensors[0])), TIMED)
    targets = targets_of_calls(check, of_parts, parts[0][1][0].dtype)
    for place, (part, tensors) in enumerate(parts):
        results += _compared_part(form, part, tensors, targets, place)
    return max(results, key=lambda result: result.severity)


def _compared_part(
    form: Form, part: Part, tensors: Sequence[Tensor], targets: Sequence[Target], place: int
) -> Iterator[CheckResult]:
    for name, tensor, target in zip(form.names, tensors, targets, strict=False):
        equal = None if target.equal is None else target.equal[[place]]
        own = target._replace(tensor=target.tensor[[place]], equal=equal)
        yield _compare(form, f"{name} of item {part.item} ({TIMED})", tensor[None], own, [part.item])


def _compared(
    form: Form, tensors: Sequence[Tensor], targets: Sequence[Target], items: Sequence[int], check: str
) -> Iterator[CheckResult]:
    """Yield the result of each tensor; output and gradients of inputs are compared in these items."""
    for number, (name, tensor, target) in enumerate(zip(form.names, tensors, targets, strict=False)):
        of_items, of = (tensor[[*items]], items) if number < form.by_item else (tensor, ())
        yield _compare(form, f"{name} ({check})", of_items, target, of)


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


def _compare(form: Form, name: str, result: Tensor, target: Target, items: Sequence[int]) -> CheckResult:
    error = reference.relative_error(result, target.tensor, target.scale)
    way = reference.way_to_equal_weights(result, target)
    reason = ""
    if not error <= target.tolerance:
        is_wrong = ~(reference.difference(result, target.tensor).abs() <= target.tolerance * target.scale)
        where = place(is_wrong, items, OF_HEADS if form.is_core else ()) if items else ""
        reason = f"{name} is off by {error:.2g} of its largest value, tolerance {target.tolerance:.2g}"
        reason += f", at {where}" if where else ""
    elif way > EQUAL_WEIGHTS:
        reason = f"{name} has {way:.0%} of the error of equal weights for all keys: it is no attention"
    return CheckResult(error, target.tolerance, reason)
