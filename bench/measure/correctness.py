"""The comparison of outputs with those of the reference: an implementation with other numbers gets no time."""

import copy
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

import torch
from torch import Tensor, nn

from bench.measure.long_reference import at_random_rows, in_blocks
from bench.measure.outputs import BY_ITEM, gradients
from bench.measure.workload import Workload
from bench.sampling.inputs import LONG_SCORES, NORMAL, PART_ROWS, PEAKED, Part, Values
from impls.contract import with_attend
from impls.name import is_model

PEAK = 5.0
"""A normal input is multiplied by this, so that its softmax is peaked: logits grow with the square."""

MARGIN = 8.0
"""The tolerance in units of plain eager's error in the same dtype: implementations sum in another order.
Flash attention's backward, which computes the weights again, was seen at 4.4 times."""

FLOOR_EPS = 4.0
"""The least tolerance in units of the dtype's epsilon, for shapes at which eager happens to be exact."""

GRADIENT_EPS = 32.0
"""The additional least tolerance of gradients in units of float32's epsilon; the square root of the number of tokens if
that is larger. With one token eager's gradient of the scores is exactly 0; flash attention was seen to be off by 9.
A weight's gradient is a sum over all tokens: Inductor's sum over 8192 of them was seen to be off by 30."""

CANCELLED, FEW = 1e-4, 16
"""A weight's gradient whose share of the largest one of all weights is below CANCELLED has cancelled out, such as that
of the keys' bias. One of fewer than FEW elements may cancel by chance, such as that of `gamma`. The rest is rounding,
so errors of these gradients are relative to the largest one."""

WHOLE_BATCH_SCORES = 4_000_000
"""The most attention scores with which the whole batch is compared with float64, which is slow on the CPU.
With more, this many are computed at a time."""

ITEMS, LATER_ITEMS = 2, 1
"""The number of random items of a larger batch, and of any batch of a model, that are compared with float64, before the
rounds and later; attention doesn't mix items."""


AXES = {3: ("item", "token", "channel"), 4: ("item", "channel", "row", "column")}
"""The axes of an output by their number: tokens, or maps."""


@dataclass(frozen=True)
class Expected:
    """The expected output for some items of the batch, and the expected gradients if the mode has any.

    `tensors` are the output, then the gradients of x and of every weight, as far as they can be compared.
    `scales` (errors are relative to them) and `tolerances` have one value for each tensor.
    """

    items: list[int]
    tensors: tuple[Tensor, ...]
    scales: tuple[float, ...]
    tolerances: tuple[float, ...]


@dataclass(frozen=True)
class Check:
    """The expected results for the input of this name."""

    name: str
    expected: tuple[Expected, ...]


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


def expect(workload: Workload, name: str, shift: Values = 0) -> Check:
    """Return the expected results for the input of this name; `shift` says where other values come from.

    For a small batch they are computed in float64 on the CPU. For a larger one they are float64 results for a few
    random items, and the results of plain eager in the same dtype for all items.
    Tolerances are multiples of plain eager's own error, which is known for the items that float64 has computed.
    """
    x = values(workload, name, shift)
    direction = workload.direction if workload.with_gradients else None
    chosen, layer = _items(workload, name, shift), _plain(workload)
    if _is_long(workload) and not workload.with_gradients:
        at_rows = with_attend(at_random_rows(f"{workload.seed} {name} {shift}"))(layer)
        (known,) = _exact(workload, at_rows, x, None, [0])
        if not known.isnan().all():  # else something after the core mixes tokens
            chosen, layer = [*range(workload.point.batch)], at_rows
    exact = _exact(workload, layer, x, direction, chosen)
    plain = _computed(workload, layer, *_select(x, direction, chosen))
    cancelled = _cancelled(exact)
    scales = _scales(exact, cancelled)
    plain_errors = [_error(*three) for three in zip(plain, exact, scales, strict=True)]
    errors = [error if math.isfinite(error) else 0.0 for error in plain_errors]
    floors = _floors(workload, x.dtype)
    tolerances = tuple(max(floor, MARGIN * error) for floor, error in zip(floors, errors, strict=False))
    if len(chosen) == workload.point.batch:
        return Check(name, (Expected(chosen, exact, scales, tolerances),))
    whole = tuple(tensor.cpu() for tensor in _computed(workload, layer, x, direction))
    wider = tuple(tolerance + error for tolerance, error in zip(tolerances, errors, strict=True))
    by_item = slice(BY_ITEM)
    expected = (
        Expected(chosen, exact[by_item], scales[by_item], tolerances[by_item]),
        Expected([*range(workload.point.batch)], whole, _scales(whole, cancelled), wider),
    )
    return Check(name, expected)


