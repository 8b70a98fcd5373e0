"""Make a measured module from its name and the columns of a point, ready to be called with its inputs alone.

Every layer is made here: the suite's own, a class or function from any package, a library's model, or a part of one.
"""

import difflib
import functools
from collections.abc import Callable, Collection, Iterable, Mapping
from inspect import Parameter
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from bench.modules.core import wrapped
from bench.modules.inputs import is_function, with_input
from bench.modules.inside import inside
from bench.modules.sources import SOURCES, constructed, mended
from bench.modules.stated import ONE, SEVERAL, Shapes, shapes, takes_point
from bench.modules.wrapper import Wrapper
from impls.catalogue import ALIASES, NO_MASK, Name, name_of, with_option
from impls.contract import (
    VARIABLE,
    Unresolved,
    Unsupported,
    attribute,
    imported,
    is_ours,
    is_required,
    mask_of,
    parameters_of,
    takes_core,
)

Columns = Mapping[str, Any]

IF_OPEN: Mapping[str, str] = {
    "hidden_dim": "channels",
    "width": "channels",
    "h": "num_heads",
    "max_seq_len": "num_tokens",
}
"""Names that mean a column only if the parameter has no default: `hidden_dim` may be the width of another part too."""

NEVER = ("layer", "device", "dtype", "mode", "threads", "allocator", "timing")
"""The columns that no constructor gets."""

IDLE: Mapping[str, str] = {"num_heads": "head", "image_size": "im", "patch_size": "patch"}
"""The columns that no input of tokens uses, each with a part of the names of parameters that may mean it."""

INPUTS = ("num_kv_tokens", "context_dim")
"""The columns that a layer with `input_shapes` takes."""

DERIVED: Mapping[str, Callable[[Columns], Any]] = {
    "in_channels": lambda columns: columns["token_len"] // (columns["patch_size"] or 1) ** 2,
    **dict.fromkeys(
        ("dim_head", "head_dim", "dim_heads", "attention_head_dim"),
        lambda columns: columns["channels"] // columns["num_heads"],
    ),
}
"""Parameters whose values follow from columns; `in_channels` are the channels of an image."""

SMALL = 0.1
"""A parameter whose numbers are all the same and smaller than this hides the layers before it."""

OPEN = object()
"""The value of a parameter that no column gives."""

WEIGHT_SD, GAMMA = 0.02, 0.5
"""The standard deviation of the weights that replace zeros, and the number that replaces a small constant."""


def make(name: str, columns: Columns, required: Collection[str] = ()) -> tuple[nn.Module, Shapes]:
    """Return a module with random weights, and the shapes of its inputs at a point with these columns.

    `name` is `module:attribute` or `library:model`; `required` are columns that the module must take.
    A module that isn't one of the suite's layers is in a wrapper.
    Raises Unresolved if the module can't be made or breaks the contract, `Unsupported` if it doesn't take a required
    column or can't be called alone.
    """
    parsed = name_of(name)
    options = dict(parsed.options)
    path, given = str(options.pop("at", "")), options.pop("input", None)
    said = ""
    if parsed.module in SOURCES:
        _check_taken(name, columns, required, ())
        model = parsed.base.partition(":")[2]
        inner, item, arguments = SOURCES[parsed.module](model, given, options)
        module: nn.Module = with_input(inner, given, (item,), arguments)
    else:
        chosen = {"mask": NO_MASK} if given else columns
        module, said = _constructed(parsed, options, chosen, required)
        module = _ready(module, given, name, columns)
    if not is_ours(module):
        show_all(module)
    if path:
        outer = wrapped(module.eval(), tuple(shape[1:] for shape in _shapes(name, module, columns)))
        module = inside(outer, path, name, outer.batch if is_function(given) else columns["batch"])
    if isinstance(module, Wrapper):
        module.column_remarks = said
    return module, _shapes(name, module, columns)


