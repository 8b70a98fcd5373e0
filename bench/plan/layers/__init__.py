"""The facts about layers that need no torch: their columns, their work and their sizes.

Each file of this folder with a LAYER declares a layer with a name. A user's own layer, `module:attribute`, is unknown
until a worker has made it: it has no FLOPs, and its sizes are those of tokens.
"""

import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from typing import Any

from bench.plan.case import COLUMNS, OF_LAYERS, Point, of_role
from bench.plan.columns import Role, written
from bench.plan.errors import WrongRequest
from bench.plan.layers.layer import CHOICES, Layer, Values, all_tokens
from impls import catalogue
from impls.catalogue import FIXED, PADDING

ITEM_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}

BACKWARD_PRODUCTS = 2
"""A matrix product's backward pass is two products of its size."""

PASSES = {"train": 1 + BACKWARD_PRODUCTS, "backward": BACKWARD_PRODUCTS}
"""The products of a call for each of the forward pass, by the mode."""


def _declared_layers() -> dict[str, Layer]:
    modules = [importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
    return {module.LAYER.name: module.LAYER for module in modules if hasattr(module, "LAYER")}


LAYERS: Mapping[str, Layer] = _declared_layers()


class Own(Layer):
    """A layer of the user's own."""

    takes = CHOICES

    def __init__(self, name: str) -> None:
        self.fixed = {} if shapes_itself(name) else _in_name(name)


class Shaped(Own):
    """One that says its own input."""

    needs = ()

    def derive(self, values: Values) -> Values:
        """Return 1 for what a call shows."""
        return _by_input(values["layer"])


def is_layer(name: str) -> bool:
    """Return whether a name may be a layer; `module:attribute` is checked later, at its import."""
    module, _, attribute = name.partition(":")
    return bool(module and attribute) if is_own(name) else name in LAYERS


def is_own(name: str) -> bool:
    """Return whether a layer is a user's own, `module:attribute`."""
    return ":" in name


def module_of(name: str) -> str:
    """Return the `module:attribute` of a layer."""
    return name if is_own(name) else f"{catalogue.__package__}.{LAYERS[name].module}"


def shapes_itself(name: str) -> bool:
    """Return whether a layer's name says its shapes; raises WrongRequest if it can't be read."""
    try:
        return catalogue.shapes_itself(name)
    except ValueError as error:
        raise WrongRequest(str(error)) from None


def fixed(name: str) -> Mapping[str, Any]:
    """Return the columns that have only one value in a layer, with the value; arguments in its name give some."""
    return _layer(name).fixed


def _in_name(name: str) -> dict[str, Any]:
    """Return the columns that arguments in a layer's name give: `dim=64,heads=4` gives both widths and the heads.

    They are those of x alone: another column, such as `window_size`, is of the suite's own layers, and the argument
    may mean something else. One that is no value of its column, such as `(4, 4)`, gives none.
    """
    given = catalogue.parse(name).options
    columns = {catalogue.ALIASES.get(key, key): value for key, value in given.items()}
    fixed = {key: columns[key] for key in of_role(Role.X) if key in columns and COLUMNS[key].is_possible(columns[key])}
    widths = [fixed[each] for each in catalogue.WIDTHS if each in fixed]
    return {**dict.fromkeys(catalogue.WIDTHS[: 2 * len(widths)], *widths[:1]), **fixed}


def _by_input(name: str) -> dict[str, Any]:
    """Return the columns of a layer that says its own input, none for another.

    Those that a call shows are 1 until then. Its batch is that of the sizes in its name, 0 for a function of inputs.
    """
    if not (is_own(name) and shapes_itself(name)):
        return {}
    given = str(catalogue.parse(name).options.get("input", ""))
    sizes = given.split("x")
    has_sizes = len(sizes) > 1 and all(size.isdecimal() for size in sizes)
    batch = {"batch": int(sizes[0])} if has_sizes else {"batch": 0} if is_own(given) else {}
    return {**dict.fromkeys(OF_LAYERS, 1), **batch}


def complete(values: Values) -> Values:
    """Return the values of a point, completed by those that its layer fixes or derives.

    A column that the layer doesn't use is None.
    Raises WrongRequest for a column that is missing, that the layer doesn't use, or that contradicts it.
    """
    layer = _layer(values["layer"])
    _check(values, layer)
    if not is_own(values["layer"]) and values.get("num_kv_heads") == values["num_heads"]:
        values["num_kv_heads"] = None  # the same function
    for column, value in layer.derive(values).items():
        values.setdefault(column, value)
    return {"qkv_bias": False, "qk_scale": None, **values, **{each: COLUMNS[each].absent for each in layer.without}}


def _check(values: Values, layer: Layer) -> None:
    """Give the values those that the layer fixes; raises WrongRequest as `complete` does."""
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
    if not is_own(name) and values["channels"] % values["num_heads"]:  # a user's own may have another rule
        raise WrongRequest(f"channels = {values['channels']} must be divisible by num_heads = {values['num_heads']}")
    if is_own(name) and (lengths := values.get("lengths", FIXED)) != FIXED:
        ours = " or ".join(each for each, layer in LAYERS.items() if "lengths" in layer.takes)
        raise WrongRequest(f"lengths = {lengths} needs the layer {ours}, got {name}")
    if (mask := values.get("mask", layer.masks[0])) not in layer.masks:
        raise WrongRequest(f"mask = {mask} must be {' or '.join(layer.masks)} in the layer {name}")


def usable(name: str, usual: Mapping[str, Any]) -> Values:
    """Return the usual values without those that a layer fixes, derives or doesn't use."""
    layer = _layer(name)
    derived = ("num_tokens", "token_len") if "image_size" in layer.needs else ()
    none = (*layer.without, *layer.fixed, *derived, *_by_input(name))
    return {column: value for column, value in usual.items() if column not in none}


def given_by_all(layers: Iterable[str]) -> frozenset[str]:
    """Return the columns that all of these layers give by themselves."""
    each = [{*_layer(name).fixed, *_by_input(name)} for name in layers]
    return frozenset(set.intersection(*each)) if each else frozenset()


def of_core(core: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the columns that a core of a module shows: its tokens, its heads and their widths together.

    `core` has `shapes`, those of queries, keys and values, and `heads` if the shapes don't show them. Arguments in the
    module's name say more: a core may have its heads among the items.
    """
    *lead, tokens, width = core["shapes"][0]
    heads = core.get("heads") or (lead[-1] if len(lead) > 1 else 1)
    channels = width if core.get("heads") and len(lead) == 1 else heads * width
    shown = {"num_tokens": tokens, "token_len": channels, "channels": channels, "num_heads": heads}
    return {column: _in_name(name).get(column, value) for column, value in shown.items()}


def flops(point: Point) -> int | None:
    """Return the floating-point operations of the layer's matrix products, 2·M·N·K each; None if they are unknown.

    In the mode `train` they include the gradients of both factors, as `torch.utils.flop_counter` counts them; in the
    mode `backward` they are these alone.
    """
    if is_own(point.layer):
        return None
    return 2 * _layer(point.layer).multiplications(point) * PASSES.get(point.mode, 1)


def output_shape(point: Point) -> tuple[int, ...]:
    """Return the shape of the output of a layer of the suite, with padding."""
    return _layer(point.layer).output(point)


def scores(point: Point) -> int:
    """Return the attention scores of an item; those of a layer of the user's own are those of its largest core."""
    return point.num_heads * point.num_tokens * point.keys


def inputs_bytes(point: Point) -> int:
    """Return the bytes of the inputs of a call."""
    return _layer(point.layer).inputs(point) * ITEM_BYTES[point.dtype]


def least_bytes(point: Point) -> int:
    """Return the bytes of inputs, weights and output, each moved once; the weights of a user's own layer count as 0."""
    weights = 0 if is_own(point.layer) else _layer(point.layer).weights(point)
    output = all_tokens(point) * point.channels
    padding = point.batch * point.kv_tokens if point.mask == PADDING else 0  # booleans of a byte each
    return inputs_bytes(point) + (weights + output) * ITEM_BYTES[point.dtype] + padding


def _layer(name: str) -> Layer:
    if not is_own(name):
        return LAYERS[name]
    return Shaped(name) if shapes_itself(name) else Own(name)
