"""The odd honest kernels of the drill compute attention."""

import pytest
import torch

from impls.attend.eager import attend
from tests import honest


@pytest.mark.parametrize("name", honest.ALL)
def test_an_odd_kernel_is_right(name: str) -> None:
    """It returns what the plain formula does, and so do the gradients of one that trains."""
    trains = name in honest.IN_TRAINING
    inputs = q, k, v = [torch.randn(2, 4, 70, 8).requires_grad_(trains) for _ in range(3)]
    results = []
    for kernel in (getattr(honest, name), attend):
        o = kernel(q, k, v, 0.3)
        results.append([o, *torch.autograd.grad(o.sum(), inputs)] if trains else [o])
    torch.testing.assert_close(*results)
