"""What the reference expects of an output: a layer with plain eager as its core, in float64 as far as time allows.

Items and rows are drawn by the system, in the process of the judge: no other process can know them.

For a long sequence the core never holds all scores at once. Without gradients only some rows of the output are
computed, those of queries drawn at random; the others are NaN. The operations after a core work on each token by
itself, so that the layer's output is NaN there too. With gradients all rows are computed, block by block, and computed
again in the backward pass.
"""

import copy
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from bench.measure.cores import at_random_rows, in_blocks, largest_logit
from bench.measure.devices import device
from bench.measure.outputs import gradients
from bench.measure.workload import Tensors, Workload, cast_to
from bench.plan.device import CPU
from bench.plan.layers import scores
from bench.sampling.inputs import LONG_SCORES, NORMAL, PART_ROWS, PEAKED, ROWS, InputValues
from impls.catalogue import shapes_itself
from impls.contract import Unsupported
from impls.modules.core import with_attend

LEAST_LOGIT, LOGIT = 100.0, 120.0
"""The largest logit of a peaked input is LEAST_LOGIT at least, where a softmax without its maximum overflows in float32
and bfloat16; LOGIT is aimed at. Float16 overflows at 12."""

PEAK, MOST_PEAK, PEAKINGS = 4.0, 32.0, 4
"""The factor of a peaked input if logits don't grow with the input, the largest, and how many factors are tried."""

MARGIN = 8.0
"""The tolerance in units of plain eager's error in the same dtype: implementations sum in another order.
Flash attention's backward, which computes the weights again, was seen at 4.4 times."""

FLOOR_EPS = 4.0
"""The least tolerance in units of the dtype's epsilon, for shapes at which eager happens to be exact."""

GRADIENT_EPS = 32.0
"""The additional least tolerance of gradients in units of float32's epsilon; the square root of the number of tokens if
that is larger. With one token eager's gradient of the scores is exactly 0; flash attention was seen to be off by 9, on
a peaked input by 2,100.
A weight's gradient is a sum over all tokens: Inductor's sum over 8192 of them was seen to be off by 30."""

MOST_TOLERANCE = {torch.float32: 0.05, torch.bfloat16: 0.2, torch.float16: 0.2}
"""The largest tolerance. If plain eager itself is off by half as much, no implementation can be judged.

On a peaked input in a half type it is at least twice plain eager's error: there a logit is rounded by up to a half, and
the core of one head of 4096 tokens was seen to be off by 20 %. The normal input tells whether it can be judged."""

EQUAL_WEIGHTS, RESOLVED = 0.3, 30.0
"""An output in a half type may go EQUAL_WEIGHTS of the way from attention to equal weights for all keys. Both differ
by less than the tolerance, but in all elements: rounding was seen to go 0.1 % of the way, the mean of the values goes
all of it. The way is compared if it is RESOLVED times as long as the rounding of one element."""

CANCELLED, FEW = 1e-4, 16
"""A weight's gradient whose share of the largest one of all weights is below CANCELLED has cancelled out, such as that
of the keys' bias. One of fewer than FEW elements may cancel by chance, such as that of `gamma`. The rest is rounding,
so errors of these gradients are relative to the largest one."""

WHOLE_BATCH_SCORES = 4_000_000
"""The most attention scores with which the whole batch is compared with float64, which is slow on the CPU.
With more, this many are computed at a time."""

EXACT_BYTES, ROOM = 8, 8.0
"""The bytes of a float64, and how often what it holds at least must fit into a GPU's free memory, beside its copies."""

ITEMS, LATER_ITEMS = 2, 1
"""The number of random items of a larger batch, and of any batch of a model, that are compared with float64, before the
rounds and later; attention doesn't mix items."""


class Target(NamedTuple):
    """What is expected of one tensor; errors are relative to `scale`.

    `equal` is the tensor if a core gives all keys equal weights, None where the tolerance alone tells it.
    """

    tensor: Tensor
    scale: float
    tolerance: float
    equal: Tensor | None = None


class Computed(NamedTuple):
    """What the layer computes in a timed call; `equal` is as in a Target."""

    tensor: Tensor
    equal: Tensor | None


@dataclass(frozen=True)
class Expected:
    """What is expected for some items of the batch: of the output, and of the gradients if the mode has any.

    Those are the gradients of x and of every weight, as far as they can be compared.
    """

    items: list[int]
    targets: tuple[Target, ...]


