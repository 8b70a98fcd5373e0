"""A module whose core can be replaced, by the first way that is there.

They are tried in this order: `self.attend`, which takes queries, keys, values and a scale; the library's own switch;
`F.scaled_dot_product_attention`, as the module calls it, if that computes every core; and the graph of the module's
call, in which any core can be replaced. Each works on a copy of the module that shares the weights, and looks at a call
of it: if no core was replaced, it raises `Unsupported` with the reason.
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
"""How a core was replaced by torch's function; by a library's switch it is the switch's name."""

UNKNOWN = "other cores may stay"


class Adaptable(Wrapper):
    """A measured module of anybody, whose core can be replaced."""

    @property
    def bare(self) -> nn.Module | None:
        """The module that a user's own adapter may take: None if it takes more than the inputs, or an attend is idle.

        An attend is idle if it takes a core, and the module doesn't call it as one.
        """
        is_idle = takes_core(attribute(self.inner, "attend")) and "" not in _own_cores(self)
        return self.inner if self.is_plain and not is_idle else None

    def with_core(self, core: Replacement) -> nn.Module:
        """Return a copy of the module with another core, by the first way that is there."""
        if paths := _own_cores(self):
            return _by_attend(self, core, paths)
        if core.switch and (by_library := _by_switch(self, core.switch)):
            return by_library
        model = switched(self, "sdpa")
        return _by_function(model, core) or _by_graph(model, core)

    def compile(self, **options: Any) -> None:
        """Compile the module inside, which may be one of torch's own.

        Raises `Unsupported` for a core that was put into one of these: the compiler takes torch's own in its place.
        """
        if self.attend is not None and is_torchs_own(self):
            raise Unsupported(f"torch.compile always uses torch's own core in {OF_TORCH[0].__name__}")
        if type(self.inner).__module__.startswith("torch."):  # in place, dynamo would skip their frames
            self.inner = torch.compile(self.inner, **options)  # type: ignore[assignment]
        else:
            self.inner.compile(**options)


def wrapped(layer: nn.Module, items: tuple[tuple[int, ...], ...]) -> Wrapper:
    """Return a layer as a wrapper: itself if it is one."""
    return layer if isinstance(layer, Wrapper) else Adaptable(layer, items, tuple(map(Given, range(len(items)))))


def _by_attend(layer: Wrapper, core: Replacement, paths: Sequence[str]) -> Wrapper:
    """Return a module with a core in the attends of its parts at these paths."""
    model = copy.copy(layer)
    for path in paths:
        core.put_into(model.inner.get_submodule(path))
    model.adapted_by = BY_ATTEND
    return model


def _by_switch(layer: Wrapper, way: str) -> Wrapper | None:
    """Return a module whose library computes every core by `sdpa` or `eager`; None if it has no switch that does."""
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
    """Return a module with a core in place of torch's function, None if that computes fewer cores than there are."""
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
    """Return a module whose graph has a core in place of each that the core's attend can express."""
    own = InGraph(model, core.bound)
    _called(model, lambda _, *xs: own.trial(*xs))
    return own


def _own_cores(layer: Wrapper) -> list[str]:
    """Return the paths of those modules in a module whose own attend is called as their core."""
    paths = [path for path, module in layer.inner.named_modules() if takes_core(attribute(module, "attend"))]
    if not paths:
        return []
    model, calls = copy.copy(layer), {path: list[bool]() for path in paths}
    for path in paths:
        _note(model.inner.get_submodule(path), calls[path])
    _called(model, Wrapper.__call__)
    return [path for path in paths if calls[path] and all(calls[path])]


def _note(layer: nn.Module, calls: list[bool]) -> None:
    """Have a layer note of each call of its attend whether it is one of a core."""
    own: Any = layer._modules.pop("attend", None) or layer.attend

    def attend(*args: Any, **kwargs: Any) -> Any:
        *qkv, scale = [*args, *kwargs.values(), None, None, None, None][:4]
        calls.append(all(isinstance(each, Tensor) for each in qkv) and isinstance(scale, int | float | Tensor))
        return own(*args, **kwargs)

    vars(layer)["attend"] = attend


def _calls(model: Wrapper) -> int:
    """Return how many cores of a call an attend computes: it may refuse, or not be called."""
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
    """Return the cores of a call, and the softmaxes of none; None if torch can't trace it."""
    try:
        seen: Found = _called(model, lambda _, *xs: look(model, xs))
    except Untraceable:
        _called(model, Wrapper.__call__)  # the library may refuse it, which is the better reason
        return None
    return seen


def _called(model: Wrapper, call: Callable[..., Any]) -> Any:
    """Return what a call on one item of zeros returns; raises `Unsupported` if the library or a backend refuses.

    Nothing is compiled for it: the first call of a case does that, and its time counts.
    """
    weight = next(chain(model.parameters(), model.buffers()), torch.empty(0))
    grad = torch.enable_grad() if model.training else torch.inference_mode()
    try:
        with explained("the backend can't compute the module's attention: "), grad, _uncompiled():
            return call(model, *model.zeros(dtype=weight.dtype, device=weight.device))
    except ValueError as error:
        if model.attend is not None:
            raise  # it is the attend's own
        raise Unsupported(f"the library refuses it: {error}") from None


def _uncompiled() -> AbstractContextManager[object]:
    """Return a context in which nothing is compiled, if this process has imported the compiler."""
    return torch.compiler.set_stance("force_eager") if "torch._dynamo" in sys.modules else nullcontext()


@contextmanager
def _inside(*contexts: Callable[[], AbstractContextManager[Any]]) -> Iterator[None]:
    with ExitStack() as stack:
        for context in contexts:
            stack.enter_context(context())
        yield
