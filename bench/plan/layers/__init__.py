"""The facts about layers that need no torch: their columns, their work and their sizes.

Each file in this folder with a LAYER declares a layer of the suite. Everything else that is measured is a Module.
"""

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache

from bench.plan.case import COLUMNS, Point
from bench.plan.columns import written
from bench.plan.errors import WrongRequest
from bench.plan.layers.layer import Layer, Values, all_tokens
from bench.plan.layers.module import Module
from impls.catalogue import name_of

ITEM_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


def _declared_layers() -> dict[str, Layer]:
    modules = [importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
    return {module.LAYER.name: module.LAYER for module in modules if hasattr(module, "LAYER")}


LAYERS: Mapping[str, Layer] = _declared_layers()
"""The layers of the suite by name."""


@cache
def layer_of(layer: str) -> Layer:
    """Return the layer with a name, from the suite or as a Module; raises ValueError like `name_of`."""
    return LAYERS.get(layer) or Module(name_of(layer))


def complete(values: Values, layer: Layer) -> Values:
    """Return the values of a point, completed with the ones that its layer fixes or derives.

    A column that the layer doesn't use is None.
    Raises WrongRequest for a column that is missing, that the layer doesn't use, or that contradicts it.
    """
    _check(values, layer)
    if not layer.is_module and values.get("num_kv_heads") == values["num_heads"]:
        values["num_kv_heads"] = None  # the same function
    for column, value in layer.derive(values).items():
        values.setdefault(column, value)
    return {"qkv_bias": False, "qk_scale": None, **values, **{each: COLUMNS[each].absent for each in layer.without}}


def _check(values: Values, layer: Layer) -> None:
    """Add the values that the layer fixes; raises WrongRequest like `complete`."""
    name = values["layer"]
    for column in layer.needs:
        if column not in values and column not in layer.fixed:
            raise WrongRequest(f"{column} is missing; the layer {name} needs it")
    for column in layer.without:
        if values.get(column) not in (None, COLUMNS[column].absent):
            raise WrongRequest(f"{column} = {values[column]} is not used by the layer {name}; leave it out")
    for column, value in layer.fixed.items():
        if values.setdefault(column, value) != value:
            raise WrongRequest(f"{column} = {written(values[column])} must be {written(value)} in the layer {name}")
    if not layer.is_module and values["channels"] % values["num_heads"]:  # a module may have another rule
        raise WrongRequest(f"channels = {values['channels']} must be divisible by num_heads = {values['num_heads']}")


def flops(point: Point) -> int | None:
    """Return the floating-point operations of a call in its mode; None if they are unknown."""
    return layer_of(point.layer).flops(point)


def scores(point: Point) -> int:
    """Return the number of attention scores of an item; for a module, of its largest core."""
    return point.num_heads * point.num_tokens * point.keys


def least_bytes(point: Point) -> int:
    """Return the bytes of inputs, weights and output, each moved once; the weights of a module count as 0."""
    of, output = layer_of(point.layer), all_tokens(point) * point.channels
    return (of.inputs(point) + of.weights(point) + output) * ITEM_BYTES[point.dtype]