@dataclass(frozen=True)
class Check:
    """The expected results for the input of this name."""

    name: str
    expected: tuple[Expected, ...]


def expect(workload: Workload, name: str, values: InputValues) -> Check:
    """Return the expected results for the input of this name and these values.

    For a small batch they are computed in float64 on the CPU. For a larger one they are float64 results for a few
    random items, and the results of plain eager in the same dtype for all items.
    Tolerances are multiples of plain eager's own error, which is computed for the items that float64 has.
    Raises `impls.Unsupported` if that error is too large to judge others by it.
    """
    xs, batch, dtype = workload.inputs(values), range(workload.point.batch), workload.values.dtype
    is_rough = name == PEAKED and _is_half(workload)
    # on a peaked input a gradient in a half type shows rounding: plain eager's was seen to be off by 60 %
    has_gradients, most = workload.with_gradients and not is_rough, MOST_TOLERANCE[dtype]
    direction = workload.direction if has_gradients else None
    chosen, layer = _items(workload, name), _plain(workload, workload.layer)
    if _is_long(workload) and direction is None:
        at_rows = with_attend(at_random_rows(ROWS))(workload.layer)
        (output,) = _exact(workload, at_rows, xs, None, [0])
        if not output.isnan().all():  # else something after the core mixes tokens
            chosen, layer = [*batch], at_rows
    exact = _exact(workload, layer, xs, direction, chosen)
    plain = _computed(workload, layer, *_select(xs, direction, chosen))
    by_item = len(plain) if direction is None else workload.by_item
    cancelled = _cancelled(exact, by_item)
    scales = _scales(exact, cancelled, by_item)
    plain_errors = map(relative_error, plain, exact, scales)
    errors = [error if math.isfinite(error) else 0.0 for error in plain_errors]
    most = max(most, 2 * errors[0]) if is_rough else most
    floors = _floors(workload, dtype, is_peaked=name == PEAKED)
    tolerances = [_tolerance(dtype, most, floor, error) for floor, error in zip(floors, errors, strict=False)]
    equal = _with_equal_weights(workload, *_select(xs, direction, chosen, _exact_place(workload), torch.float64))
    targets = tuple(map(Target, exact, scales, tolerances, equal or repeat(None)))
    if len(chosen) == len(batch):
        return Check(name, (Expected(chosen, targets),))
    whole = [tensor.cpu() for tensor in _computed(workload, layer, xs, direction)]
    wider = [min(most, tolerance + error) for tolerance, error in zip(tolerances, errors, strict=True)]
    of_all = Expected([*batch], tuple(map(Target, whole, _scales(whole, cancelled, by_item), wider)))
    return Check(name, (Expected(chosen, targets[:by_item]), of_all))


def of_calls(workload: Workload, xs: Tensors, direction: Tensor | None) -> tuple[Computed, ...]:
    """Return what the layer computes in timed calls on inputs, in float32 at least.

    Without gradients some rows of the output are computed, and the others are NaN.
    """
    own = workload.values.dtype
    dtype = torch.promote_types(own, torch.float32)
    layer = workload.layer if own == dtype else copy.deepcopy(workload.layer).to(dtype)
    chosen = tuple(cast_to(x, None, dtype) for x in xs), None if direction is None else direction.to(dtype)
    tensors = None if direction is not None else _some_rows(workload, layer, chosen[0])
    tensors = tensors or _computed(workload, _plain(workload, layer), *chosen)
    equal = _with_equal_weights(workload, *chosen) or repeat(None)
    return tuple(Computed(tensor.cpu(), other) for tensor, other in zip(tensors, equal, strict=False))


def targets_of_calls(check: Check, computed: Sequence[Computed], dtype: torch.dtype) -> tuple[Target, ...]:
    """Return what is expected of timed calls, with the scales of a check and a little more than its tolerances."""
    most, targets = MOST_TOLERANCE[dtype], check.expected[-1].targets
    return tuple(
        Target(tensor, target.scale, min(most, target.tolerance + target.tolerance / MARGIN), equal)
        for (tensor, equal), target in zip(computed, targets, strict=False)
    )


def _some_rows(workload: Workload, layer: Any, xs: Tensors) -> tuple[Tensor, ...] | None:
    """Return the output in random rows, NaN elsewhere; None if the core isn't plain or is followed by a mix."""
    if not workload.has_plain_core:
        return None
    at_rows: Any = with_attend(at_random_rows(PART_ROWS))(layer)
    (output,) = _computed(workload, at_rows, xs, None)
    return None if output.isnan().flatten(1).all(1).any() else (output,)


