"""What a layer states of itself about a point: the shapes of its inputs, and the operations of a call.

A name alone says nothing: modules of anybody have methods of these names that mean something else. So a method counts
if it takes one argument, and calls this `point` or reads a column of the point. What it raises ends nothing.
"""

from collections.abc import Callable, Iterator
from typing import Any

from torch import nn

from impls.contract import POSITIONAL, is_required, parameters_of
from impls.modules.wrapper import Wrapper

POINT = "point"
"""The parameter of a method that states something, perhaps with an underscore before it."""

SHAPES = ("input_shapes", "input_shape")
"""The methods that state the shapes of the inputs, or that of one."""


class Asked:
    """A point that notes whether one of its columns was read."""

    def __init__(self, point: Any) -> None:
        self._point, self._is_read = point, False

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._point, name)
        self._is_read = True
        return value


def value(module: nn.Module, maker: Any, what: str, point: Any) -> Any:
    """Return what a module, or the function that makes it, states about a point; None if it states nothing."""
    return next((value for value in _values(module, maker, what, point) if not isinstance(value, Exception)), None)


def failure(module: nn.Module, maker: Any, point: Any) -> str:
    """Return what a method that states the shapes of a module's inputs raises, in one line; empty if none does."""
    for what in SHAPES:
        for error in _values(module, maker, what, point):
            if isinstance(error, Exception):
                return f"its {what}({POINT}) raises {' '.join(f'{type(error).__name__}: {error}'.split())}"
    return ""


def flops(module: nn.Module, maker: Any, point: Any) -> int | None:
    """Return the operations of a call as a module states them; None if it states no number."""
    stated = value(module, maker, "flops", point)
    return int(stated) if isinstance(stated, int | float) and stated > 0 else None


def takes_point(owner: Any, what: str) -> bool:
    """Return whether a module, or what makes one, has a method of this name that asks for one argument."""
    return len(_asked(owner, what)) == 1


def _values(module: nn.Module, maker: Any, what: str, point: Any) -> Iterator[Any]:
    """Yield what each method that counts returns or raises."""
    for owner in (module.inner if isinstance(module, Wrapper) else module, maker):
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
