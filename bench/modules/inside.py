"""A part of a model as a model: the module at a path, with the arguments that it gets in a call of the whole."""

import copy
import difflib
from collections.abc import Iterable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from bench.modules.inputs import ITEMS, change, first, placed, with_x
from bench.modules.switches import configs, switched
from bench.modules.wrapper import Wrapper
from impls.contract import Unresolved, Unsupported

PLAIN = (Tensor, int, float, str, tuple, list, dict, type(None))
"""The types of arguments that hold no state between calls."""


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
    if x is None:
        raise Unresolved(f"model {name!r}: {path!r} gets no tensor of floating-point numbers")
    module = model.inner.get_submodule(path)
    forms = {}
    for form in ("sdpa", "eager"):
        other = switched(model, form)
        if {config._attn_implementation for config in configs(other.inner.get_submodule(path))} == {form}:
            forms[form] = with_x(*call(other))
    # the second dimension is the batch only if it has as many items; the first one may have several rows for each
    dims = [dim for dim, has_items in enumerate((x.shape[0] % ITEMS == 0, x.shape[1:2] == (ITEMS,))) if has_items]
    if not dims:
        raise Unresolved(f"model {name!r}: the input {[*x.shape]} of {path!r} has no batch")
    reasons = []
    for alone in placed(module, x, with_x(args, kwargs), dims, items=ITEMS, forms=forms):
        if not (reason := change(alone, (torch.randn(ITEMS, *alone.items[0]),), is_own=True)):
            return alone
        reasons.append(reason)
    states = {type(each).__name__: each for each in (*args, *kwargs.values()) if not isinstance(each, PLAIN)}
    cause = f"it may change the {' and '.join(states)} that it gets" if states else "it may keep a state or mix items"
    raise Unsupported(f"{name!r} can't be run by itself, because {cause}: {reasons[0]}")


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
