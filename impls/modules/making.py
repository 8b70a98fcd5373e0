"""Make a measured module from its name and the columns of a point, ready to be called with its inputs alone.

This is the one road for a layer of the suite, a class or function of anybody, a library's model, and a part of one.
"""

import copy
import difflib
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import torch
from torch import Tensor, nn

from impls.catalogue import ALIASES, NO_MASK, parse
from impls.contract import Unresolved, Unsupported, imported, mask_of
from impls.modules.core import calls_core, configs, switched, takes_core
from impls.modules.sources import SOURCES, constructed, first, mended, with_input, with_x
from impls.modules.wrapper import Given, Wrapper, X, wrapped
from impls.signatures import POSITIONAL, VARIABLE, parameters_of

Columns = Mapping[str, Any]

IF_OPEN: Mapping[str, str] = {"hidden_dim": "channels", "width": "channels", "max_seq_len": "num_tokens"}
"""Names that mean a column only if the parameter has no default: `hidden_dim` may be the width of another part too."""

SHAPES = (
    "num_tokens", "num_kv_tokens", "token_len", "context_dim", "channels", "num_heads", "num_kv_heads", "key_channels",
    "image_size", "patch_size", "window_size", "batch",
)  # fmt: skip
"""The columns that a constructor's parameters of the same name get."""

FUNCTIONS = ("mask", "qkv_bias", "qk_scale")
"""The columns that it gets if the point asks for them, or if its parameter has no default."""

INPUTS = ("num_kv_tokens", "context_dim")
"""The columns that a layer takes by its `input_shapes`."""

TEXTS = ("qk_norm", "rope", "attn_bias")
"""The columns that it gets if the point asks for them and its parameter is a text: `qk_norm` of timm is no text."""

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

OURS = __name__.replace("modules.making", "layers.")
"""The modules of the suite's own layers."""

SMALL = 0.1
"""A parameter whose numbers are all the same and smaller than this hides the layers before it."""

HIDDEN = "_hidden_by"
"""The attribute in which a module keeps the numbers that its parameters had before."""

WEIGHT_SD, GAMMA = 0.02, 0.5
"""The standard deviation of weights in place of zeros, and the number in place of a small one."""

ITEMS = 2
"""The items of the call that shows a layer's input."""

PLAIN = (Tensor, int, float, str, tuple, list, dict, type(None))
"""The types of arguments that hold no state between calls."""

NEAR = 1e-3
"""Outputs that differ by less than this share of the largest one are the same: batches may have other kernels."""


Shapes = tuple[tuple[int, ...], ...]


def make(name: str, columns: Columns, required: Collection[str] = ()) -> tuple[nn.Module, Shapes]:
    """Return a module with random weights, and the shapes of its inputs at a point with these columns.

    `name` is `module:attribute`, or a library's; `required` are columns that the module must take.
    A module that is no function of its inputs alone with one core is in a Wrapper.
    Raises Unresolved if the module can't be made or breaks the contract, `Unsupported` if it doesn't take a required
    column or can't be called alone.
    """
    parsed = parse(name)
    options = dict(parsed.options)
    path, given = str(options.pop("at", "")), options.pop("input", None)
    source, _, base = parsed.base.partition(":")
    if source in SOURCES:
        _check_taken(name, columns, required, ())
        module: nn.Module = SOURCES[source](base, given, options)
    else:
        module = _constructed(parsed.base, options, {"mask": NO_MASK} if given else columns, required)
        module = _with_input(module, given, name, columns)
    if not type(module).__module__.startswith(OURS):
        show_all(module)
    shapes = _shapes(name, module, columns)
    if path:
        module = inside(wrapped(module.eval(), tuple(shape[1:] for shape in shapes)), path, name)
        shapes = _shapes(name, module, columns)
    return module, shapes


def statement(name: str, module: nn.Module, what: str) -> Callable[[Any], Any] | None:
    """Return the function of a point with which a module states its FLOPs or input shape; None if it has none.

    It is a method of the module, or an attribute of the function that makes it.
    """
    base = parse(name).base
    makers = () if base.partition(":")[0] in SOURCES else (maker(base),)
    inner = module.inner if isinstance(module, Wrapper) else module
    for owner in (inner, *makers):
        function = getattr(owner, what, None)
        if callable(function):
            return cast(Callable[[Any], Any], function)
    return None


