"""The comparison of outputs with those of the reference: an implementation with other numbers gets no time."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bench.measure import reference
from bench.measure.outputs import BY_ITEM
from bench.measure.reference import MARGIN, Check, Target
from bench.measure.workload import Workload
from bench.sampling.inputs import Part

AXES = {3: ("item", "token", "channel"), 4: ("item", "channel", "row", "column")}
"""The axes of an output by their number: tokens, or maps."""

NAMES = ("output", "gradient of x")
"""The tensors that have an item of the batch each."""


@dataclass(frozen=True)
class CheckResult:
    """The error that is largest relative to its tolerance; `reason` says what is incorrect, empty if nothing is."""

    error: float
    tolerance: float
    reason: str = ""

    @property
    def severity(self) -> float:
        """The error in units of its tolerance."""
        severity = self.error / self.tolerance
        return math.inf if math.isnan(severity) else severity


def compare(workload: Workload, check: Check, tensors: Sequence[Tensor]) -> CheckResult:
    """Return the result of checking an output, and its gradients if the mode has any, for one input.

    The error of a tensor is its largest absolute deviation, divided by the largest absolute expected value of the
    tensor, or of all weights' gradients if this one cancels out.
    """
    if not tensors[0].isfinite().all():
        return CheckResult(math.inf, check.expected[0].targets[0].tolerance, f"output is not finite ({check.name})")
    names = [*NAMES, *(f"gradient of {name}" for name, _ in workload.layer.named_parameters())]
    results = []
    for expected in check.expected:
        for number, (name, tensor, target) in enumerate(zip(names, tensors, expected.targets, strict=False)):
            is_by_item = number < BY_ITEM
            of_items, items = (tensor[expected.items], expected.items) if is_by_item else (tensor, ())
            results.append(_compare(f"{name} ({check.name})", of_items, target, items))
    return max(results, key=lambda result: result.severity)


def compare_parts(
    workload: Workload, check: Check, numbers: int, parts: Sequence[Part], outputs: Sequence[Sequence[Tensor]]
) -> CheckResult:
    """Return the result of checking items of the outputs of several timed calls; `numbers` is the key of their values.

    `outputs` has their outputs, and in training their gradients of x. What is expected comes from the layer with plain
    eager as its core, without gradients some rows of it, in the point's dtype. So the tolerance is that of `check`
    and plain eager's own error, which is at most the MARGIN-th part of it.
    """
    targets = check.expected[-1].targets
    if not all(tensor.isfinite().all() for tensor in outputs[0]):
        return CheckResult(math.inf, targets[0].tolerance, f"output is not finite ({check.name})")
    x = torch.stack([workload.timed.input(numbers, part.key, part.number, part.item) for part in parts])
    direction = torch.stack([workload.direction[part.item] for part in parts]) if len(outputs) > 1 else None
    expected = reference.of_parts(workload, x, direction, f"{workload.seed} {numbers}")
    results = []
    for name, tensors, whole, (_, scale, least) in zip(NAMES, outputs, expected, targets, strict=False):
        for part, tensor, of_item in zip(parts, tensors, whole, strict=True):
            target = Target(of_item[None].cpu(), scale, (1 + 1 / MARGIN) * least)
            results.append(_compare(f"{name} of item {part.item} ({check.name})", tensor[None], target, [part.item]))
    return max(results, key=lambda result: result.severity)


def place(wrong: Tensor, items: Sequence[int]) -> str:
    """Return where the wrong elements of an output for these items are: `items 0 to 3, tokens 64 to 196`.

    An axis that is all wrong is left out.
    """
    words = []
    for axis, name in enumerate(AXES.get(wrong.dim(), ())):
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


def _compare(name: str, result: Tensor, target: Target, items: Sequence[int]) -> CheckResult:
    error = reference.relative_error(result, target.tensor, target.scale)
    if error <= target.tolerance:
        return CheckResult(error, target.tolerance)
    is_wrong = ~(reference.deviations(result, target.tensor) <= target.tolerance * target.scale)
    where = place(is_wrong, items) if items else ""
    reason = f"{name} is off by {error:.2g} of its largest value, tolerance {target.tolerance:.2g}"
    return CheckResult(error, target.tolerance, f"{reason}, at {where}" if where else reason)
