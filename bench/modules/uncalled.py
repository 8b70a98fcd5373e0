"""Why a layer of anybody can't be called with its inputs, and what to write."""

import re
from typing import Any

from torch import Tensor, nn

from bench.modules.making import OBJECTS
from bench.modules.wrapper import inner_of
from impls.catalogue import name_of
from impls.contract import parameters_of

OF_SHAPES = re.compile(
    r"\b(sizes?|shapes?|dims?|dim(ension)?s?|\w*dimensional|\dD|channels|features|elements|(num_)?tokens|divisible|"
    r"values to unpack|out of range|in range)\b",
    re.IGNORECASE,
)
"""Words by which errors of torch, Python and models speak of the shapes of inputs."""


def uncalled(layer: nn.Module, point: Any, xs: tuple[Tensor, ...], error: Exception, said: str) -> str:
    """Return why the layer of a point can't be called with inputs, and what to write.

    `said` are the words for the error.
    """
    inner = inner_of(layer)
    names = ", ".join(each.name for each in parameters_of(inner))
    called = f"layer {point.layer!r}: {type(inner).__name__}({names}) was called with "
    given = f"{called}{', '.join(str(list(x.shape)) for x in xs)}: {said}"
    return "; ".join(filter(None, (given, _remedy(point.layer, xs[0], error))))


def _remedy(name: str, x: Tensor, error: Exception) -> str:
    """Return what to write for a layer that can't be called with x, empty if that is not the cause.

    A shape that was given stays in what is said.
    """
    of_all = "all arguments as [input=mymodule:function]"
    if re.search(r"required (positional|keyword-only) argument", str(error)):
        return f"write {of_all}"
    if "'NoneType'" in str(error):  # a configuration that is left out
        return OBJECTS
    if not OF_SHAPES.search(str(error)):
        return ""
    given = name_of(name).input
    place = f" in place of [input={given}]" if given else ""
    return f"write another shape as [input={x.shape[0]}x…]{place}, or {of_all}"
