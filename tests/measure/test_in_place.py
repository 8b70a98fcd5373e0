"""A layer that changes its input in place is found, with the line that does it."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from bench.measure import in_place
from impls import Unsupported


class Of(nn.Module):
    """A layer that is a function."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        """Return what the function does."""
        return self.function(x)


def _by_numpy(x: Tensor) -> Tensor:
    x.numpy()[0] = 7.0
    return x + 1


@pytest.mark.parametrize("change", [lambda x: x.mul_(2.0), lambda x: x.view(-1).add_(1.0), lambda x: x[0].zero_()])
def test_a_change_of_the_input_is_refused_with_its_line(change: Callable[[Tensor], Tensor]) -> None:
    """Also that of a view; the input itself is left as it was."""
    x = torch.ones(2, 3)
    with pytest.raises(Unsupported, match=r"in place at test_in_place\.py:[0-9]+;"):
        in_place.check(Of(change), (x,))
    assert x.eq(1).all()


def test_a_change_that_no_operator_makes_has_no_line() -> None:
    """NumPy writes into the same memory."""
    with pytest.raises(Unsupported, match="in place;"):
        in_place.check(Of(_by_numpy), (torch.ones(2, 3),))


def test_a_change_of_a_tensor_of_its_own_is_none() -> None:
    """So is one that fails, which is said elsewhere."""
    in_place.check(Of(lambda x: x.clone().mul_(2.0)), (torch.ones(2, 3),))
    in_place.check(Of(lambda x: x @ x), (torch.ones(2, 3),))
