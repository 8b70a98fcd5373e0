"""What a layer states of itself about a point: the shapes of its inputs, and the operations of a call.

A name alone says nothing: modules of anybody have methods of these names that mean something else. So a method counts
if it takes one argument, and calls this `point` or reads a column of the point. What it raises ends nothing.
"""

from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

from torch import nn

from impls.contract import POSITIONAL, Unresolved, is_required, parameters_of

Shapes = tuple[tuple[int, ...], ...]
"""The shapes of the inputs of a module, the batch first."""

POINT = "point"
"""The parameter of a method that states something, perhaps with an underscore before it."""

SEVERAL, ONE = "input_shapes", "input_shape"
"""The methods that state the shapes of the inputs, or that of one."""


class Asked:
    """A point that notes whether one of its columns was read."""

    def __init__(self, point: Any) -> None:
        self._point, self._is_read = point, False

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._point, name)
        self._is_read = True
        return value


def shapes(module: nn.Module, maker: Any, columns: Mapping[str, Any]) -> Shapes | None:
    """Return the shapes that a module, or the function that makes it, states for its inputs; None if it states none.

    Raises Unresolved if what it states is no shape.
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


def failure(module: nn.Module, maker: Any, point: Any) -> str:
    """Return what a method that states the shapes of a module's inputs raises, in one line; empty if none does."""
    for what in (SEVERAL, ONE):
        for error in _values(module, maker, what, point):
            if isinstance(error, Exception):
                return f"its {what}({POINT}) raises {' '.join(f'{type(error).__name__}: {error}'.split())}"
    return ""


def flops(module: nn.Module, maker: Any, point: Any) -> int | None:
    """Return the operations of a call as a module states them; None if it states no number."""
    stated = _value(module, maker, "flops", point)
    return int(stated) if isinstance(stated, int | float) and stated > 0 else None


def takes_point(owner: Any, what: str) -> bool:
    """Return whether a module, or what makes one, has a method of this name that asks for one argument."""
    return len(_asked(owner, what)) == 1


def _value(module: nn.Module, maker: Any, what: str, point: Any) -> Any:
    """Return what the first method that counts states about a point; None if none states anything."""
    return next((value for value in _values(module, maker, what, point) if not isinstance(value, Exception)), None)


def _values(module: nn.Module, maker: Any, what: str, point: Any) -> Iterator[Any]:
    """Yield what each method that counts returns or raises."""
    for owner in (module, maker):
        asked = _asked(owner, what)
        if isinstance(owner, type) or len(asked) != 1:
            continue
        is_declared = asked == [POINT] or not isinstance(owner, nn.Module)
        given = point if is_declared else Asked(point)
        try:
            result = getattr(owner, what)(given)
        except Exception as error:
            result = error
        if is_declared or given._is_read:
            yield result


def _asked(owner: Any, what: str) -> list[str]:
    """Return the names of the arguments that a method asks for, beside the module itself; none if it is no method."""
    try:
        function: Callable[..., Any] | None = getattr(owner, what, None)
        parameters = parameters_of(function) if callable(function) else []
    except Exception:  # a property of anybody may raise anything
        return []
    required = (each for each in parameters if is_required(each) and each.kind in POSITIONAL)
    return [each.name.strip("_") for each in required if each.name != "self"]