def maker_of(name: str) -> Callable[..., Any] | None:
    """Return the class or function that makes a module; None for a library's model."""
    parsed = name_of(name)
    return None if parsed.module in SOURCES else maker(parsed.base)


def _constructed(
    name: Name, options: dict[str, Any], columns: Columns, required: Collection[str]
) -> tuple[nn.Module, str]:
    """Return the module that a class or function makes from options and columns, with remarks on its columns.

    Raises Unresolved, with the signature, if it fails, and if the result is no module.
    """
    make_it = maker(name.base)
    arguments = _arguments(name, make_it, columns, options)
    _check_taken(name.base, columns, required, (*arguments, *(INPUTS if takes_point(make_it, SEVERAL) else ())))
    every = {**arguments, **options}
    call = f"{name.base}({', '.join(f'{key}={value!r}' for key, value in every.items())})"
    try:
        module = constructed(call, lambda: make_it(**every))
    except Unresolved as error:
        parameters = [str(each.replace(annotation=Parameter.empty)) for each in parameters_of(make_it)]
        raise Unresolved(f"{error}; its signature is ({' '.join(', '.join(parameters).split())})") from error
    if not isinstance(module, nn.Module):
        raise Unresolved(f"layer {name.base!r} must return a torch.nn.Module, got {type(module).__name__}")
    mask = columns["mask"]
    is_masked = takes_core(attribute(module, "attend")) or (mask != NO_MASK and "mask" in arguments)
    if is_masked and mask_of(module) != mask and "mask" not in options:  # an option's mask is the layer's own
        raise Unresolved(f"layer {name.base!r} must keep its mask as self.mask = {mask!r}, got {mask_of(module)!r}")
    states = any(takes_point(owner, what) for owner in (module, make_it) for what in (SEVERAL, ONE))
    guessed = [f"{IF_OPEN[key]} sets {key}" for key in arguments if key in IF_OPEN]
    unused = [] if states else _unused(name, make_it, columns, every)
    return module, "; ".join([*guessed, *unused])


def _unused(name: Name, make_it: Callable[..., Any], columns: Columns, given: Mapping[str, Any]) -> list[str]:
    """Return a remark for each column which reaches no parameter of a constructor.

    An argument in the name with a column's value may mean the column.
    """
    taken = {column for key in given for column in (*(IDLE if key in DERIVED else ()), ALIASES.get(key, key))}
    taken |= {IF_OPEN[key] for key in given if key in IF_OPEN}
    parameters, lines = [each.name for each in parameters_of(make_it)], list[str]()
    for column, part in IDLE.items():
        value = columns.get(column)
        if column in taken or value in (None, 1, *name.options.values()):
            continue
        may_mean = [each for each in parameters if part in each or IF_OPEN.get(each) == column]
        near = [each for each in may_mean if each not in given][:1]
        hint = "".join(f"{with_option(name.text, each, str(value))} sets {each}; " for each in near)
        lines.append(f"{column} = {value} sets nothing; {hint}{name.base} takes {', '.join(parameters) or 'nothing'}")
    return lines


def maker(base: str) -> Callable[..., Any]:
    """Return the class or function at `module:attribute`; raises Unresolved."""
    what = f"layer {base!r}"
    try:
        return imported(base, what)
    except Unresolved as error:
        if not mended(str(error)):
            raise
        return imported(base, what)


def _check_taken(name: str, columns: Columns, required: Collection[str], arguments: Iterable[str]) -> None:
    taken = {column for each in arguments for column in (each, ALIASES.get(each, each))}
    if missing := [f"{column} = {columns[column]}" for column in required if column not in taken]:
        raise Unsupported(f"layer {name!r} does not take {' and '.join(missing)}, which the point asks for")


