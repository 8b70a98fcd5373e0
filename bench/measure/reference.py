"""What the reference expects of an output: a layer with plain eager as its core, in float64 as far as time allows.

Items and rows are drawn by the system, in the process of the judge: no other process can know them.

For a long sequence the core never holds all scores at once. Without gradients only some rows of the output are
computed, those of queries drawn at random; the others are NaN. The operations after a core work on each token by
itself, so that the layer's output is NaN there too. With gradients all rows are computed, block by block, and computed
again in the backward pass.
"""

import math
import random
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from bench.measure import failure, finite
from bench.measure.cores import at_random_rows, in_blocks, largest_logit
from bench.measure.devices import device
from bench.measure.outputs import gradients
from bench.measure.rounding import (
    EAGER_ERRORS,
    EXPLAINED,
    LOGIT,
    MOST_TOLERANCE,
    least_tolerances,
    random_rounding,
    rounding_to,
    tolerance,
)
from bench.measure.workload import TRAINED, Tensors, Workload, cast_to, without_padding
from bench.modules.wrapper import NOTHING, copied
from bench.plan.device import CPU
from bench.plan.errors import NOT_FINITE
from bench.plan.layers import scores
from bench.sampling.inputs import LONG_SCORES, NORMAL, PART_ROWS, PEAKED, ROWS, TIMED, InputValues, TimedCall
from impls.catalogue import shapes_itself
from impls.contract import Unsupported, with_attend
from impls.sdpa_calls import SDPAReplaced, mask_cast, names_of_sdpa

LEAST_LOGIT = 100.0
"""The largest logit of a peaked input is LEAST_LOGIT at least, where a softmax without its maximum overflows in float32
and bfloat16; LOGIT is aimed at. Float16 overflows at 12."""

PEAK, MOST_PEAK, PEAKINGS = 4.0, 32.0, 4
"""The factor of a peaked input if logits don't grow with the input, the largest, and how many factors are tried."""

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
    """What is expected of one tensor; errors are relative to `scale`."""

    tensor: Tensor
    scale: float
    tolerance: float


@dataclass(frozen=True)
class Expected:
    """What is expected for some items of the batch: of the output, and of the gradients if the mode has any.

    Those are the gradients of x and of every weight, as far as they can be compared.
    """

    items: list[int]
    targets: tuple[Target, ...]


@dataclass(frozen=True)
class Check:
    """The expected results for the input of this name; `remark` says what is odd about them, empty if nothing is."""

    name: str
    expected: tuple[Expected, ...]
    remark: str = ""


class Call(NamedTuple):
    """A call of a layer whose output, and gradients if there is a direction, are expected."""

    workload: Workload
    layer: Any
    xs: Tensors
    direction: Tensor | None


class Known(NamedTuple):
    """What a layer computes in its own dtype and in a wider one, with the largest values of the latter.

    `errors` are those of the first in units of `scales`, `floors` the least tolerances, `remark` is as in a Check.
    """

    exact: Tensors
    dtype: torch.dtype
    scales: tuple[float, ...]
    errors: list[float]
    floors: list[float]
    remark: str


def expect(workload: Workload, name: str, values: InputValues) -> Check:
    """Return the expected results for the input of this name and these values.

    For a small batch they are computed in float64 on the CPU. For a larger one they are float64 results for a few
    random items, and the results of plain eager in the same dtype for all items. A layer that can't be float64 is
    computed in float32.
    Tolerances are multiples of plain eager's own error, which is computed for the items that float64 has.
    Raises `impls.Unsupported` if that error is too large to judge others by it, or if it is not finite.
    """
    xs, batch, dtype = workload.inputs(values), range(workload.point.batch), workload.values.dtype
    is_rough = name == PEAKED and _is_half(workload)
    # on a peaked input a gradient in a half type shows rounding: plain eager's was seen to be off by 60 %
    direction = workload.direction if workload.with_gradients and not is_rough else None
    chosen, layer = _items(workload, name), _plain(workload, workload.layer)
    if _is_long(workload) and direction is None:
        at_rows: Any = with_attend(at_random_rows(ROWS))(workload.layer)
        (output,) = _computed(workload, at_rows, *_select(xs, None, [0]))
        if not output.isnan().all():  # else something after the core mixes tokens
            chosen, layer = [*batch], at_rows
    by_item = 1 if direction is None else workload.by_item
    known = _known(Call(workload, layer, *_select(xs, direction, chosen)), chosen, name, by_item)
    most = max(MOST_TOLERANCE[dtype], 2 * known.errors[0]) if is_rough else MOST_TOLERANCE[dtype]
    tolerances = [tolerance(dtype, most, *each) for each in zip(known.floors, known.errors, strict=True)]
    targets = tuple(map(Target, known.exact, known.scales, tolerances))
    if len(chosen) == len(batch):
        return Check(name, (Expected(chosen, targets),), known.remark)
    whole = [tensor.cpu() for tensor in _computed(workload, layer, xs, direction)]
    finite.check(workload, layer, xs, whole, batch, name)
    whole = [*_real(workload, xs, whole)]
    scales = _scales(whole, _cancelled(known.exact, by_item), by_item)
    wider = [min(most, sum(pair)) for pair in zip(tolerances, known.errors, strict=True)]
    of_all = Expected([*batch], tuple(map(Target, whole, scales, wider)))
    return Check(name, (Expected(chosen, targets[:by_item]), of_all), known.remark)


