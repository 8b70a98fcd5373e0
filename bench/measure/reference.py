"""The reference: the expected output of a layer with plain eager as its core, in float64 for drawn items.

Items and rows are drawn with the system's randomness in the judge's process, so no other process can know them.

For a long sequence the core never holds all scores at once. Without gradients it computes only randomly drawn rows, and
the others are NaN. Operations after the core work on each token separately, so the layer's output is NaN in the same
rows. With gradients all rows are computed block by block, and again in the backward pass.
"""

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from bench.measure import failure, finite, user_code
from bench.measure.cores import at_random_rows, in_blocks, largest_logit
from bench.measure.devices import device
from bench.measure.layer import TRAINED, Tensors, cast_to
from bench.measure.outputs import gradients
from bench.measure.rounding import EAGER_ERRORS, LOGIT, MOST_TOLERANCE, least_tolerances, tolerance
from bench.measure.workload import Workload, without_padding
from bench.modules.wrapper import NOTHING, copied
from bench.plan.device import CPU
from bench.plan.layers import scores
from bench.sampling.inputs import LONG_SCORES, PART_ROWS, PEAKED, ROWS, TIMED, InputValues, TimedCall
from impls.catalogue import name_of
from impls.contract import Unsupported, with_attend
from impls.sdpa_calls import SDPAReplaced, mask_cast, names_of_sdpa

LEAST_LOGIT = 100.0
"""The least acceptable largest logit of a peaked input: a softmax that doesn't subtract the maximum overflows there in
float32 and bfloat16, and in float16 from 12. The target is LOGIT."""

PEAK, MOST_PEAK, PEAKINGS = 4.0, 32.0, 4
"""The first factor of a peaked input, the largest one, and the number of factors that are tried."""

CANCELLED, FEW = 1e-4, 16
"""A weight's gradient below CANCELLED times the largest gradient of all weights has cancelled out, as for the keys'
bias. A gradient of fewer than FEW elements may cancel by chance, as for `gamma`. What remains is rounding, so errors of
these gradients are relative to the largest gradient."""

WHOLE_BATCH_SCORES = 4_000_000
"""The most attention scores of a batch that is compared as a whole with float64, which is slow on the CPU.
Larger batches are computed in parts of about this many scores."""

EXACT_BYTES, ROOM = 8, 8.0
"""The bytes of a float64, and how many times the float64 tensors must fit into a GPU's free memory, with copies."""

ITEMS = 2
"""The items of a larger batch, or of any model's batch, that are compared with float64: a random one and the last one,
whose blocks may not be full. Attention doesn't mix items, and timed calls are compared in other items."""


class Target(NamedTuple):
    """The expected tensor, the scale to which errors are relative, and the tolerance."""

    tensor: Tensor
    scale: float
    tolerance: float


@dataclass(frozen=True)
class Check:
    """The expected output, and gradients if the mode has any, for the input of this name and some `items` of the batch.

    Gradients of weights are sums over these items, so they can be compared only if `items` is the whole batch.
    """

    name: str
    items: list[int]
    targets: tuple[Target, ...]


def expect(workload: Workload, name: str, values: InputValues) -> Check:
    """Return the expected results for the input of this name and these values, computed in float64.

    They cover all items of a small batch, and a few of a larger one. Tolerances are multiples of plain eager's own
    error for these items.
    Raises `impls.Unsupported` if that error is too large to judge others, if the output is not finite, or if the layer
    can't be computed in float64.
    """
    dtype, batch = workload.values.dtype, [*range(workload.point.batch)]
    is_rough = name == PEAKED and dtype.itemsize == 2  # bytes
    # on a peaked input a gradient in a half type is mostly rounding: plain eager's was off by 60 %
    direction = workload.direction if workload.with_gradients and not is_rough else None
    xs, items, layer = workload.inputs(values), _items(workload), _plain(workload, workload.layer)
    in_rows = None if direction is not None else _in_rows(workload, xs)
    if in_rows is not None:
        items, layer = batch, in_rows
    xs, direction = _select(xs, direction, items)
    own, exact = _computed(workload, layer, xs, direction), _exact(workload, layer, xs, direction)
    if in_rows is None:
        finite.check(workload, own, name)
        finite.check(workload, exact, f"{name}, in float64")
    exact = _real(workload, xs, exact)
    scales = _scales(exact, 1 if direction is None else workload.by_item)
    errors = [*map(relative_error, own, exact, scales)]
    most = max(MOST_TOLERANCE[dtype], 2 * errors[0]) if is_rough else MOST_TOLERANCE[dtype]
    floors = least_tolerances(workload, dtype, is_peaked=name == PEAKED)
    tolerances = [tolerance(dtype, most, *each) for each in zip(floors, errors, strict=False)]
    return Check(name, items, tuple(map(Target, exact, scales, tolerances)))