def peak(workload: Workload) -> float:
    """Return the factor that makes a peaked input of a normal one: its largest logit is about LOGIT.

    It is PEAK if the core isn't plain, and so can't be seen, and MOST_PEAK at most.
    """
    factor = PEAK
    for _ in range(PEAKINGS if workload.has_plain_core else 0):
        largest = largest_logit(workload.layer, tuple(each[:1] for each in workload.inputs(InputValues(0, factor))))
        if LEAST_LOGIT <= largest <= 2 * LOGIT or math.isinf(largest):
            break
        factor = min(MOST_PEAK, factor * math.sqrt(LOGIT / max(largest, 1.0)))
    return factor


def _with_equal_weights(workload: Workload, xs: Tensors, direction: Tensor | None) -> tuple[Tensor, ...] | None:
    """Return the output and gradients of the layer if its core gives all keys equal weights.

    None in float32, where the tolerance tells such a core from attention, and if the core can't be replaced.
    """
    other = workload.with_equal_weights if _is_half(workload) else None
    if other is None:
        return None
    layer = copy.deepcopy(other).to(xs[0].device, xs[0].dtype)
    return tuple(each.cpu() for each in _computed(workload, layer, xs, direction))


def _tolerance(dtype: torch.dtype, most: float, floor: float, error: float) -> float:
    """Return the tolerance beside plain eager's error, `most` at most.

    Raises `impls.Unsupported` if nothing can be judged by it.
    """
    if error > most / 2:
        raise Unsupported(
            f"outputs can't be judged: the layer itself, in {str(dtype).removeprefix('torch.')}, is off by {error:.0%} "
            f"of the largest value from float64, and no tolerance is above {most:.0%}"
        )
    return min(most, max(floor, MARGIN * error))


def relative_error(result: Tensor, expected: Tensor, scale: float) -> float:
    """Return the largest deviation where something is expected, in units of a scale."""
    return float(difference(result, expected).abs().max()) / scale


def way_to_equal_weights(result: Tensor, target: Target) -> float:
    """Return how far a tensor is on the way from what is expected to that with equal weights: 0 is right, 1 is there.

    It is the projection of its error on the difference of the two, 0 if that is too small beside rounding, or if what
    is expected has cancelled out.
    """
    if target.equal is None or largest_of([target.tensor])[0] < CANCELLED * target.scale:
        return 0.0
    way, error = (difference(each, target.tensor).flatten() for each in (target.equal, result))
    length, typical = way.norm(), _or_zero(target.tensor, target.tensor).float().square().mean().sqrt()
    if not length > RESOLVED * torch.finfo(result.dtype).eps * typical:
        return 0.0
    return float(error.to(way.dtype) @ way / length**2)


def difference(result: Tensor, expected: Tensor) -> Tensor:
    """Return the deviations where something is expected, and 0 elsewhere."""
    wide = torch.promote_types(expected.dtype, torch.float32)
    return _or_zero(result.to(expected.device, wide) - expected.to(wide), expected)


def _plain(workload: Workload, layer: nn.Module) -> Any:
    """Return a layer with plain eager as its core; for a long sequence, with one that never holds all scores."""
    return with_attend(in_blocks)(layer) if _is_long(workload) else layer


def _exact(
    workload: Workload, layer: Any, xs: Tensors, direction: Tensor | None, chosen: list[int]
) -> tuple[Tensor, ...]:
    """Return the layer's output and gradients in float64 for some items, in the host's memory."""
    place = _exact_place(workload)
    reference = copy.deepcopy(layer).to(place, torch.float64)
    exact = _computed(workload, reference, *_select(xs, direction, chosen, place, torch.float64))
    return tuple(each.cpu() for each in exact)


