"""The shapes of inputs and the operations of a call, as a layer's own methods state them for a point.

A method counts only if its one required parameter is `point`, because other modules use the same names for other
things.
"""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from torch import nn

from impls.contract import POSITIONAL, Unresolved, attribute, is_required, parameters_of

Shapes = tuple[tuple[int, ...], ...]
"""The shapes of the inputs of a module, the batch first."""

POINT = "point"
"""The parameter of such a method; underscores around it don't matter."""

SEVERAL, ONE = "input_shapes", "input_shape"
"""The methods that state the shapes of several inputs, or the shape of the only one."""


def shapes(module: nn.Module, maker: Any, columns: Mapping[str, Any]) -> Shapes | None:
    """Return the shapes that a module, or the function that makes it, states for its inputs; None if it states none.

    Raises Unresolved for anything but shapes of positive integers with the batch first.
    """
    point = SimpleNamespace(**columns)
    if (stated := _value(module, maker, SEVERAL, point)) is not None:
        if not isinstance(stated, tuple | list) or not stated:
            raise Unresolved(f"{SEVERAL}({POINT}) must return a shape for each input, got {stated!r}")
        return tuple(_checked(shape, columns["batch"], SEVERAL) for shape in stated)
    stated = _value(module, maker, ONE, point)
    return None if stated is None else (_checked(stated, columns["batch"], ONE),)


def _checked(shape: Any, batch: int, what: str) -> tuple[int, ...]:
    sizes = tuple(shape) if isinstance(shape, tuple | list) else ()
    if not all(isinstance(size, int) and size > 0 for size in sizes) or sizes[:1] != (batch,):
        raise Unresolved(f"{what}({POINT}) must return whole numbers that begin with the batch {batch}, got {shape!r}")
    return sizes


def flops(module: nn.Module, maker: Any, point: Any) -> int | None:
    """Return the operations of a call as a module states them; None if it states no number."""
    stated = _value(module, maker, "flops", point)
    return int(stated) if isinstance(stated, int | float) and stated > 0 else None


def takes_point(owner: Any, what: str) -> bool:
    """Return whether a module, or its maker, has a method of this name that takes a point."""
    function = attribute(owner, what)
    parameters = parameters_of(function) if callable(function) else []
    required = (each for each in parameters if is_required(each) and each.kind in POSITIONAL)
    return [each.name.strip("_") for each in required if each.name != "self"] == [POINT]


def _value(module: nn.Module, maker: Any, what: str, point: Any) -> Any:
    """Return the result of a method of the module, else of the function that makes it; None if neither has it.

    Raises Unresolved with the method's error.
    """
    owners = (each for each in (module, maker) if not isinstance(each, type) and takes_point(each, what))
    owner = next(owners, None)
    try:
        return None if owner is None else getattr(owner, what)(point)
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise Unresolved(f"its {what}({POINT}) raises {reason}") from error