def _constructed(base: str, options: dict[str, Any], columns: Columns, required: Collection[str]) -> nn.Module:
    """Return what a class or function makes from options and columns; raises Unresolved if it is no module."""
    make_it = maker(base)
    arguments = _arguments(base, make_it, columns, options)
    _check_taken(base, columns, required, (*arguments, *(INPUTS if hasattr(make_it, "input_shapes") else ())))
    module = constructed(base, lambda: make_it(**{**arguments, **options}))
    if not isinstance(module, nn.Module):
        raise Unresolved(f"layer {base!r} must make a torch.nn.Module, got {type(module).__name__}")
    mask = columns["mask"]
    is_masked = takes_core(getattr(module, "attend", None)) or (mask != NO_MASK and "mask" in arguments)
    if is_masked and mask_of(module) != mask:
        raise Unresolved(f"layer {base!r} must keep its mask as self.mask = {mask!r}, got {mask_of(module)!r}")
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


def _arguments(base: str, make_it: Callable[..., Any], columns: Columns, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns that a constructor's parameters name, but for those that options give."""
    parameters = {each.name: each for each in parameters_of(make_it)}
    takes_all = any(each.kind in VARIABLE for each in parameters.values()) or not parameters
    if unknown := [] if takes_all else [option for option in options if option not in parameters]:
        near = difflib.get_close_matches(unknown[0], parameters, n=1)
        hint = f"; did you mean {near[0]}?" if near else f"; expected some of {', '.join(parameters)}"
        raise Unresolved(f"layer {base!r} has no argument {unknown[0]!r}{hint}")
    arguments: dict[str, Any] = {}
    missing: list[str] = []
    for name, parameter in parameters.items():
        is_open = parameter.default is parameter.empty and parameter.kind not in VARIABLE
        if name in options:
            continue
        value = _value(name, columns, is_open=is_open)
        if name in TEXTS and isinstance(parameter.default, str) and columns.get(name) != NO_MASK:
            value = columns.get(name)
        if value is not None or (is_open and name in FUNCTIONS):
            arguments[name] = value
        elif is_open:
            missing.append(name)
    if missing:
        remedy = ",".join(f"{each}=…" for each in missing)
        write = f"add {remedy} in its brackets" if options else f"write {base}[{remedy}]"
        raise Unresolved(f"layer {base!r} asks for {', '.join(missing)}, which no column gives; {write}")
    return arguments


def _value(name: str, columns: Columns, *, is_open: bool) -> Any:
    """Return the value of a constructor's parameter by the columns; None if they have none."""
    column = IF_OPEN[name] if is_open and name in IF_OPEN else ALIASES.get(name, name)
    if name in DERIVED and (name == BATCH_FIRST or "channels" in columns):
        return DERIVED[name](columns)
    is_asked = column in SHAPES or (
        column in FUNCTIONS and (is_open or columns.get(column) not in (None, False, NO_MASK))
    )
    return columns.get(column) if is_asked else None


def _with_input(module: nn.Module, given: Any, name: str, columns: Columns) -> nn.Module:
    """Return a module ready to be called with its inputs: itself if it takes them and has a core of its own."""
    if given is not None:
        return with_input(module, given, ())
    items = tuple(shape[1:] for shape in _shapes(name, module, columns))
    required = [each for each in parameters_of(module) if each.kind in POSITIONAL and each.default is each.empty]
    several = [X for number, each in enumerate(required) if number == 0 or each.name in OF_ATTENTION]
    args = tuple(several) if len(items) == 1 else tuple(map(Given, range(len(items))))
    is_ours = type(module).__module__.startswith(OURS)
    alone = Wrapper(module, items, args or (X,))
    own = takes_core(getattr(module, "attend", None))
    if len(args) <= len(items) and (is_ours or (own and calls_core(module.eval(), *alone.zeros()))):
        return module
    return alone


def _shapes(name: str, module: nn.Module, columns: Columns) -> Shapes:
    """Return the shapes of a module's inputs: those of its wrapper, those that it states, or that of tokens."""
    batch = columns["batch"]
    if isinstance(module, Wrapper):
        return tuple((batch, *item) for item in module.items)
    if stated := statement(name, module, "input_shapes"):
        shapes = stated(SimpleNamespace(**columns))
        if not isinstance(shapes, tuple | list) or not shapes:
            raise Unresolved(f"layer {name!r}: input_shapes(point) must return a shape for each input, got {shapes!r}")
        return tuple(_checked(name, batch, shape, "input_shapes") for shape in shapes)
    if stated := statement(name, module, "input_shape"):
        return (_checked(name, batch, stated(SimpleNamespace(**columns)), "input_shape"),)
    return ((batch, columns["num_tokens"], columns["token_len"]),)


def _checked(name: str, batch: int, shape: Any, what: str) -> tuple[int, ...]:
    sizes = tuple(shape) if isinstance(shape, tuple | list) else ()
    if not all(isinstance(size, int) and size > 0 for size in sizes) or sizes[:1] != (batch,):
        raise Unresolved(
            f"layer {name!r}: {what}(point) must return whole numbers that begin with the batch {batch}, got {shape!r}"
        )
    return sizes


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


def inside(model: Wrapper, path: str, name: str) -> Wrapper:
    """Return the module at a path of a model as a model, with the arguments that it gets in a call.

    If the model's library has a switch, they are those of each attention: a mask of `sdpa` may be none for `eager`.
    Raises Unresolved if the model doesn't call the module, `Unsupported` if the module can't be called again alone.
    """
    for config in configs(model.inner):
        config.use_cache = False  # it would grow from call to call
    # the items are all the same, and so is what is computed from them
    call = partial(_arguments_at, path, name, [torch.randn(1, *each).expand(ITEMS, *each) for each in model.items])
    args, kwargs = call(model)
    x = first(args, kwargs)
    if x is None or x.shape[0] % ITEMS:
        raise Unresolved(f"model {name!r}: the input of {path!r} must begin with the batch")
    group = x.shape[0] // ITEMS
    item = (group, *x.shape[1:]) if group > 1 else tuple(x.shape[1:])
    forms = {}
    for form in ("sdpa", "eager"):
        other = switched(model, form)
        if {config._attn_implementation for config in configs(other.inner.get_submodule(path))} == {form}:
            forms[form] = with_x(*call(other))
    module = model.inner.get_submodule(path)
    alone = Wrapper(module, (item,), *with_x(args, kwargs), batch=x.shape[0], group=group, forms=forms)
    _check_repeats(alone, f"{name!r} can't be run by itself", (*args, *kwargs.values()))
    return alone


def _arguments_at(path: str, name: str, xs: Iterable[Tensor], model: Wrapper) -> Any:
    """Return the arguments of a model's first call of the module at a path, as they were before that call."""
    try:
        module = model.inner.get_submodule(path)
    except AttributeError:
        near = difflib.get_close_matches(path, [each for each, _ in model.inner.named_modules() if each], cutoff=0.4)
        raise Unresolved(f"model {name!r} has no module {path!r}; did you mean {', '.join(near)}?") from None
    calls: list[Any] = []

    def keep(_module: nn.Module, args: Any, kwargs: Any) -> None:
        if not calls:
            calls.append(copy.deepcopy((args, kwargs)))

    hook = module.register_forward_pre_hook(keep, with_kwargs=True)
    try:
        with torch.no_grad():
            model(*xs)
    finally:
        hook.remove()
    if not calls:
        raise Unresolved(f"model {name!r} doesn't call its module {path!r}")
    return calls[0]


def _check_repeats(alone: Wrapper, what: str, values: Iterable[Any]) -> None:
    """Raise `Unsupported` if a layer returns something else for an item that comes again, without the others."""
    x = torch.randn(ITEMS, *alone.items[0])
    try:
        with torch.no_grad():
            y, again = alone(x)[:1], alone(x[:1])
        if torch.allclose(y, again, rtol=0.0, atol=NEAR * float(y.abs().max()), equal_nan=True):
            return
        reason = "called again, with one of the items, it returns something else for it"
    except Exception as error:  # what it keeps has grown, or has the size of another batch
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
    states = {type(value).__name__: value for value in values if not isinstance(value, PLAIN)}
    cause = f"it may change the {' and '.join(states)} that it gets" if states else "it may keep a state or mix items"
    raise Unsupported(f"{what}, because {cause}: {reason}")
