"""The tolerances of outputs, derived from the error of plain eager."""

import math
from collections.abc import Iterator
from itertools import chain, repeat

import torch

from bench.measure.workload import Workload
from impls.contract import Unsupported

LOGIT = 120.0
"""The target for the largest logit of a peaked input."""

EAGER_ERRORS = 8.0
"""The tolerance in units of plain eager's error in the same dtype, because implementations sum in another order."""

FLOOR_EPS = 4.0
"""The least tolerance in units of the dtype's epsilon, for shapes at which eager happens to be exact."""

GRADIENT_EPS, PEAKED_EPS = 128.0, 3840.0
"""The additional least tolerance of gradients in units of float32's epsilon, on a normal and on a peaked input; the
square root of the number of tokens if that is larger.
Flash attention's backward recomputes the weights from logits that are rounded elsewhere. With heads of 128, whose scale
is no power of 2, its largest error in 3,000 items was 90, and eager's 6 to 34; with heads of 64 it was 16; on a peaked
input 2,100.
A weight's gradient is a sum over all tokens: Inductor's sum over 8192 of them was off by 30."""

MOST_TOLERANCE = {torch.float32: 0.05, torch.bfloat16: 0.2, torch.float16: 0.2}
"""The largest tolerance. If plain eager's error is more than half of it, no implementation can be judged.

On a peaked input in a half type it is at least twice plain eager's error, because a logit is rounded by up to a half
there: the core of one head of 4096 tokens was off by 20 %. The normal input decides whether outputs can be judged."""


def tolerance(dtype: torch.dtype, most: float, floor: float, error: float) -> float:
    """Return the tolerance for outputs if plain eager's rounding error is `error`; `floor` at least, `most` at most.

    Raises `impls.Unsupported` if `error` is too large to judge outputs.
    """
    if error > most / 2:
        raise Unsupported(
            f"outputs can't be judged, because in {str(dtype).removeprefix('torch.')} the layer itself is off by "
            f"{error:.0%} of its largest value; the largest tolerance is {most:.0%}"
        )
    return min(most, max(floor, EAGER_ERRORS * error))


def least_tolerances(workload: Workload, dtype: torch.dtype, *, is_peaked: bool) -> Iterator[float]:
    """Return the least tolerance of the output, then of each gradient; gradients are rounded twice as often.

    A logit of LOGIT is rounded by LOGIT epsilons, and so is its weight. The gradient of a logit is then multiplied by
    keys and values whose product is about LOGIT.
    """
    eps = torch.finfo(torch.float32).eps
    point, floor = workload.point, FLOOR_EPS * torch.finfo(dtype).eps + is_peaked * LOGIT * eps
    units = max(
        PEAKED_EPS if is_peaked else GRADIENT_EPS, math.sqrt(point.batch * max(point.num_tokens, point.kv_tokens))
    )
    return chain([floor], repeat(2 * floor + units * eps))
