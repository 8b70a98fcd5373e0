"""A module whose core can be replaced, by the first of four ways that works.

They are tried in this order: `self.attend(q, k, v, scale)`; the library's own switch; the module's calls of
`F.scaled_dot_product_attention`, if they compute every core; and the graph of the module's call. Each way changes a
copy of the module that shares the weights, and checks one call of it. If no core can be replaced, the last way raises
`Unsupported` with the reason.
"""

import copy
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial, wraps
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from bench.modules.graph.cores import Found, look
from bench.modules.graph.running import InGraph, staying
from bench.modules.graph.tracing import Untraceable
from bench.modules.switches import OF_TORCH, is_torchs_own, switch_of, switched
from bench.modules.wrapper import Given, Wrapper
from impls.attend.sdpa import explained
from impls.contract import BY_ATTEND, Replacement, Unsupported, attribute, checked, takes_core

BY_FUNCTION = "F.scaled_dot_product_attention"
"""The value of `adapted_by` if torch's function was replaced; for a library's switch it is the switch's name."""

UNKNOWN = "other cores may stay"


class Adaptable(Wrapper):
    """A measured module from any package, whose core can be replaced."""

    @property
    def bare(self) -> nn.Module | None:
        """The module for a user's own adapter: None if it takes more than the inputs, or doesn't use its `attend`.

        An `attend` is unused if it has the signature of a core but the module doesn't call it as one.
        """
        is_idle = takes_core(attribute(self.inner, "attend")) and "" not in _own_cores(self)
        return self.inner if self.is_plain and not is_idle else None

    def with_core(self, core: Replacement) -> nn.Module:
        """Return a copy of the module with another core, by the first way that works."""
        if paths := _own_cores(self):
            return _by_attend(self, core, paths)
        if core.switch and (by_library := _by_switch(self, core.switch)):
            return by_library
        model = switched(self, "sdpa")
        return _by_function(model, core) or _by_graph(model, core)

    def compile(self, **options: Any) -> None:
        """Compile the module inside, which may be one of torch's own.

        Raises `Unsupported` if the core of one of torch's own was replaced: the compiler uses torch's core anyway.
        """
        if self.attend is not None and is_torchs_own(self):
            raise Unsupported(f"torch.compile always uses torch's own core in {OF_TORCH[0].__name__}")
        if type(self.inner).__module__.startswith("torch."):  # in place, dynamo would skip their frames
            self.inner = torch.compile(self.inner, **options)  # type: ignore[assignment]
        else:
            self.inner.compile(**options)


def wrapped(layer: nn.Module, items: tuple[tuple[int, ...], ...]) -> Wrapper:
    """Return a layer in a wrapper; a wrapper is returned as it is."""
    return layer if isinstance(layer, Wrapper) else Adaptable(layer, items, tuple(map(Given, range(len(items)))))


def _by_attend(layer: Wrapper, core: Replacement, paths: Sequence[str]) -> Wrapper:
    """Return a copy of a module with the core as the `attend` of its submodules at these paths."""
    model = copy.copy(layer)
    for path in paths:
        core.put_into(model.inner.get_submodule(path))
    model.adapted_by = BY_ATTEND
    return model


def _by_switch(layer: Wrapper, way: str) -> Wrapper | None:
    """Return a module switched to `sdpa` or `eager`; None if no switch of its library changes every core."""
    model, switch = switched(layer, way), switch_of(layer)
    name, seen = switch.name if switch else "", _look(model)
    cores = seen.cores if seen else ()
    if way == "eager":
        is_by_switch = bool(name and seen and (cores or seen.unknown)) and not any(site.core.is_fused for site in cores)
    else:
        is_by_switch = bool(seen and cores and not seen.unknown) and all(site.core.is_fused for site in cores)
        name = name or (BY_FUNCTION if all(site.core.by_sdpa for site in cores) else "")
    model.adapted_by = name
    return model if is_by_switch else None


