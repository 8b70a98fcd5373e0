"""What a layer states of itself, and what only looks like it."""

from types import SimpleNamespace
from typing import Any

import pytest
from torch import nn

from bench.modules.stated import failure, flops, shapes, takes_point

COLUMNS = {"batch": 2, "num_tokens": 7}

POINT = SimpleNamespace(**COLUMNS)


class Declared(nn.Module):
    """States what the contract has; the point may have another name."""

    def input_shape(self, point: Any) -> tuple[int, ...]:
        """Return `[B, N]`."""
        return point.batch, point.num_tokens

    def flops(self, of: Any) -> Any:
        """Return the operations."""
        return 10 * of.batch


class OfTokens(nn.Module):
    """Has methods of the same names that take numbers, as windowed attention has."""

    def flops(self, number: Any) -> int:
        """Return a number for whatever comes."""
        return 0 * (number is None) + 5

    def input_shape(self, number: Any) -> int:
        """Return what can't be computed of a point."""
        return int(number * 3)


class OfNothing(nn.Module):
    """Has a property that raises, and a method without arguments."""

    @property
    def input_shape(self) -> Any:
        """Raise what isn't an AttributeError."""
        raise RuntimeError("not built yet")

    def flops(self) -> int:
        """Return a number."""
        return 7


class Failing(nn.Module):
    """States the contract, and fails."""

    def input_shape(self, point: Any) -> Any:
        """Read a column that no point has."""
        return point.colour

    def flops(self, point: Any) -> Any:
        """Divide by zero."""
        return point.batch // 0


def test_a_method_that_takes_a_point_counts() -> None:
    """Its parameter is called so, or it reads a column of the point."""
    assert flops(Declared(), None, POINT) == 20
    assert shapes(Declared(), None, COLUMNS) == ((2, 7),)


@pytest.mark.parametrize("module", [OfTokens(), OfNothing(), nn.Linear(1, 1), Failing()])
def test_what_only_has_the_name_states_nothing(module: nn.Module) -> None:
    """Neither does what fails: nothing is raised."""
    assert flops(module, None, POINT) is None
    assert shapes(module, None, COLUMNS) is None


def test_what_a_declared_method_raises_can_be_said() -> None:
    """In one line; what others raise is their own business."""
    assert "input_shape(point) raises AttributeError" in failure(Failing(), None, POINT)
    assert failure(OfTokens(), None, POINT) == failure(OfNothing(), None, POINT) == ""


def test_a_function_that_makes_a_module_states_by_its_attributes() -> None:
    """Whatever their parameter is called; those of a class are its instances'."""

    def make() -> nn.Module:
        return nn.Linear(1, 1)

    make.input_shape = lambda _: (2, 1)  # type: ignore[attr-defined]  # functions take attributes
    assert shapes(make(), make, COLUMNS) == ((2, 1),)
    assert takes_point(Declared, "input_shape")
    assert not takes_point(OfNothing, "flops")
