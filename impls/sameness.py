"""Compare two results that should be the same except for rounding.

The tolerances for outputs of implementations are in `bench.measure.rounding`.
"""

import torch
from torch import Tensor

SAME = 1e-4
"""The largest difference between two equal results in float32, in units of the largest value: another number of items,
or another kernel, rounds in another order."""

SAME_OPERATORS_EPS = 16.0
"""The same for results of the same operators, in epsilons of their dtype."""


def are_same(result: Tensor, expected: Tensor, most: float = SAME) -> bool:
    """Return whether a result differs from the expected one by at most `most` times the largest expected value.

    NaN and infinity must be at the same places, and integers must be equal.
    """
    if result.shape != expected.shape or result.dtype != expected.dtype:
        return False
    if not expected.is_floating_point() or not expected.numel():
        return torch.equal(result, expected)
    largest = float(expected.nan_to_num(0.0, 0.0, 0.0).abs().max())
    return torch.allclose(result, expected, rtol=0.0, atol=most * largest, equal_nan=True)