def _plain(workload: Workload) -> Any:
    """Return the layer with plain eager as its core; for a long sequence, with one that never holds all scores."""
    return with_attend(in_blocks)(workload.layer) if _is_long(workload) else workload.layer


def _exact(
    workload: Workload, layer: Any, x: Tensor, direction: Tensor | None, chosen: list[int]
) -> tuple[Tensor, ...]:
    """Return the layer's output and gradients in float64 for some items."""
    reference = copy.deepcopy(layer).to("cpu", torch.float64)
    return _computed(workload, reference, *_select(x, direction, chosen, dtype=torch.float64, device="cpu"))


def _is_long(workload: Workload) -> bool:
    point = workload.point
    return point.num_heads * point.num_tokens**2 > LONG_SCORES and _has_core(workload)


def _has_core(workload: Workload) -> bool:
    """Return whether the layer has a core that can be replaced; a whole model calls torch's function, with masks."""
    return getattr(workload.layer, "attend", None) is not None


def values(workload: Workload, name: str, shift: Values = 0) -> Tensor:
    """Return the values of the input of this name; `shift` says where other values come from."""
    if isinstance(shift, tuple):
        return workload.timed.input(*shift)
    return workload.x * PEAK if name == PEAKED else workload.input(shift)


def compare(workload: Workload, check: Check, tensors: Sequence[Tensor]) -> CheckResult:
    """Return the result of checking an output, and its gradients if the mode has any, for one input.

    The error of a tensor is its largest absolute deviation, divided by the largest absolute expected value of the
    tensor, or of all weights' gradients if this one cancels out.
    """
    if not bool(tensors[0].isfinite().all()):
        return CheckResult(math.inf, check.expected[0].tolerances[0], f"output is not finite ({check.name})")
    names = ["output", "gradient of x", *(f"gradient of {name}" for name, _ in workload.layer.named_parameters())]
    results = [
        _compare(f"{name} ({check.name})", tensor, target, scale, tolerance, expected.items if number < BY_ITEM else ())
        for expected in check.expected
        for number, (name, tensor, target, scale, tolerance) in enumerate(
            zip(
                names,
                _items_of(tensors, expected),
                expected.tensors,
                expected.scales,
                expected.tolerances,
                strict=False,
            )
        )
    ]
    return max(results, key=lambda result: result.severity)


def compare_parts(
    workload: Workload, check: Check, numbers: int, parts: Sequence[Part], found: Sequence[Sequence[Tensor]]
) -> CheckResult:
    """Return the result of checking items of the outputs of several timed calls; `numbers` is the key of their values.

    `found` has their outputs, and in training their gradients of x. What is expected comes from the layer with plain
    eager as its core, without gradients some rows of it, in the point's dtype. So the tolerance is that of `check`
    and plain eager's own error, which is at most the MARGIN-th part of it.
    """
    expected, names = check.expected[-1], ("output", "gradient of x")
    if not all(bool(tensor.isfinite().all()) for tensor in found[0]):
        return CheckResult(math.inf, expected.tolerances[0], f"output is not finite ({check.name})")
    x = torch.stack([workload.timed.item(numbers, part.key, part.number, part.item) for part in parts])
    direction = torch.stack([workload.direction[part.item] for part in parts]) if len(found) > 1 else None
    targets = _of_parts(workload, x, direction, f"{workload.seed} {numbers}")
    wider = 1 + 1 / MARGIN
    kinds = zip(names, found, targets, expected.scales, expected.tolerances, strict=False)
    results = [
        _compare(
            f"{name} of item {part.item} ({check.name})",
            one[None],
            other[None].cpu(),
            scale,
            wider * least,
            [part.item],
        )
        for name, tensors, whole, scale, least in kinds
        for part, one, other in zip(parts, tensors, whole, strict=True)
    ]
    return max(results, key=lambda result: result.severity)


def _of_parts(workload: Workload, x: Tensor, direction: Tensor | None, seed: str) -> tuple[Tensor, ...]:
    """Return the output and the gradient of x that are expected for items, NaN in rows that are not computed."""
    if direction is None and _has_core(workload):
        at_rows: Any = with_attend(at_random_rows(seed, PART_ROWS))(workload.layer)
        (known,) = _computed(workload, at_rows, x, None)
        if not known.isnan().flatten(1).all(1).any():  # else something after the core mixes tokens
            return (known,)
    return _computed(workload, _plain(workload), x, direction)


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


