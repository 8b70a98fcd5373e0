"""Rounding that is computed: what a type does to each operator's numbers, and numbers that are changed at random."""

import pytest
import torch
from torch import Tensor, nn

from bench.measure.rounding import random_rounding, rounding_to


def steps(x: Tensor) -> Tensor:
    """Compute with operators that make a tensor, change one in place, and change a part of one."""
    y = x * 0.1 + 1000
    y.sub_(1000).mul_(7)
    y[1:] += 0.3
    return y.transpose(0, 1).exp()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_operators_in_float64_round_as_a_type_does(dtype: torch.dtype) -> None:
    """The results are that type's own, which differ from those of float64 by far more than from each other."""
    x = torch.randn(3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).to(dtype).double()
    with rounding_to(dtype, torch.float64):
        rounded = steps(x)
    exact, own = steps(x), steps(x.to(dtype)).double()
    assert (rounded - own).abs().max() <= (exact - own).abs().max() / 50


def test_gradients_are_rounded_too() -> None:
    """As those of a layer in that type are."""
    layer, x = nn.Linear(4, 4).double(), torch.randn(2, 4, dtype=torch.float64)
    with rounding_to(torch.bfloat16, torch.float64):
        (rounded,) = torch.autograd.grad(layer(x).square().sum(), layer.weight)
    (exact,) = torch.autograd.grad(layer(x).square().sum(), layer.weight)
    assert torch.equal(rounded, rounded.bfloat16().double())
    assert not torch.equal(exact, exact.bfloat16().double())


def test_numbers_change_at_random_by_a_unit_and_whole_ones_do_not() -> None:
    """The generator from which a layer draws stays as it is, and tensors of other types keep their numbers."""
    x, state = torch.rand(1000) + 1, torch.get_rng_state()
    with random_rounding(torch.float32):
        y, whole, wide = x * 1.0, torch.arange(1000.0) * 1.0, x.double() * 1.0
    off = (y / x - 1).abs()
    assert 0 < off.max() <= 2 * torch.finfo(torch.float32).eps
    assert torch.equal(whole, torch.arange(1000.0))
    assert torch.equal(wide, x.double())
    assert torch.equal(state, torch.get_rng_state())
