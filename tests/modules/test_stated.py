"""A layer's statements about itself, and lookalikes."""

from types import SimpleNamespace
from typing import Any

import pytest
from torch import nn

from bench.modules.stated import flops, shapes

COLUMNS = {"batch": 2, "num_tokens": 7}

POINT = SimpleNamespace(**COLUMNS)


class OfTokens(nn.Module):
    """Has methods of the same names that mean something else, as windowed attention has, and one that can't be read."""

    @property
    def input_shape(self) -> Any:
        """Raise what isn't an AttributeError."""
        raise RuntimeError("not built yet")

    def flops(self, number: Any) -> int:
        """Return a number for any arguments."""
        return 0 * (number is None) + 5


@pytest.mark.parametrize("module", [OfTokens(), nn.Linear(1, 1)])
def test_what_only_has_the_name_states_nothing(module: nn.Module) -> None:
    """It is the module's own business, and is not called."""
    assert flops(module, None, POINT) is None
    assert shapes(module, None, COLUMNS) is None