def _known(call: Call, items: Sequence[int], name: str, by_item: int) -> Known:
    """Return what a call computes for these items, in the layer's own dtype and in float64 if that can be.

    Raises `impls.Unsupported` if it isn't finite, where it is computed at all.
    """
    workload, own = call.workload, call.workload.values.dtype
    plain = _computed(*call)
    if not _is_long(workload) or call.direction is not None:
        finite.check(workload, call.layer, call.xs, plain, items, name)
    dtype, exact, remark = _widest(call, plain)
    exact = _real(workload, call.xs, exact)
    scales = _scales(exact, _cancelled(exact, by_item), by_item)
    errors = _errors(plain, exact, scales)
    floors = [*islice(least_tolerances(workload, own, is_peaked=name == PEAKED), len(exact))]
    if own == dtype:  # then what rounding does is not seen by comparing the two
        errors = _errors(_exact(call, dtype, random_rounding(dtype)), exact, scales)
        floors = [EAGER_ERRORS * each for each in floors]
    known = Known(exact, dtype, scales, errors, floors, remark)
    if own == dtype or (name == PEAKED and _is_half(workload)):
        return known
    return known._replace(remark="; ".join(filter(None, [remark, _disagreement(call, known)])))


def _widest(call: Call, plain: Tensors) -> tuple[torch.dtype, Tensors, str]:
    """Return what a call computes in float64; in float32 if that fails or is not finite, with the reason."""
    try:
        exact = _exact(call)
        reason = _not_finite(call, exact, plain)
        if not reason:
            return torch.float64, exact, ""
    except Exception as error:
        if isinstance(error, Unsupported) or failure.is_out_of_memory(error):
            raise
        first = next(iter(str(error).splitlines()), "")
        reason = f"it can't be computed in float64: {type(error).__name__}{': ' * bool(first)}{first}"
    return torch.float32, _exact(call, torch.float32), f"the layer is compared in float32, because {reason}"


def _not_finite(call: Call, exact: Tensors, plain: Tensors) -> str:
    """Return that what a call computes in float64 is not finite where it is in the layer's own dtype, if so."""
    pairs = zip(call.workload.names, exact, plain, strict=False)
    found = ((name, each) for name, each, own in pairs if bool((own.cpu().isfinite() & ~each.isfinite()).any()))
    name, tensor = next(found, ("", None))
    if tensor is None:
        return ""
    cause = ""
    if name == call.workload.names[0]:
        _, layer, xs, _ = _cast(call, torch.float64)
        cause = f"; {finite.cause_of(layer, xs, tensor)}"
    return f"in float64 its own {name} {NOT_FINITE}: {finite.counted(tensor)}{cause}"


def _errors(plain: Tensors, exact: Tensors, scales: Sequence[float]) -> list[float]:
    errors = map(relative_error, plain, exact, scales)
    return [error if math.isfinite(error) else 0.0 for error in errors]


def _disagreement(call: Call, known: Known) -> str:
    """Return that the layer disagrees in its own dtype and a wider one by more than rounding, empty if it doesn't.

    Raises `impls.Unsupported` with that if nothing can be judged by it.
    """
    own, names = call.workload.values.dtype, call.workload.names
    usual = (min(EAGER_ERRORS * floor, MOST_TOLERANCE[own] / 2) for floor in known.floors)
    if all(error <= each for error, each in zip(known.errors, usual, strict=True)):
        return ""
    rounded = _errors(_exact(call, known.dtype, rounding_to(own, known.dtype)), known.exact, known.scales)
    ratios = [
        error / max(floor / EAGER_ERRORS, of_rounding)
        for error, floor, of_rounding in zip(known.errors, known.floors, rounded, strict=True)
    ]
    worst = max(range(len(ratios)), key=ratios.__getitem__)
    if ratios[worst] <= EXPLAINED:
        return ""
    words = (
        f"in {_name(own)} and in {_name(known.dtype)} the layer's own {names[worst]} differs by "
        f"{known.errors[worst]:.1g} of its largest value, and rounding explains {rounded[worst]:.1g}: "
        "one of the two is wrong"
    )
    if known.errors[worst] > MOST_TOLERANCE[own] / 2:
        raise Unsupported(f"outputs can't be judged: {words}")
    return words


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def of_call(workload: Workload, check: Check, call: TimedCall) -> list[Target]:
    """Return what is expected of the whole output of a timed call, with its gradients."""
    return _timed(workload, check, workload.of_call(call), workload.direction_of(call.key))


