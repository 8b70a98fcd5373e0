"""Make a measured module from its name and the columns of a point, ready to be called with its inputs alone.

This is the one road for a layer of the suite, a class or function of anybody, a library's model, and a part of one.
"""

import difflib
import functools
from collections.abc import Callable, Collection, Iterable, Mapping
from inspect import Parameter
from typing import Any

import torch
from torch import nn

from bench.modules.core import Adaptable, wrapped
from bench.modules.inputs import is_function, tried, with_input
from bench.modules.inside import inside
from bench.modules.sources import SOURCES, constructed, mended
from bench.modules.stated import SEVERAL, Shapes, shapes, takes_point
from bench.modules.wrapper import Given, Wrapper, X
from impls.catalogue import ALIASES, NO_MASK, Name, name_of, with_option
from impls.contract import (
    POSITIONAL,
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

IF_OPEN: Mapping[str, str] = {"hidden_dim": "channels", "width": "channels", "max_seq_len": "num_tokens"}
"""Names that mean a column only if the parameter has no default: `hidden_dim` may be the width of another part too."""

NEVER = ("layer", "device", "dtype", "mode", "threads", "allocator", "timing")
"""The columns that no constructor gets."""

INPUTS = ("num_kv_tokens", "context_dim")
"""The columns that a layer takes by its `input_shapes`."""

NONE_IS_A_VALUE = ("qk_scale",)
"""The columns in which None is what a layer does by itself, and not that the column isn't used."""

BATCH_FIRST = "batch_first"

DERIVED: Mapping[str, Callable[[Columns], Any]] = {
    "in_channels": lambda columns: columns["token_len"] // (columns["patch_size"] or 1) ** 2,
    BATCH_FIRST: lambda _: True,
    **dict.fromkeys(
        ("dim_head", "head_dim", "dim_heads", "attention_head_dim"),
        lambda columns: columns["channels"] // columns["num_heads"],
    ),
}
"""Parameters whose values follow from columns, or from the order of x; `in_channels` are the channels of an image."""

OF_ATTENTION = ("q", "k", "v", "query", "key", "value", "queries", "keys", "values")
"""The names of parameters of a forward that all get x: queries, keys and values of self-attention."""

SMALL = 0.1
"""A parameter whose numbers are all the same and smaller than this hides the layers before it."""

HIDDEN = "_hidden_by"
"""The attribute in which a module keeps the numbers that its parameters had before."""

WEIGHT_SD, GAMMA = 0.02, 0.5
"""The standard deviation of weights in place of zeros, and the number in place of a small one."""


def make(name: str, columns: Columns, required: Collection[str] = ()) -> tuple[nn.Module, Shapes]:
    """Return a module with random weights, and the shapes of its inputs at a point with these columns.

    `name` is `module:attribute`, or a library's; `required` are columns that the module must take.
    A module that is no layer of the suite is in a wrapper.
    Raises Unresolved if the module can't be made or breaks the contract, `Unsupported` if it doesn't take a required
    column or can't be called alone.
    """
    parsed = name_of(name)
    options = dict(parsed.options)
    path, given = str(options.pop("at", "")), options.pop("input", None)
    if parsed.module in SOURCES:
        _check_taken(name, columns, required, ())
        model = parsed.base.partition(":")[2]
        module: nn.Module = SOURCES[parsed.module](model, given, options, is_outer=bool(path))
    else:
        module = _constructed(parsed, options, {"mask": NO_MASK} if given else columns, required)
        module = _ready(module, given, name, columns, is_outer=bool(path))
    if not is_ours(module):
        show_all(module)
    if path:
        items = tuple(shape[1:] for shape in _shapes(name, module, columns))
        outer = wrapped(module.eval(), items)
        module = inside(outer, path, name)
        module.batch = outer.batch
    return module, _shapes(name, module, columns)


def maker_of(name: str) -> Callable[..., Any] | None:
    """Return the class or function that makes a module; None for a library's model."""
    parsed = name_of(name)
    return None if parsed.module in SOURCES else maker(parsed.base)


def _constructed(name: Name, options: dict[str, Any], columns: Columns, required: Collection[str]) -> nn.Module:
    """Return what a class or function makes from options and columns; raises Unresolved if it is no module."""
    make_it = maker(name.base)
    arguments = _arguments(name, make_it, columns, options)
    _check_taken(name.base, columns, required, (*arguments, *(INPUTS if takes_point(make_it, SEVERAL) else ())))
    every = {**arguments, **options}
    call = f"{name.base}({', '.join(f'{key}={value!r}' for key, value in every.items())})"
    module = constructed(call, lambda: make_it(**every))
    if not isinstance(module, nn.Module):
        raise Unresolved(f"layer {name.base!r} must make a torch.nn.Module, got {type(module).__name__}")
    mask = columns["mask"]
    is_masked = takes_core(attribute(module, "attend")) or (mask != NO_MASK and "mask" in arguments)
    if is_masked and mask_of(module) != mask and "mask" not in options:  # there it is the layer's own
        raise Unresolved(f"layer {name.base!r} must keep its mask as self.mask = {mask!r}, got {mask_of(module)!r}")
    return module


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
    """Return the columns that a constructor's parameters name, but for those that options give."""
    parameters = {each.name: each for each in parameters_of(make_it)}
    takes_all = any(each.kind in VARIABLE for each in parameters.values()) or not parameters
    if unknown := [] if takes_all else [option for option in options if option not in parameters]:
        near = difflib.get_close_matches(unknown[0], parameters, n=1)
        hint = f"; did you mean {near[0]}?" if near else f"; expected some of {', '.join(parameters)}"
        raise Unresolved(f"layer {name.base!r} has no argument {unknown[0]!r}{hint}")
    arguments: dict[str, Any] = {}
    missing: list[str] = []
    for key, parameter in parameters.items():
        is_open = is_required(parameter)
        if key in options:
            continue
        value = _value(parameter, columns, is_open=is_open)
        if value is not None or (is_open and key in NONE_IS_A_VALUE):
            arguments[key] = value
        elif is_open:
            missing.append(key)
    if missing:
        whole = functools.reduce(lambda of, each: with_option(of, each, "…"), missing, name.text)
        given = "no column gives" if "num_tokens" in columns else "no column gives beside an input"
        raise Unresolved(
            f"layer {name.base!r} asks for {', '.join(missing)}, which {given}; write {whole}, or name a function of "
            "yours that returns the module, as mymodule:make"
        )
    return arguments


def _value(parameter: Parameter, columns: Columns, *, is_open: bool) -> Any:
    """Return the value of a constructor's parameter by the columns; None if they have none.

    Sizes are handed over, other columns if the point asks for them or if the parameter has no default. A text such as
    `qk_norm`, which is no text in timm, is handed over only in place of another text; a mask always is one.
    """
    name = parameter.name
    if name in DERIVED and (name == BATCH_FIRST or "channels" in columns):
        return DERIVED[name](columns)
    column = IF_OPEN[name] if is_open and name in IF_OPEN else ALIASES.get(name, name)
    value = None if column in NEVER else columns.get(column)
    if type(value) is int:
        return value
    is_asked = value not in (None, False, NO_MASK)
    if isinstance(value, str) and column != "mask":
        return value if is_asked and isinstance(parameter.default, str) else None
    return value if is_asked or is_open else None


def _ready(module: nn.Module, given: Any, name: str, columns: Columns, *, is_outer: bool) -> nn.Module:
    """Return a module of anybody as one of its inputs, and a layer of the suite itself.

    Of one that `is_outer`, of which a part is measured, the batch is of no account.
    """
    required = [each for each in parameters_of(module) if each.kind in POSITIONAL and is_required(each)]
    several = tuple(X for number, each in enumerate(required) if number == 0 or each.name in OF_ATTENTION) or (X,)
    if given is not None:
        alone = with_input(module, given, arguments=(several, {}), is_outer=is_outer)
        return alone if is_function(given) else tried(alone, may_take_ids=True)
    if is_ours(module):
        return module
    stated = _stated(name, module, columns)
    items = tuple(shape[1:] for shape in stated or _tokens(columns))
    alone = Adaptable(module, items, several if len(items) == 1 else tuple(map(Given, range(len(items)))))
    return alone if stated else tried(alone)


def _shapes(name: str, module: nn.Module, columns: Columns) -> Shapes:
    """Return the shapes of a module's inputs: those of its wrapper, those that it states, or that of tokens."""
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
    """Give numbers to parameters that hide what is computed before them, such as a head of zeros or a layer scale.

    With them any attention would give the right output. `hide` takes it back.
    """
    every = ((owner, name, each) for owner in module.modules() for name, each in owner.named_parameters(recurse=False))
    with torch.no_grad():
        for owner, name, parameter in every:
            first = float(parameter.flatten()[0]) if parameter.numel() else 1.0
            is_factor = parameter.numel() == 1 and first  # such as a temperature
            if is_factor or abs(first) >= SMALL or not bool((parameter == first).all()):
                continue
            vars(owner).setdefault(HIDDEN, {})[name] = first
            if first:
                parameter.fill_(GAMMA)
            else:
                parameter.normal_(std=WEIGHT_SD)


def hide(module: nn.Module, names: Iterable[str]) -> None:
    """Give parameters of these names the numbers that they had before `show_all`."""
    with torch.no_grad():
        for owner, _, own in (name.rpartition(".") for name in names):
            of = module.get_submodule(owner)
            if own in vars(of).get(HIDDEN, {}):
                of.get_parameter(own).fill_(vars(of)[HIDDEN][own])
