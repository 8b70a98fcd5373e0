"""The core of a module, and the ways to put another one in its place.

They are tried in this order: `self.attend`, which takes queries, keys, values and a scale; the library's own switch;
`F.scaled_dot_product_attention`, as the module calls it, if that computes every core; and the graph of the module's
call, in which any core can be replaced. Each works on a copy of the module that shares the weights, and looks at a call
of it: if no core was replaced, it raises `Unsupported` with the reason.
"""

import contextlib
import copy
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial, wraps
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from impls.catalogue import CORE_KEYWORDS
from impls.contract import (
    Adapt,
    Attend,
    Implementation,
    Unsupported,
    attribute,
    checked,
    compiling,
    declared_options,
    fitted,
    takes_core,
)
from impls.graph.cores import found
from impls.graph.running import InGraph, staying
from impls.graph.tracing import Untraceable, no_fast_path, traced
from impls.modules.counted import Counts, counted
from impls.modules.wrapper import Wrapper, copied

MISSING_KERNEL = ("No available kernel", "No viable backend")
"""What torch says if no backend that is allowed can compute a core."""

BY_ATTEND, BY_FUNCTION = "self.attend", "F.scaled_dot_product_attention"
"""How a core was replaced; by a library's switch it is the switch's name."""

FUSED_ATTN, OF_TRANSFORMERS = "fused_attn", "attn_implementation"
"""The switches of timm and of transformers."""

OF_TORCH = (nn.MultiheadAttention, nn.TransformerEncoderLayer, nn.TransformerEncoder)
"""torch's own modules, which compute a layer in one operator if they can."""


def with_attend(attend: Attend, switch: str = "") -> Adapt:
    """Return the adapter that replaces a layer's core by `attend`.

    The adapted layer shares its parameters with the original layer, which is not changed.
    The keywords that `attend` declares are the options of the adapter, except those by which it says what it can do.
    If the layer's library has a `switch` to this attention, `sdpa` or `eager`, that is used. If the attend is torch's
    own function in a context, its attribute `inside`, calls of a module that calls the function run in that context. An
    attend that is not right for a query whose keys are all hidden has one that is, its attribute `safely`.
    A layer that has none of these runs as the graph of its call, in which the cores are replaced.
    The adapter raises `Unsupported` for a layer whose core can't be replaced, and for one that asks its core for more
    than `attend` declares, such as a mask; of a module that is in no Wrapper, and has no attend, its first call does.
    """

    def adapt(layer: nn.Module, **options: Any) -> nn.Module:
        if isinstance(layer, Wrapper):
            return _in_wrapper(layer, attend, switch, options)
        if not takes_core(attribute(layer, "attend")):
            return InGraph(layer, _bound(attend, options))
        adapted = copy.copy(layer)
        adapted._modules = dict(layer._modules)  # a core that is a module must not appear in the original
        _put(attend, adapted, options)
        vars(adapted)["adapted_by"] = BY_ATTEND
        return adapted

    adapt.options = declared_options(attend).difference(CORE_KEYWORDS)  # type: ignore[attr-defined]  # functions take attributes
    return compiling(adapt) if getattr(attend, "compiles", False) else adapt


def calls_core(layer: nn.Module, *xs: Tensor) -> bool:
    """Return whether a layer calls its own attend as a core on inputs, and returns a tensor.

    It is true if the call fails, which says more elsewhere.
    """
    calls: list[bool] = []
    probe = copy.copy(layer)
    probe._modules = dict(layer._modules)
    _note(probe, calls)
    try:
        with torch.no_grad():
            y = probe(*xs)
    except Exception:
        return True
    return bool(calls) and all(calls) and isinstance(y, Tensor)


def _note(layer: nn.Module, calls: list[bool]) -> None:
    """Have a layer note of each call of its attend whether it is one of a core."""
    own: Any = layer._modules.pop("attend", None) or layer.attend

    def attend(*args: Any, **kwargs: Any) -> Any:
        *qkv, scale = [*args, *kwargs.values(), None, None, None, None][:4]
        calls.append(all(isinstance(each, Tensor) for each in qkv) and isinstance(scale, int | float | Tensor))
        return own(*args, **kwargs)

    vars(layer)["attend"] = attend


def _put(attend: Attend, layer: nn.Module, options: dict[str, Any]) -> None:
    """Put an attend into a layer, in the place of its own, which may be a function, a method or a module."""
    layer._modules.pop("attend", None)
    vars(layer).pop("attend", None)
    layer.attend = fitted(attend, layer, **options)  # type: ignore[assignment]  # no submodule


