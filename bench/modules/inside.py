"""A part of a model: the submodule at a path, with the arguments that it gets in a call of the whole."""

import copy
import difflib
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from bench.modules.core import Adaptable
from bench.modules.inputs import by_function, first, with_x
from bench.modules.switches import configs, switched
from bench.modules.wrapper import Wrapper
from impls.contract import Unresolved


class _Reached(Exception):  # noqa: N818 - the way out of a model
    """Ends a call of the model as soon as the arguments of the part are known."""


def inside(model: Wrapper, path: str, name: str, batch: int) -> Wrapper:
    """Return a wrapper of the submodule at a path, with its arguments in a call of the model on `batch` equal items.

    If the model's library has a switch, the wrapper has the arguments for each of its settings: `eager` may need a mask
    that `sdpa` doesn't.
    Raises Unresolved if there is no such module, if the model doesn't call it, or if its input has no batch.
    """
    try:
        part = model.inner.get_submodule(path)
    except AttributeError:
        near = difflib.get_close_matches(path, [each for each, _ in model.inner.named_modules() if each], cutoff=0.4)
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        raise Unresolved(f"model {name!r} has no module {path!r}{hint}") from None
    for config in configs(model.inner):
        config.use_cache = False  # it would grow from call to call
    call = partial(_arguments, path, name, [torch.randn(1, *each).expand(batch, *each) for each in model.items])
    args, kwargs = call(model)
    x = first(args, kwargs)
    if x is None:
        raise Unresolved(f"model {name!r}: {path!r} gets no floating-point tensor")
    if len(x) % batch:
        raise Unresolved(
            f"model {name!r}: the first dimension of the input {[*x.shape]} of {path!r} must be the batch {batch}; "
            "wrap the part in a module that takes the batch first, and name what returns that: mymodule:make"
        )
    forms = {}
    for form in ("sdpa", "eager"):
        other = switched(model, form)
        if {config._attn_implementation for config in configs(other.inner.get_submodule(path))} == {form}:
            forms[form] = with_x(*call(other))
    rows = len(x) // batch
    item = (rows, *x.shape[1:]) if rows > 1 else (*x.shape[1:],)
    return Adaptable(part, (item,), *with_x(args, kwargs), batch=batch, rows=rows, forms=forms)


def _arguments(path: str, name: str, xs: list[Tensor], model: Wrapper) -> Any:
    """Return the arguments of a model's first call of the submodule at a path, and compute nothing after it."""

    def keep(_module: nn.Module, args: Any, kwargs: Any) -> None:
        raise _Reached(*copy.deepcopy((args, kwargs)))

    hook = model.inner.get_submodule(path).register_forward_pre_hook(keep, with_kwargs=True)
    try:
        with torch.no_grad():
            model(*xs)
    except _Reached as reached:
        return reached.args
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        another = f"if it takes another input, write {by_function(name)}"
        raise Unresolved(f"model {name!r} can't be called: {reason}; {another}") from error
    finally:
        hook.remove()
    raise Unresolved(f"model {name!r} doesn't call its module {path!r}")