def _arguments(name: Name, make_it: Callable[..., Any], columns: Columns, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the constructor's parameters that are named like columns and not given as options."""
    parameters = {each.name: each for each in parameters_of(make_it)}
    takes_all = any(each.kind in VARIABLE for each in parameters.values()) or not parameters
    if unknown := [] if takes_all else [option for option in options if option not in parameters]:
        near = difflib.get_close_matches(unknown[0], parameters, n=1)
        hint = f"; did you mean {near[0]}?" if near else f"; expected some of {', '.join(parameters)}"
        raise Unresolved(f"layer {name.base!r} has no argument {unknown[0]!r}{hint}")
    values = {key: _value(each, columns) for key, each in parameters.items() if key not in options}
    missing = [key for key, value in values.items() if value is OPEN and is_required(parameters[key])]
    if missing:
        whole = functools.reduce(lambda of, each: with_option(of, each, "…"), missing, name.text)
        given = "no column gives" if "num_tokens" in columns else "no column gives if there is an input"
        raise Unresolved(
            f"layer {name.base!r} needs {', '.join(missing)}, which {given}; write {whole}, or name your own function "
            "that returns the module, such as mymodule:make"
        )
    return {key: value for key, value in values.items() if value is not OPEN}


def _value(parameter: Parameter, columns: Columns) -> Any:
    """Return the value of a constructor's parameter according to the columns; OPEN if they give none.

    Sizes are always passed, other columns if the point sets them or the parameter has no default. A text is passed only
    if the default is a text too, because timm's `qk_norm` is a flag; a mask is always passed as a text.
    """
    name, is_open = parameter.name, is_required(parameter)
    if name == "batch_first":
        return True
    if name in DERIVED and "channels" in columns:
        return DERIVED[name](columns)
    column = IF_OPEN[name] if is_open and name in IF_OPEN else ALIASES.get(name, name)
    value = None if column in NEVER else columns.get(column)
    is_asked = value not in (None, False, NO_MASK) or type(value) is int
    if isinstance(value, str) and column != "mask":
        return value if is_asked and isinstance(parameter.default, str) else OPEN
    if value is None:
        return None if is_open and column == "qk_scale" and column in columns else OPEN  # None is the usual scale
    return value if is_asked or is_open else OPEN


def _ready(module: nn.Module, given: Any, name: str, columns: Columns) -> nn.Module:
    """Return a module in a wrapper, with lazy weights initialised; a layer of the suite is returned as it is."""
    if is_ours(module) and given is None:
        return module
    usual = () if given else tuple(shape[1:] for shape in _stated(name, module, columns) or _tokens(columns))
    alone = with_input(module, given, usual)
    if any(map(is_lazy, alone.parameters())):  # a call gives them their sizes
        with torch.no_grad():
            constructed(name, lambda: alone.eval()(*alone.zeros()))
    return alone


def _shapes(name: str, module: nn.Module, columns: Columns) -> Shapes:
    """Return the shapes of a module's inputs, from its wrapper, its own methods, or the columns of tokens."""
    if isinstance(module, Wrapper):
        return tuple((columns["batch"], *item) for item in module.items)
    return _stated(name, module, columns) or _tokens(columns)


def _tokens(columns: Columns) -> Shapes:
    return ((columns["batch"], columns["num_tokens"], columns["token_len"]),)


def _stated(name: str, module: nn.Module, columns: Columns) -> Shapes | None:
    try:
        return shapes(module, maker_of(name), columns)
    except Unresolved as error:
        raise Unresolved(f"layer {name!r}: {error}") from None


def show_all(module: nn.Module) -> None:
    """Replace parameters that hide the layers before them, such as a head of zeros or a small layer scale.

    With these, wrong attention would still give the right output.
    """
    with torch.no_grad():
        for parameter in module.parameters():
            first = float(parameter.flatten()[0]) if parameter.numel() else 1.0
            is_factor = parameter.numel() == 1 and first  # such as a temperature
            if is_factor or abs(first) >= SMALL or not bool((parameter == first).all()):
                continue
            if first:
                parameter.fill_(GAMMA)
            else:
                parameter.normal_(std=WEIGHT_SD)