def _in_wrapper(layer: Wrapper, attend: Attend, switch: str, options: dict[str, Any]) -> nn.Module:
    """Return a copy of a module with an attend as the core, by the first way that is there."""
    if paths := _own_cores(layer):
        model = _copy(layer)
        for path in paths:
            _put(attend, model.inner.get_submodule(path), options)
        model.adapted_by = BY_ATTEND
        return model
    if switch and (by_library := _by_switch(layer, switch)):
        return by_library
    model = _without_fast_path(switched(layer, "sdpa"))
    counts = counts_of(model)
    stays = _called(model, _beside_function) if counts.softmaxes else ""
    if counts.by_function and not (counts.fused or counts.whole) and stays is not None:
        by_function = _by_function(model, attend, options, counts.by_function)
        if by_function:
            by_function.adapted_by = ", ".join(filter(None, (BY_FUNCTION, stays)))
            return by_function
    return _by_graph(model, attend, options)


def _by_function(model: Wrapper, attend: Attend, options: dict[str, Any], calls: int) -> Wrapper | None:
    """Return a module with an attend in place of torch's function, None if it computes fewer cores than there are."""
    own = copy.copy(model)
    if inside := getattr(attend, "inside", None):
        own.context = partial(_inside, model.context, inside)
        _called(own, Wrapper.__call__)  # the backend may refuse a mask
        return own
    own.attend = checked(_bound(attend, options))
    return own if _calls(own) == calls else None


def _bound(attend: Attend, options: dict[str, Any]) -> Attend:
    """Return an attend with options, right for a query whose keys are all hidden."""
    safely: Attend = getattr(attend, "safely", attend)
    return partial(safely, **options) if options else safely


def _calls(model: Wrapper) -> int:
    """Return how many cores of a call an attend computes: it may refuse, or not be called."""
    attend, done, probe = model.attend, list[bool](), copy.copy(model)
    assert attend is not None

    @wraps(attend)
    def counting(*args: Any, **kwargs: Any) -> Tensor:
        o: Tensor = attend(*args, **kwargs)
        done.append(True)
        return o

    probe.attend = counting
    _called(probe, Wrapper.__call__)
    return len(done)


def _beside_function(model: Wrapper, *xs: Tensor) -> str | None:
    """Return which softmaxes of a call stay beside its calls of torch's function; None if one is of a core.

    Others may choose experts, or belong to what no attend can express.
    """
    try:
        seen = found(traced(model, xs))
    except Untraceable:
        return "and whether other cores stay is not known"
    if not all(core.by_sdpa for core in seen.cores):
        return None
    return staying([each.lines for each in seen.unknown], len(seen.cores))


def _by_graph(model: Wrapper, attend: Attend, options: dict[str, Any]) -> InGraph:
    """Return a module whose graph has an attend in place of each core that it can express."""
    own = InGraph(model, _bound(attend, options))
    _called(model, lambda _, *xs: own.trial(*xs))
    return own


def _own_cores(layer: Wrapper) -> list[str]:
    """Return the paths of those modules in a module whose own attend is called as their core."""
    paths = [path for path, module in layer.inner.named_modules() if takes_core(attribute(module, "attend"))]
    if not paths:
        return []
    model, calls = _copy(layer), {path: list[bool]() for path in paths}
    for path in paths:
        _note(model.inner.get_submodule(path), calls[path])
    _called(model, Wrapper.__call__)
    return [path for path in paths if calls[path] and all(calls[path])]


def has_idle_attend(layer: Wrapper) -> bool:
    """Return whether the module itself has an attend that takes a core, and doesn't call it as one."""
    return takes_core(attribute(layer.inner, "attend")) and "" not in _own_cores(layer)


def _by_switch(layer: Wrapper, name: str) -> Wrapper | None:
    """Return a module whose library computes every core by `sdpa` or `eager`; None if it has no switch that does."""
    model = switched(layer, name)
    model.adapted_by = switch_of(layer)
    if name == "eager":
        of = counts_of(model)
        return model if model.adapted_by and of.softmaxes and not (of.by_function or of.fused or of.whole) else None
    model = _without_fast_path(model)
    of = counts_of(model)
    if of.softmaxes or of.whole or not (of.by_function or of.fused):
        return None
    if not of.fused:
        model.adapted_by = model.adapted_by or BY_FUNCTION
    return model


def as_is(layer: nn.Module) -> Implementation:
    """Return the layer as it is."""
    return layer


