"""The arguments of a module's call: x and any others that its forward takes.

- With `[input=module:function]` they are all that the function returns. x replaces the first floating-point tensor, or
  the output of the first embedding for token ids.
- Otherwise x is the only input, also as queries, keys and values. Its shape is `[input=8x3x224x224]`, else the one that
  the module or its library states, else `[B, N, C]` for tokens.

A part, `[at=path]`, gets the arguments of its call in the whole model (`bench.modules.inside`).
`bench.measure.function` checks before measuring that items don't affect each other.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from bench.modules.core import Adaptable
from bench.modules.wrapper import Given, Wrapper, X, changed, check_plain
from impls.catalogue import name_of, with_option
from impls.contract import POSITIONAL, Unresolved, Unsupported, imported, is_required, parameters_of

OF_ATTENTION = ("q", "k", "v", "query", "key", "value", "queries", "keys", "values")
"""The parameters of a forward that all get x: queries, keys and values of self-attention."""

Items = tuple[tuple[int, ...], ...]
"""The shapes of one item of each input."""

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def by_function(name: str) -> str:
    """Return the advice to name a function of inputs: the name to write, and what the function must return."""
    return (
        f"{with_option(name, 'input', 'mymodule:inputs')}, where inputs() returns all arguments of a call, "
        "batch first, as a tensor, a tuple, or a dictionary by name"
    )


def if_another(name: str) -> str:
    """Return the advice for a module, or a part, that takes another input than it got."""
    if path := name_of(name).options.get("at"):
        return f"if {path} takes another input, wrap it in your own module, and name what returns that: mymodule:make"
    return f"if it takes another input, write {by_function(name)}; for another shape of x write [input=8x3x224x224]"


def is_function(given: Any) -> bool:
    """Return whether the input in a name is a function, not a shape."""
    return isinstance(given, str) and ":" in given


def with_input(inner: nn.Module, given: Any, usual: Items = (), arguments: Arguments | None = None) -> Wrapper:
    """Return a module wrapped with the input that its name gives, a function or sizes, else with its usual inputs.

    Without a function, a Given among the `arguments` marks the place of an input. If `arguments` is None, x is passed
    as every parameter named like queries, keys or values, and several inputs are passed in order.
    """
    if is_function(given):
        return _with_arguments(inner, imported(given, f"input {given!r}")())
    items = usual if given is None else (_item(given),)
    several = tuple(map(Given, range(len(items)))) if len(items) > 1 else _like_attention(inner)
    return Adaptable(inner, items, *(arguments or (several, {})))


def _item(given: Any) -> tuple[int, ...]:
    """Return the shape of an item from sizes with the batch first, such as 8x3x224x224; raises Unresolved."""
    sides = str(given).split("x")
    if len(sides) < 2 or not all(side.isdecimal() and int(side) for side in sides):
        raise Unresolved(f"input={given} must be sizes, batch first, such as 8x3x224x224, or module:function")
    return tuple(map(int, sides[1:]))


def _like_attention(inner: nn.Module) -> tuple[Any, ...]:
    """Return x for a forward's first parameter, and for each further one named like queries, keys or values."""
    required = [each for each in parameters_of(inner) if each.kind in POSITIONAL and is_required(each)]
    return (X, *(X for each in required[1:] if each.name in OF_ATTENTION))


def _with_arguments(inner: nn.Module, inputs: Any) -> Wrapper:
    """Return a module wrapped with the arguments that a user's function returned: a tensor, a tuple or a dictionary.

    In each tensor with as many rows as x, the first row replaces all others. A square matrix is a mask and stays.
    """
    args = () if isinstance(inputs, Mapping) else tuple(inputs) if isinstance(inputs, tuple) else (inputs,)
    kwargs = dict(inputs) if isinstance(inputs, Mapping) else {}
    for each in (*args, *kwargs.values()):
        if isinstance(each, Tensor):
            check_plain(each, "the input function returns")
        elif any(isinstance(of, Tensor) for of in getattr(each, "__dict__", {}).values()):
            raise Unsupported(
                f"the input function returns a {type(each).__name__}, whose tensors can't be split into items; "
                "return these tensors, and build it in the forward of your own module"
            )
    x, path = first(args, kwargs), ""
    if x is None:
        path, x = _embedded(inner, args, kwargs)
        if x is None:
            raise Unresolved(
                f"{type(inner).__name__} takes no floating-point tensor, such as pixels or embeddings, and calls no "
                "nn.Embedding with its token ids"
            )
    args, kwargs = changed((args, kwargs) if path else with_x(args, kwargs), partial(_of_first, len(x)))
    return Adaptable(inner, ((*x.shape[1:],),), args, kwargs, batch=len(x), embedding=path)


def _of_first(batch: int, value: Any) -> Any:
    """Return an argument with its first row repeated for every item."""
    if not isinstance(value, Tensor) or value.shape[:1] != (batch,) or value.shape == (batch, batch):
        return value
    return value[:1].expand_as(value)


def first(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor | None:
    """Return the first floating-point tensor with a dimension among the arguments; None without one."""
    tensors = (value for value in (*args, *kwargs.values()) if isinstance(value, Tensor) and value.dim())
    return next((tensor for tensor in tensors if tensor.is_floating_point()), None)


def with_x(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return arguments with x, the first floating-point tensor, replaced by the marker X."""
    x = first(args, kwargs)
    return changed((args, kwargs), lambda value: X if value is x else value)


def _embedded(inner: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, Tensor | None]:
    """Return the path and the output of the first embedding that gets the token ids in a call.

    They are empty and None if there is none.
    """
    ids = [each for each in (*args, *kwargs.values()) if isinstance(each, Tensor)]
    found: list[tuple[str, Tensor]] = []

    def see(path: str, _module: nn.Module, given: tuple[Any, ...], y: Any) -> None:
        if given and isinstance(y, Tensor) and any(_are_equal(given[0], each) for each in ids):
            found.append((path, y.clone()))  # the module may change it in place

    embeddings = [(path, each) for path, each in inner.named_modules() if isinstance(each, nn.Embedding)]
    hooks = [each.register_forward_hook(partial(see, path)) for path, each in embeddings]
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            inner.eval()(*args, **kwargs)
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise Unresolved(
            f"{type(inner).__name__} can't be called with the arguments from its input function: {reason}"
        ) from error
    finally:
        for hook in hooks:
            hook.remove()
    return found[0] if found else ("", None)


def _are_equal(one: Any, other: Tensor) -> bool:
    return isinstance(one, Tensor) and one.shape == other.shape and bool((one == other).all())