def _exact_place(workload: Workload) -> str:
    """Return where float64 is computed: on a GPU if its free memory is ROOM times what that holds, else on the CPU."""
    on, point = device(workload.point.device), workload.point
    of_item = scores(point)
    items = max(1, min(point.batch, WHOLE_BATCH_SCORES // of_item))
    if _is_long(workload):  # then they are never held together
        of_item = max(LONG_SCORES, ROWS * point.num_heads * point.keys)
    tensors = [*workload.inputs(), workload.direction, *workload.layer.parameters()]
    held_bytes = EXACT_BYTES * (sum(each.numel() for each in tensors) + items * of_item)
    return on.place if (on.free_bytes() or 0) >= ROOM * held_bytes else CPU.name


def _is_long(workload: Workload) -> bool:
    return scores(workload.point) > LONG_SCORES and workload.has_plain_core


def _is_half(workload: Workload) -> bool:
    return workload.values.dtype.itemsize == 2  # bytes


def _computed(workload: Workload, layer: nn.Module, xs: Tensors, direction: Tensor | None) -> Tensors:
    """Return the layer's output, and its gradients if there is a direction, computed for a few items at a time."""
    size = max(1, WHOLE_BATCH_SCORES // scores(workload.point))
    directions = [None] * len(xs[0]) if direction is None else direction.split(size)
    parts = [
        _run(layer, *pair) for pair in zip(zip(*(x.split(size) for x in xs), strict=True), directions, strict=False)
    ]
    by_item = 1 if direction is None else workload.by_item
    whole = [torch.cat([part[index] for part in parts]) for index in range(by_item)]
    return *whole, *(torch.stack(sums).sum(0) for sums in zip(*(part[by_item:] for part in parts), strict=True))


def _run(layer: nn.Module, xs: Tensors, direction: Tensor | None) -> Tensors:
    if direction is None:
        with torch.inference_mode():
            return (layer(*xs),)
    with torch.enable_grad():
        xs = tuple(x.detach().requires_grad_(x.is_floating_point()) for x in xs)
        output = layer(*xs)
        wide = torch.promote_types(xs[0].dtype, torch.float32)  # sums lose no precision
        return output.detach(), *(each.to(wide) for each in gradients(output, xs, [*layer.parameters()], direction))


def _floors(workload: Workload, dtype: torch.dtype, *, is_peaked: bool) -> Iterator[float]:
    """Return the least tolerance of the output, then of each gradient; gradients are rounded twice as often.

    A logit of LOGIT is rounded by so many epsilons, and its weight is off by as much. The gradient of a logit goes on
    times keys and values whose product is about LOGIT.
    """
    eps = torch.finfo(torch.float32).eps
    point, floor = workload.point, FLOOR_EPS * torch.finfo(dtype).eps + is_peaked * LOGIT * eps
    units = max(
        GRADIENT_EPS * (LOGIT if is_peaked else 1.0), math.sqrt(point.batch * max(point.num_tokens, point.kv_tokens))
    )
    return chain([floor], repeat(2 * floor + units * eps))


def _select(
    xs: Tensors, direction: Tensor | None, items: list[int], device: str | None = None, dtype: torch.dtype | None = None
) -> tuple[Tensors, Tensor | None]:
    chosen = tuple(cast_to(x[items], device, dtype) for x in xs)
    return chosen, None if direction is None else direction[items].to(device, dtype)


def _items(workload: Workload, name: str) -> list[int]:
    point, items = workload.point, ITEMS if name in (NORMAL, PEAKED) else LATER_ITEMS
    is_small = point.batch * scores(point) <= WHOLE_BATCH_SCORES and not shapes_itself(point.layer)
    if is_small or point.batch <= items:
        return [*range(point.batch)]
    return sorted(random.SystemRandom().sample(range(point.batch), items))


def _cancelled(exact: Sequence[Tensor], by_item: int) -> set[int]:
    """Return the indices of the weights' gradients that have cancelled out, or may have."""
    largest = largest_of(exact)
    least = CANCELLED * max(largest[by_item:], default=0.0)
    return {index for index in range(by_item, len(exact)) if largest[index] < least or exact[index].numel() < FEW}


def _scales(tensors: Sequence[Tensor], cancelled: set[int], by_item: int) -> tuple[float, ...]:
    largest = largest_of(tensors)
    of_weights = max(largest[by_item:], default=0.0)
    values = (of_weights if index in cancelled else value for index, value in enumerate(largest))
    return tuple(value or 1.0 for value in values)


def largest_of(tensors: Sequence[Tensor]) -> list[float]:
    """Return the largest absolute value of each tensor, where something is expected."""
    return [float(_or_zero(tensor.abs(), tensor).max()) for tensor in tensors]


def _or_zero(values: Tensor, expected: Tensor) -> Tensor:
    """Return the values where something is expected, and 0 elsewhere."""
    return torch.where(expected.isnan(), 0.0, values)