@compiling
def compiled(layer: nn.Module, *, mode: str | None = None) -> Implementation:
    """Return the layer as it is, compiled; `mode` is passed to `torch.compile`."""
    own = _copy(layer) if isinstance(layer, Wrapper) else copy.copy(layer)
    compile_in_place(own, mode=mode)
    return own


def compile_in_place(layer: nn.Module, **options: Any) -> None:
    """Compile a layer with static shapes; of a wrapper, the module inside, which may be one of torch's own.

    Raises `Unsupported` for a core that was put into one of these: the compiler takes torch's own in its place.
    """
    if not isinstance(layer, Wrapper):  # a module that runs as a graph has that compiled
        layer.compile(dynamic=False, **options)
    elif layer.attend is not None and is_torchs_own(layer):
        raise Unsupported(f"torch.compile leaves torch's own core in {OF_TORCH[0].__name__}, whatever is put there")
    elif type(layer.inner).__module__.startswith("torch."):  # in place, dynamo would skip their frames
        layer.inner = torch.compile(layer.inner, dynamic=False, **options)  # type: ignore[assignment]
    else:
        layer.inner.compile(dynamic=False, **options)


def _copy(layer: Wrapper) -> Wrapper:
    """Return a copy of a module that shares its weights and has modules of its own."""
    shared = {id(tensor): tensor for tensor in chain(layer.parameters(), layer.buffers())}
    own: Wrapper = copied(layer, shared)
    return own


def switched(layer: Wrapper, name: str) -> Wrapper:
    """Return a copy of a module whose library computes attention by `sdpa` or `eager`, if it has a switch to that."""
    model = _copy(layer)
    for module in model.inner.modules():
        _switch(module, name)
    if name in model.forms:  # a layer of transformers reads the choice from the configuration of its model
        model.args, model.kwargs = model.forms[name]
        for config in configs(model.inner):
            config._attn_implementation = name
    return model


def configs(module: nn.Module) -> list[Any]:
    """Return the configurations of transformers that a module and its parts hold."""
    held = (getattr(each, "config", None) for each in module.modules())
    return [config for config in held if hasattr(config, "_attn_implementation")]


def counts_of(model: Wrapper) -> Counts:
    """Return the counts of a call on one item; raises `Unsupported` if the library or a backend refuses."""
    counts: Counts = _called(model, counted)
    return counts


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
def explained(prefix: str = "") -> Iterator[None]:
    """Raise `Unsupported` with all of torch's reasons if no backend that is allowed can compute a core inside.

    Torch gives the reasons, one per backend, as warnings: no warning that comes inside is shown.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        except RuntimeError as error:
            if not lacks_kernel(error):
                raise
            hints = (str(warning.message).partition(" (Triggered internally")[0] for warning in caught)
            reasons = dict.fromkeys([str(error), *(hint for hint in hints if not hint.endswith("because:"))])
            raise Unsupported(prefix + " ".join(reasons)) from None


def lacks_kernel(error: RuntimeError) -> bool:
    """Return whether torch raised an error because no backend that is allowed can compute a core."""
    return any(words in str(error) for words in MISSING_KERNEL)


def switch_of(layer: Wrapper) -> str:
    """Return the name of the switch that a library gives a module, empty without one."""
    if any(_has_flag(module) for module in layer.inner.modules()):
        return FUSED_ATTN
    return OF_TRANSFORMERS if layer.forms or configs(layer.inner) else ""


def _has_flag(module: nn.Module) -> bool:
    return isinstance(getattr(module, FUSED_ATTN, None), bool | int)


def _switch(module: nn.Module, name: str) -> None:
    if _has_flag(module):
        module.fused_attn = name == "sdpa"  # type: ignore[assignment]  # a flag of timm's
    choose = getattr(module, "set_attn_implementation", None)
    if callable(choose):
        with contextlib.suppress(ValueError):  # the model has one attention only
            choose(name)


@contextmanager
def _inside(*contexts: Callable[[], AbstractContextManager[Any]]) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for context in contexts:
            stack.enter_context(context())
        yield


def _without_fast_path(model: Wrapper) -> Wrapper:
    """Return a module whose calls leave the fast path of torch's own modules, if it has any of them."""
    if is_torchs_own(model):
        model.context = no_fast_path
    return model


def is_torchs_own(model: Wrapper) -> bool:
    """Return whether a module is one of torch's own that have a fast path, or has one inside."""
    return any(isinstance(each, OF_TORCH) for each in model.inner.modules())