def of_call(workload: Workload, check: Check, call: TimedCall) -> list[Target]:
    """Return the targets for the whole output of a timed call, with its gradients."""
    return _timed(workload, check, workload.of_call(call), workload.direction_of(call.key))


def of_items(workload: Workload, check: Check, calls: Sequence[TimedCall]) -> Iterator[list[Target]]:
    """Yield the targets for each of these items of timed calls, computed as one batch."""
    items = [[each[call.item] for each in workload.of_call(call)] for call in calls]
    xs = tuple(map(torch.stack, zip(*items, strict=True)))
    direction = None
    if workload.point.mode in TRAINED:
        direction = torch.stack([workload.direction_of(call.key)[call.item] for call in calls])
    targets = _timed(workload, check, xs, direction)
    for number in range(len(calls)):
        yield [each._replace(tensor=each.tensor[[number]]) for each in targets[: workload.by_item]]


def _timed(workload: Workload, check: Check, xs: Tensors, direction: Tensor | None) -> list[Target]:
    """Return the targets for timed calls, with tolerances a little wider than a check's.

    They are computed in float32 at least. Without gradients only some rows are computed, and the others are NaN.
    """
    own = workload.values.dtype
    dtype = torch.promote_types(own, torch.float32)
    layer = workload.layer if own == dtype else copied(workload.layer).to(dtype)
    chosen = tuple(cast_to(x, None, dtype) for x in xs), None if direction is None else direction.to(dtype)
    tensors = None if direction is not None else _some_rows(workload, layer, chosen[0])
    if tensors is None:
        tensors = _computed(workload, _plain(workload, layer), *chosen)
        finite.check(workload, tensors, TIMED)
    real = [tensor.cpu() for tensor in _real(workload, xs, tensors)]
    scales = _scales(real, 1 if direction is None else workload.by_item)
    widths = [min(MOST_TOLERANCE[own], each.tolerance * (1 + 1 / EAGER_ERRORS)) for each in check.targets]
    return [Target(*each) for each in zip(real, scales, widths, strict=False)]


def _real(workload: Workload, xs: Tensors, tensors: Tensors) -> Tensors:
    """Return an output and gradients, with NaN where the output is padding, because nothing is expected there."""
    if not workload.point.is_padded:
        return tensors
    output, *others = tensors
    return without_padding(output, xs[-1].to(output.device), math.nan), *others


def _in_rows(workload: Workload, xs: Tensors) -> Any:
    """Return the layer for a long sequence with a core that computes random rows.

    None if the sequence is short, or if operations after the core mix tokens.
    """
    if not _is_long(workload):
        return None
    layer: Any = with_attend(at_random_rows(ROWS))(workload.layer)
    (output,) = _computed(workload, layer, *_select(xs, None, [0]))
    return None if output.isnan().all() else layer


def _some_rows(workload: Workload, layer: Any, xs: Tensors) -> Tensors | None:
    """Return the output in random rows, NaN elsewhere.

    None if the core isn't plain, if operations after it mix tokens, or if all these rows are padding in some item.
    """
    if not workload.has_plain_core:
        return None
    at_rows: Any = with_attend(at_random_rows(PART_ROWS))(layer)
    (output,) = _real(workload, xs, _computed(workload, at_rows, xs, None))
    return None if output.isnan().flatten(1).all(1).any() else (output,)