def _by_function(model: Wrapper, core: Replacement) -> Wrapper | None:
    """Return a module that calls the core in place of torch's function; None if that doesn't compute every core."""
    seen = _look(model)
    if seen and not (seen.cores and all(site.core.by_sdpa for site in seen.cores)):
        return None
    stays = staying([each.softmax.lines for each in seen.unknown], len(seen.cores)) if seen else UNKNOWN
    own = copy.copy(model)
    if inside := getattr(core.attend, "inside", None):
        own.context = partial(_inside, model.context, inside)
        _called(own, Wrapper.__call__)  # the backend may refuse a mask
    else:
        own.attend = checked(core.bound)
        calls = _calls(own)
        if not calls or (seen and calls != len(seen.cores)):
            return None
    own.adapted_by = ", ".join(filter(None, (BY_FUNCTION, stays)))
    return own


def _by_graph(model: Wrapper, core: Replacement) -> InGraph:
    """Return a module that runs its own graph, with each core replaced that the new attend can express."""
    own = InGraph(model, core.bound)
    _called(model, lambda _, *xs: own.trial(*xs))
    return own


def _own_cores(layer: Wrapper) -> list[str]:
    """Return the paths of the submodules that call their own `attend` as their core."""
    paths = [path for path, module in layer.inner.named_modules() if takes_core(attribute(module, "attend"))]
    if not paths:
        return []
    model, calls = copy.copy(layer), {path: list[bool]() for path in paths}
    for path in paths:
        _record_calls(model.inner.get_submodule(path), calls[path])
    _called(model, Wrapper.__call__)
    return [path for path in paths if calls[path] and all(calls[path])]


def _record_calls(layer: nn.Module, calls: list[bool]) -> None:
    """Make a layer append to `calls`, for each call of its attend, whether the arguments are those of a core."""
    own: Any = layer._modules.pop("attend", None) or layer.attend

    def attend(*args: Any, **kwargs: Any) -> Any:
        *qkv, scale = [*args, *kwargs.values(), None, None, None, None][:4]
        calls.append(all(isinstance(each, Tensor) for each in qkv) and isinstance(scale, int | float | Tensor))
        return own(*args, **kwargs)

    vars(layer)["attend"] = attend


def _calls(model: Wrapper) -> int:
    """Return how many cores of one call the attend computes; it may raise."""
    attend, done = model.attend, list[bool]()
    assert attend is not None

    @wraps(attend)
    def counting(*args: Any, **kwargs: Any) -> Tensor:
        o: Tensor = attend(*args, **kwargs)
        done.append(True)
        return o

    model.attend = counting
    _called(model, Wrapper.__call__)
    model.attend = attend
    return len(done)


def _look(model: Wrapper) -> Found | None:
    """Return the cores of a call, and the softmaxes outside of cores; None if torch can't trace it."""
    try:
        seen: Found = _called(model, lambda _, *xs: look(model, xs))
    except Untraceable:
        _called(model, Wrapper.__call__)  # the library's own error is the better reason
        return None
    return seen


def _called(model: Wrapper, call: Callable[..., Any]) -> Any:
    """Return the result of a call on zeros; raises `Unsupported` if the library or a backend refuses it.

    Nothing is compiled here, because the first call of a case does that and its time counts.
    """
    weight = next(chain(model.parameters(), model.buffers()), torch.empty(0))
    grad = torch.enable_grad() if model.training else torch.inference_mode()
    try:
        with explained("the backend can't compute the module's attention: "), grad, _uncompiled():
            return call(model, *model.zeros(dtype=weight.dtype, device=weight.device))
    except ValueError as error:
        if model.attend is not None:
            raise  # from the attend itself
        raise Unsupported(f"the library refuses it: {error}") from None


def _uncompiled() -> AbstractContextManager[object]:
    """Return a context that turns torch.compile off if this process has imported it."""
    return torch.compiler.set_stance("force_eager") if "torch._dynamo" in sys.modules else nullcontext()


@contextmanager
def _inside(*contexts: Callable[[], AbstractContextManager[Any]]) -> Iterator[None]:
    with ExitStack() as stack:
        for context in contexts:
            stack.enter_context(context())
        yield
