"""What the reference expects of an output: a layer with plain eager as its core, in float64 as far as time allows.

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
from torch.utils.checkpoint import checkpoint

from bench.measure.outputs import BY_ITEM, gradients
from bench.measure.workload import Workload
from bench.sampling.inputs import LONG_SCORES, NORMAL, PART_ROWS, PEAKED, ROWS, Values
from impls.catalogue import is_model
from impls.contract import Attend, with_attend

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
    """The expected results for the input of this name."""

    name: str
    expected: tuple[Expected, ...]


def values(workload: Workload, name: str, shift: Values = 0) -> Tensor:
    """Return the values of the input of this name; `shift` says where other values come from."""
    if isinstance(shift, tuple):
        return workload.timed.input(*shift)
    return workload.x * PEAK if name == PEAKED else workload.input(shift)


def expect(workload: Workload, name: str, shift: Values = 0) -> Check:
    """Return the expected results for the input of this name; `shift` says where other values come from.

    For a small batch they are computed in float64 on the CPU. For a larger one they are float64 results for a few
    random items, and the results of plain eager in the same dtype for all items.
    Tolerances are multiples of plain eager's own error, which is computed for the items that float64 has.
    """
    x, batch = values(workload, name, shift), range(workload.point.batch)
    direction = workload.direction if workload.with_gradients else None
    chosen, layer = _items(workload, name, shift), _plain(workload)
    if _is_long(workload) and direction is None:
        at_rows = with_attend(at_random_rows(f"{workload.seed} {name} {shift}"))(layer)
        (output,) = _exact(workload, at_rows, x, None, [0])
        if not output.isnan().all():  # else something after the core mixes tokens
            chosen, layer = [*batch], at_rows
    exact = _exact(workload, layer, x, direction, chosen)
    plain = _computed(workload, layer, *_select(x, direction, chosen))
    cancelled = _cancelled(exact)
    scales = _scales(exact, cancelled)
    plain_errors = map(relative_error, plain, exact, scales)
    errors = [error if math.isfinite(error) else 0.0 for error in plain_errors]
    tolerances = [max(floor, MARGIN * error) for floor, error in zip(_floors(workload, x.dtype), errors, strict=False)]
    targets = tuple(map(Target, exact, scales, tolerances))
    if len(chosen) == len(batch):
        return Check(name, (Expected(chosen, targets),))
    whole = [tensor.cpu() for tensor in _computed(workload, layer, x, direction)]
    wider = [tolerance + error for tolerance, error in zip(tolerances, errors, strict=True)]
    of_all = Expected([*batch], tuple(map(Target, whole, _scales(whole, cancelled), wider)))
    return Check(name, (Expected(chosen, targets[:BY_ITEM]), of_all))


def of_parts(workload: Workload, x: Tensor, direction: Tensor | None, seed: str) -> tuple[Tensor, ...]:
    """Return the output and the gradient of x that are expected for items, NaN in rows that are not computed."""
    if direction is None and _has_core(workload):
        at_rows: Any = with_attend(at_random_rows(seed, PART_ROWS))(workload.layer)
        (output,) = _computed(workload, at_rows, x, None)
        if not output.isnan().flatten(1).all(1).any():  # else something after the core mixes tokens
            return (output,)
    return _computed(workload, _plain(workload), x, direction)


def relative_error(result: Tensor, expected: Tensor, scale: float) -> float:
    """Return the largest deviation where something is expected, in units of a scale."""
    return float(deviations(result, expected).max()) / scale


def deviations(result: Tensor, expected: Tensor) -> Tensor:
    """Return the absolute deviations where something is expected, and 0 elsewhere."""
    wide = torch.promote_types(expected.dtype, torch.float32)
    return _or_zero((result.to(expected.device, wide) - expected.to(wide)).abs(), expected)


def _plain(workload: Workload) -> Any:
    """Return the layer with plain eager as its core; for a long sequence, with one that never holds all scores."""
    return with_attend(in_blocks)(workload.layer) if _is_long(workload) else workload.layer


def _exact(
    workload: Workload, layer: Any, x: Tensor, direction: Tensor | None, chosen: list[int]
) -> tuple[Tensor, ...]:
    """Return the layer's output and gradients in float64 for some items."""
    reference = copy.deepcopy(layer).to("cpu", torch.float64)
    return _computed(workload, reference, *_select(x, direction, chosen, "cpu", torch.float64))