def _items_of(tensors: Sequence[Tensor], expected: Expected) -> list[Tensor]:
    return [*(tensor[expected.items] for tensor in tensors[:BY_ITEM]), *tensors[BY_ITEM:]]


def _compare(
    name: str, result: Tensor, expected: Tensor, scale: float, tolerance: float, items: Sequence[int]
) -> CheckResult:
    error = _error(result, expected, scale)
    if error <= tolerance:
        return CheckResult(error, tolerance)
    where = place(~(_differences(result, expected) <= tolerance * scale), items) if items else ""
    reason = f"{name} is off by {error:.2g} of its largest value, tolerance {tolerance:.2g}"
    return CheckResult(error, tolerance, f"{reason}, at {where}" if where else reason)


def _computed(workload: Workload, layer: nn.Module, x: Tensor, direction: Tensor | None) -> tuple[Tensor, ...]:
    """Return the layer's output, and its gradients if there is a direction, computed for a few items at a time."""
    point = workload.point
    size = max(1, WHOLE_BATCH_SCORES // (point.num_heads * point.num_tokens**2))
    directions = [None] * len(x) if direction is None else direction.split(size)
    parts = [_run(layer, *pair) for pair in zip(x.split(size), directions, strict=False)]
    by_item, weights = 1 if direction is None else 2, [part[2:] for part in parts]
    whole = [torch.cat([part[index] for part in parts]) for index in range(by_item)]
    return *whole, *(torch.stack(sums).sum(0) for sums in zip(*weights, strict=True))


def _run(layer: nn.Module, x: Tensor, direction: Tensor | None) -> tuple[Tensor, ...]:
    if direction is None:
        with torch.inference_mode():
            return (layer(x),)
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        output = layer(x)
        return output.detach(), *(_wide(gradient) for gradient in gradients(output, x, layer, direction))


def _floors(workload: Workload, dtype: torch.dtype) -> Iterator[float]:
    """Return the least tolerance of the output, then of each gradient; gradients are rounded twice as often."""
    point, floor = workload.point, FLOOR_EPS * torch.finfo(dtype).eps
    units = max(GRADIENT_EPS, math.sqrt(point.batch * point.num_tokens))
    return chain([floor], repeat(2 * floor + units * torch.finfo(torch.float32).eps))


def _wide(tensor: Tensor) -> Tensor:
    """Return a tensor in float32 at least, so that sums lose no precision."""
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


def _items(workload: Workload, name: str, shift: Values) -> list[int]:
    point, items = workload.point, ITEMS if name in (NORMAL, PEAKED) else LATER_ITEMS
    is_small = point.batch * point.num_heads * point.num_tokens**2 <= WHOLE_BATCH_SCORES and not is_model(point.layer)
    if is_small or point.batch <= items:
        return [*range(point.batch)]
    rng = random.Random(f"{workload.seed} {name} {shift}")  # noqa: S311 - a choice, not a secret
    return sorted(rng.sample(range(point.batch), items))


def _error(result: Tensor, expected: Tensor, scale: float) -> float:
    return float(_differences(result, expected).max()) / scale


def _differences(result: Tensor, expected: Tensor) -> Tensor:
    wide = torch.promote_types(expected.dtype, torch.float32)
    return _known((result.to(expected.device, wide) - expected.to(wide)).abs(), expected)


def _largest(tensors: Sequence[Tensor]) -> list[float]:
    return [float(_known(tensor.abs(), tensor).max()) for tensor in tensors]


def _known(values: Tensor, expected: Tensor) -> Tensor:
    """Return the values where something is expected, and 0 elsewhere."""
    return torch.where(expected.isnan(), 0.0, values)


def _cancelled(exact: Sequence[Tensor]) -> set[int]:
    """Return the indices of the weights' gradients that have cancelled out, or may have."""
    largest = _largest(exact)
    least = CANCELLED * max(largest[2:], default=0.0)
    return {index for index in range(2, len(exact)) if largest[index] < least or exact[index].numel() < FEW}


def _scales(tensors: Sequence[Tensor], cancelled: set[int]) -> tuple[float, ...]:
    largest = _largest(tensors)
    of_weights = max(largest[2:], default=0.0)
    values = (of_weights if index in cancelled else value for index, value in enumerate(largest))
    return tuple(value or 1.0 for value in values)