def peak(workload: Workload) -> float:
    """Return the factor that makes a normal input peaked, with a largest logit of about LOGIT.

    It is PEAK if the core isn't plain, because its logits are unknown; 1 if the output would not be finite; MOST_PEAK
    at most.
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
    """Return the largest deviation where `expected` isn't NaN, in units of `scale`."""
    return float(difference(result, expected).abs().max()) / scale


def difference(result: Tensor, expected: Tensor) -> Tensor:
    """Return the deviations where `expected` isn't NaN, and 0 elsewhere."""
    wide = torch.promote_types(expected.dtype, torch.float32)
    return _or_zero(result.to(expected.device, wide) - expected.to(wide), expected)


def _plain(workload: Workload, layer: nn.Module) -> Any:
    """Return a layer with plain eager as its core; for a long sequence, with a core that never holds all scores."""
    return with_attend(in_blocks)(layer) if _is_long(workload) else layer


def _exact(workload: Workload, layer: nn.Module, xs: Tensors, direction: Tensor | None) -> Tensors:
    """Return the result of a call in float64, in the host's memory; raises `impls.Unsupported` if the call fails.

    Memory that the layer takes itself, as by torch.zeros, is float64 too, unless the call fails for it.
    """
    place, items, usual = _exact_place(workload), [*range(len(xs[0]))], torch.get_default_dtype()
    failed: Exception | None = None
    for default in (torch.float64, usual):
        try:
            wide = copied(layer).to(place, torch.float64)
            torch.set_default_dtype(default)
            exact = _computed(workload, wide, *_select(xs, direction, items, place, torch.float64))
            return tuple(each.cpu() for each in exact)
        except Exception as error:
            if isinstance(error, Unsupported) or failure.is_out_of_memory(error):
                raise
            failed = error
        finally:
            torch.set_default_dtype(usual)
    assert failed is not None
    raise Unsupported(
        f"outputs can't be judged, because the layer fails in float64: {user_code.said(failed)}"
    ) from failed


def _exact_place(workload: Workload) -> str:
    """Return the device for float64: the GPU if ROOM times the tensors fit into its free memory, else the CPU."""
    on, point = device(workload.point.device), workload.point
    of_item = scores(point)
    items = max(1, min(point.batch, WHOLE_BATCH_SCORES // of_item))
    if _is_long(workload):  # its scores are never held together
        of_item = max(LONG_SCORES, ROWS * point.num_heads * point.keys)
    tensors = [*workload.inputs(), workload.direction, *workload.layer.parameters()]
    held_bytes = EXACT_BYTES * (sum(each.numel() for each in tensors) + items * of_item)
    return on.place if (on.free_bytes() or 0) >= ROOM * held_bytes else CPU.name


def _is_long(workload: Workload) -> bool:
    return scores(workload.point) > LONG_SCORES and workload.has_plain_core


def _computed(workload: Workload, layer: nn.Module, xs: Tensors, direction: Tensor | None) -> Tensors:
    """Return the layer's output, and its gradients if there is a direction; compute a few items at a time."""
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


def _items(workload: Workload) -> list[int]:
    """Return the items that are compared with float64."""
    point = workload.point
    is_small = point.batch * scores(point) <= WHOLE_BATCH_SCORES and not name_of(point.layer).shapes_itself
    if is_small or point.batch <= ITEMS:
        return [*range(point.batch)]
    return [*random.SystemRandom().sample(range(point.batch - 1), ITEMS - 1), point.batch - 1]


def _scales(tensors: Sequence[Tensor], by_item: int) -> list[float]:
    """Return the largest value of each tensor; for a cancelled gradient, the largest one of all weights' gradients."""
    largest = [float(_or_zero(tensor.abs(), tensor).max()) for tensor in tensors]
    of_weights = max(largest[by_item:], default=0.0)
    for index, tensor in enumerate(tensors[by_item:], by_item):
        if largest[index] < CANCELLED * of_weights or tensor.numel() < FEW:
            largest[index] = of_weights
    return [value or 1.0 for value in largest]


def _or_zero(values: Tensor, expected: Tensor) -> Tensor:
    """Return the values where `expected` isn't NaN, and 0 elsewhere."""
    return torch.where(expected.isnan(), 0.0, values)