def _is_long(workload: Workload) -> bool:
    point = workload.point
    return point.num_heads * point.num_tokens**2 > LONG_SCORES and _has_core(workload)


def _has_core(workload: Workload) -> bool:
    """Return whether the layer has a core that can be replaced; a whole model calls torch's function, with masks."""
    return getattr(workload.layer, "attend", None) is not None


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
        return output.detach(), *map(_wide, gradients(output, x, layer, direction))


def _wide(tensor: Tensor) -> Tensor:
    """Return a tensor in float32 at least, so that sums lose no precision."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def _floors(workload: Workload, dtype: torch.dtype) -> Iterator[float]:
    """Return the least tolerance of the output, then of each gradient; gradients are rounded twice as often."""
    point, floor = workload.point, FLOOR_EPS * torch.finfo(dtype).eps
    units = max(GRADIENT_EPS, math.sqrt(point.batch * point.num_tokens))
    return chain([floor], repeat(2 * floor + units * torch.finfo(torch.float32).eps))


def _select(
    x: Tensor, direction: Tensor | None, items: list[int], device: str | None = None, dtype: torch.dtype | None = None
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


def _largest(tensors: Sequence[Tensor]) -> list[float]:
    return [float(_or_zero(tensor.abs(), tensor).max()) for tensor in tensors]


def _or_zero(values: Tensor, expected: Tensor) -> Tensor:
    """Return the values where something is expected, and 0 elsewhere."""
    return torch.where(expected.isnan(), 0.0, values)


def at_random_rows(seed: str, number: int = ROWS) -> Attend:
    """Return a core that computes so many rows of each head, drawn by the seed."""

    def attend(q: Tensor, k: Tensor, v: Tensor, scale: float, *, mask: str | None = None) -> Tensor:
        """Return the rows of `softmax((q·scale) kᵀ) v`, NaN elsewhere; shapes are those of `impls.attend.eager`."""
        tokens = q.shape[-2]
        rows = sorted(random.Random(seed).sample(range(tokens), min(number, tokens)))  # noqa: S311 - no secret
        o = torch.full((*q.shape[:-1], v.shape[-1]), float("nan"), dtype=q.dtype, device=q.device)
        o[..., rows, :] = _rows(q[..., rows, :], k, v, scale, mask, rows)
        return o

    return attend


def in_blocks(q: Tensor, k: Tensor, v: Tensor, scale: float, *, mask: str | None = None) -> Tensor:
    """Return `softmax((q·scale) kᵀ) v`, some queries at a time; shapes are those of `impls.attend.eager`."""
    tokens = q.shape[-2]
    size = max(1, LONG_SCORES // (q.shape[:-1].numel() // tokens * k.shape[-2]))
    blocks = [range(first, min(first + size, tokens)) for first in range(0, tokens, size)]
    parts = [
        checkpoint(_rows, q[..., rows.start : rows.stop, :], k, v, scale, mask, rows, use_reentrant=False)
        for rows in blocks
    ]
    return torch.cat(parts, dim=-2)


def _rows(q: Tensor, k: Tensor, v: Tensor, scale: float, mask: str | None, rows: Sequence[int]) -> Tensor:
    """Return the output of queries that stand in these rows."""
    scores = (q * scale) @ k.transpose(-2, -1)
    if mask is not None:
        key = torch.arange(k.shape[-2], device=q.device)
        scores = scores.masked_fill(key > torch.tensor(rows, device=q.device)[:, None], float("-inf"))
    return scores.softmax(dim=-1) @ v