def of_items(workload: Workload, check: Check, calls: Sequence[TimedCall]) -> list[Target]:
    """Return what is expected of items of timed calls, one after the other."""
    items = [[each[call.item] for each in workload.of_call(call)] for call in calls]
    xs = tuple(map(torch.stack, zip(*items, strict=True)))
    if workload.point.mode not in TRAINED:
        return _timed(workload, check, xs, None)
    direction = torch.stack([workload.direction_of(call.key)[call.item] for call in calls])
    return _timed(workload, check, xs, direction)[: workload.by_item]


def _timed(workload: Workload, check: Check, xs: Tensors, direction: Tensor | None) -> list[Target]:
    """Return what the layer computes in timed calls, with the scales of a check and a little more than its tolerances.

    It is computed in float32 at least. Without gradients some rows of the output are computed, and the others are NaN.
    """
    own = workload.values.dtype
    dtype = torch.promote_types(own, torch.float32)
    layer = workload.layer if own == dtype else copied(workload.layer).to(dtype)
    chosen = tuple(cast_to(x, None, dtype) for x in xs), None if direction is None else direction.to(dtype)
    tensors = None if direction is not None else _some_rows(workload, layer, chosen[0])
    if tensors is None:
        tensors = _computed(workload, _plain(workload, layer), *chosen)
        finite.check(workload, layer, chosen[0], tensors, range(len(xs[0])), TIMED)
    return [
        Target(tensor.cpu(), target.scale, min(MOST_TOLERANCE[own], target.tolerance * (1 + 1 / EAGER_ERRORS)))
        for tensor, target in zip(_real(workload, xs, tensors), check.expected[-1].targets, strict=False)
    ]


def _real(workload: Workload, xs: Tensors, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return an output for inputs, and gradients, with NaN where items are padding: nothing is expected there."""
    if not workload.point.is_padded:
        return tuple(tensors)
    output, *others = tensors
    return without_padding(output, xs[-1].to(output.device), math.nan), *others


def _some_rows(workload: Workload, layer: Any, xs: Tensors) -> tuple[Tensor, ...] | None:
    """Return the output in random rows, NaN elsewhere.

    None if the core isn't plain or is followed by a mix, or if all of these rows are padding in some item.
    """
    if not workload.has_plain_core:
        return None
    at_rows: Any = with_attend(at_random_rows(PART_ROWS))(layer)
    (output,) = _real(workload, xs, _computed(workload, at_rows, xs, None))
    return None if output.isnan().flatten(1).all(1).any() else (output,)


def peak(workload: Workload) -> float:
    """Return the factor that makes a peaked input of a normal one: its largest logit is about LOGIT.

    It is PEAK if the core isn't plain, and so can't be seen, and MOST_PEAK at most; 1 if the output isn't finite then.
    """
    factor = PEAK
    for _ in range(PEAKINGS if workload.has_plain_core else 0):
        largest = largest_logit(workload.layer, tuple(each[:1] for each in workload.inputs(InputValues(0, factor))))
        if LEAST_LOGIT <= largest <= 2 * LOGIT or math.isinf(largest):
            break
        factor = min(MOST_PEAK, factor * math.sqrt(LOGIT / max(largest, 1.0)))
    of_one = _select(workload.inputs(InputValues(0, factor)), None, [0])
    return factor if all(map(finite.is_finite, _computed(workload, _plain(workload, workload.layer), *of_one))) else 1.0


def relative_error(result: Tensor, expected: Tensor, scale: float) -> float:
    """Return the largest deviation where something is expected, in units of a scale."""
    return float(difference(result, expected).abs().max()) / scale


def difference(result: Tensor, expected: Tensor) -> Tensor:
    """Return the deviations where something is expected, and 0 elsewhere."""
    wide = torch.promote_types(expected.dtype, torch.float32)
    return _or_zero(result.to(expected.device, wide) - expected.to(wide), expected)


def _plain(workload: Workload, layer: nn.Module) -> Any:
    """Return a layer with plain eager as its core; for a long sequence, with one that never holds all scores."""
    return with_attend(in_blocks)(layer) if _is_long(workload) else layer


def _exact(
    call: Call, dtype: torch.dtype = torch.float64, inside: AbstractContextManager[object] = NOTHING
) -> tuple[Tensor, ...]:
    """Return what a call computes in another dtype and in a context, in the host's memory."""
    of = _cast(call, dtype)
    with inside:
        exact = _computed(*of)
    return tuple(each.cpu() for each in exact)


def _cast(call: Call, dtype: torch.dtype) -> Call:
    """Return a call in another dtype; in float64 where there is room for it, else where it is."""
    workload, layer, xs, direction = call
    place = _exact_place(workload) if dtype == torch.float64 else str(workload.values.device)
    reference = copied(layer).to(place, dtype)
    return Call(workload, reference, *_select(xs, direction, [*range(len(xs[0]))], place, dtype))


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
    size = max(1, min(workload.point.batch, WHOLE_BATCH_SCORES // scores(workload.point)))
    directions = [None] * len(xs[0]) if direction is None else direction.split(size)
    is_cast = any(x.is_floating_point() and x.dtype != workload.values.dtype for x in xs)
    with SDPAReplaced(mask_cast, names_of_sdpa(layer)) if is_cast else NOTHING:
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
