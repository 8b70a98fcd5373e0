"""Whether two results are the same but for rounding: the tolerances of all who ask that stand here.

How far the outputs of an implementation may be off is another question, which `bench.measure.rounding` answers.
"""

import torch
from torch import Tensor

SAME = 1e-4
"""How far two results that are the same may be apart in float32, in units of the largest value: another number of
items, or another kernel, rounds in another order."""

SAME_OPERATORS_EPS = 16.0
"""The same for results of the same operators, in epsilons of their dtype."""


def are_same(result: Tensor, expected: Tensor, most: float = SAME) -> bool:
    """Return whether a result differs by `most` of the largest expected value at most, and is not finite where that is.

    Whole numbers must be equal.
    """
    if result.shape != expected.shape or result.dtype != expected.dtype:
        return False
    if not expected.is_floating_point() or not expected.numel():
        return torch.equal(result, expected)
    largest = float(expected.nan_to_num(0.0, 0.0, 0.0).abs().max())
    return torch.allclose(result, expected, rtol=0.0, atol=most * largest, equal_nan=True)
