"""The contract between a layer and its implementations."""

import copy
import importlib
import inspect
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial, reduce, wraps
from inspect import Parameter
from typing import Any

from torch import Tensor, nn
from torch.compiler import is_compiling

from impls.catalogue import CAUSAL, CORE_KEYWORDS, FIXED, NO_MASK, NOT_PACKED, PACKING

BY_ATTEND = "self.attend"
"""The value of `adapted_by` if a layer's own `attend` was replaced."""

Attend = Callable[..., Tensor]
"""The core: `attend(q, k, v, scale) -> o` on `[B, H, N, D]`; k and v may differ in width.

A name may lead to an attend in place of an adapter.

Its keyword-only parameters declare which of `CORE_KEYWORDS` it can compute (`mask` is "causal"; the others mean the
same as in `F.scaled_dot_product_attention`), `packing` if it takes packed items, and its own options, which a name
gives in brackets, as in `mykernel:attend[block_tokens=64]`.
"""

Implementation = Callable[..., Tensor]
"""The result of an adapter: a callable that computes the layer's function of its inputs, with its parameters."""

Adapt = Callable[..., Implementation]
"""An adapter: `adapt(layer)` returns a callable that computes the same function with the same parameters.

Its keyword-only parameters are the options that its name may have.
"""


class Unsupported(Exception):  # noqa: N818 - a status, not an error
    """The adapter can't express the layer; the message is the reason."""


class Unresolved(LookupError):  # noqa: N818 - a name that can't be used
    """The name leads to no adapter or no layer; the message is the reason."""


class WithoutCore(Unsupported):
    """The layer has no core that can be replaced."""


@dataclass(frozen=True)
class Replacement:
    """The attend, with options, that replaces a layer's core.

    `switch` is the setting of model libraries that selects this attention, `sdpa` or `eager`; empty without one.
    """

    attend: Attend
    switch: str = ""
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def bound(self) -> Attend:
        """The attend with its options, in the variant that handles queries whose keys are all hidden."""
        safely: Attend = getattr(self.attend, "safely", self.attend)
        return partial(safely, **self.options) if self.options else safely

    def put_into(self, layer: nn.Module) -> None:
        """Replace a layer's own attend, which may be a function, a method or a module."""
        layer._modules.pop("attend", None)
        vars(layer).pop("attend", None)
        layer.attend = fitted(self.attend, layer, **self.options)  # type: ignore[assignment]  # no submodule


def with_attend(attend: Attend, switch: str = "") -> Adapt:
    """Return the adapter that replaces a layer's core by `attend`.

    The adapted layer shares its parameters with the original layer, which is not changed.
    The keywords that `attend` declares are the options of the adapter, except CORE_KEYWORDS and `packing`.
    If the layer's library has a `switch` to this attention, `sdpa` or `eager`, it is used. If the attend has a context
    `inside`, it is torch's function in that context, and modules that call the function run in the context instead. If
    it has `safely`, that variant also handles queries whose keys are all hidden.
    The adapter raises `WithoutCore` for a layer that has neither an attend nor a method `with_core`. It raises
    `Unsupported` if the core can't be replaced, or needs more than `attend` declares, such as a mask.
    """

    def adapt(layer: nn.Module, **options: Any) -> Implementation:
        core = Replacement(attend, switch, options)
        if with_core := attribute(layer, "with_core"):
            adapted: nn.Module = with_core(core)
            return adapted
        if not takes_core(attribute(layer, "attend")):
            raise WithoutCore(f"{type(layer).__name__} has no attend that takes queries, keys, values and a scale")
        adapted = copy.copy(layer)
        adapted._modules = dict(layer._modules)  # a core that is a module must not appear in the original
        core.put_into(adapted)
        vars(adapted)["adapted_by"] = BY_ATTEND
        return adapted

    adapt.options = declared_options(attend).difference(CORE_KEYWORDS, [PACKING])  # type: ignore[attr-defined]  # functions take attributes
    return compiling(adapt) if getattr(attend, "compiles", False) else adapt


def is_ours(layer: object) -> bool:
    """Return whether a layer is one of the suite's."""
    return type(layer).__module__.startswith(f"{__package__}.layers.")


def as_is(layer: nn.Module) -> Implementation:
    """Return the layer as it is."""
    return layer


def imported(path: str, what: str) -> Callable[..., Any]:
    """Return the class or function at `module:attribute`; raises Unresolved, with `what` as its name in the message."""
    module, _, attribute = path.partition(":")
    try:
        value = reduce(getattr, attribute.split("."), importlib.import_module(module))
    except (Exception, SystemExit) as error:  # importing a user's file may raise anything
        kind = "" if isinstance(error, ImportError | AttributeError) else f"{type(error).__name__}: "
        reason = " ".join(f"{kind}{error}".split())  # it may have several lines
        raise Unresolved(f"{what} can't be imported: {reason}") from error
    if not callable(value):
        raise Unresolved(f"{what} must be callable, got {type(value).__name__}")
    return value


def compiling(adapt: Adapt) -> Adapt:
    """Mark an adapter or attend that compiles, so that a case without a compiled graph ends as `fallback`."""
    adapt.compiles = True  # type: ignore[attr-defined]  # functions take attributes
    return adapt


def masked(attend: Attend, mask: str, **options: Any) -> Attend:
    """Return `attend` with a mask, none or causal, and options bound as keywords; `attend` itself if there are none.

    Raises `Unsupported` for another mask, or for a causal one if `attend` does not declare the keyword `mask`.
    """
    if mask != NO_MASK:
        if mask != CAUSAL:
            raise Unsupported(f"mask = {mask} can't be passed as the keyword mask, which must be {CAUSAL} or not given")
        if "mask" not in declared_options(attend):
            raise Unsupported(f"{_name(attend)} does not declare the keyword mask, but the layer's mask is {mask}")
        options = {**options, "mask": mask}
    return partial(attend, **options) if options else attend


def fitted(attend: Attend, layer: nn.Module, **options: Any) -> Attend:
    """Return `attend` with a layer's mask and options bound, fitted to the keywords that the layer needs.

    The layer's `asks` are keywords of `CORE_KEYWORDS`; None if only its calls tell. If `attend` takes no grouped heads,
    keys and values are repeated. Raises `Unsupported` if the layer needs another keyword that `attend` does not
    declare; the result raises it if a call does.
    """
    declared, asks = declared_options(attend), getattr(layer, "asks", None)
    is_padded = attribute(layer, "lengths") not in (None, FIXED)
    if PACKING in declared:
        if attribute(layer, "lengths") is None:
            raise Unsupported(NOT_PACKED)
        if attribute(layer, "attn_bias") not in (None, "none"):
            raise Unsupported(f"{_name(attend)} takes packed items, but the layer has a bias")
        asks = tuple(each for each in asks or () if each != "attn_mask")
    if "attn_mask" not in declared and "attn_mask" in (asks or ()):
        what = "padding mask" if is_padded else "bias"
        raise Unsupported(f"{_name(attend)} does not declare the keyword attn_mask, but the layer has a {what}")
    if not {"attn_mask", "enable_gqa"} <= declared and (asks is None or not declared.issuperset(asks)):
        attend = checked(attend)
    return masked(attend, mask_of(layer), **options)


def checked(attend: Attend) -> Attend:
    """Return `attend` for calls that may pass CORE_KEYWORDS which it doesn't declare.

    For `enable_gqa`, keys and values are repeated and the result's attribute `repeats` becomes True. Other undeclared
    keywords raise `Unsupported`.
    """
    declared = declared_options(attend)
    lacking = tuple(keyword for keyword in CORE_KEYWORDS if keyword not in declared)

    @wraps(attend)
    def attend_checked(q: Tensor, k: Tensor, v: Tensor, *others: Any, **asked: Any) -> Tensor:
        for keyword in lacking:
            value = asked.pop(keyword, None)
            if value is None or value is False:
                continue
            if keyword != "enable_gqa":
                raise Unsupported(
                    f"the module's attention has {CORE_KEYWORDS[keyword]}, but this attend declares no keyword "
                    f"{keyword}; declare it as in attend(q, k, v, scale, *, {keyword}=None)"
                )
            k, v = repeated(q, k, v)
            if not is_compiling():  # setting it would break the graph
                attend_checked.repeats = True  # type: ignore[attr-defined]  # functions take attributes
        return attend(q, k, v, *others, **asked)

    return attend_checked


def repeated(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Return k and v with each head repeated for its consecutive heads of q, like transformers' `repeat_kv`."""
    heads = q.shape[1]
    return k.repeat_interleave(heads // k.shape[1], dim=1), v.repeat_interleave(heads // v.shape[1], dim=1)


def _name(attend: Attend) -> str:
    return getattr(attend, "__name__", type(attend).__name__)


def attribute(module: object, name: str) -> Any:
    """Return an attribute of any module; None without one, or if a property raises an error."""
    try:
        return getattr(module, name, None)
    except Exception:
        return None


def mask_of(layer: nn.Module) -> str:
    """Return the name of a layer's mask: "causal" if its attribute `mask` is that, otherwise "none"."""
    mask = attribute(layer, "mask")
    return CAUSAL if isinstance(mask, str) and mask == CAUSAL else NO_MASK


POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)

VARIABLE = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)

ATTEND_PARAMETERS = 3
"""The least required parameters of an attend: queries, keys and values; an adapter takes only the layer."""

NO_SCALE = ("mask", "bias", "drop", "pos", "causal")
"""Parts of the name of a fourth parameter that isn't a scale."""


def parameters_of(function: Callable[..., Any]) -> list[Parameter]:
    """Return the parameters of a function, an instance, a module's forward, or a class; empty if they are unknown."""
    with suppress(TypeError, ValueError):
        return [
            *inspect.signature(function.forward if isinstance(function, nn.Module) else function).parameters.values()
        ]
    return []


def is_required(parameter: Parameter) -> bool:
    """Return whether a call must give a parameter."""
    return parameter.default is parameter.empty and parameter.kind not in VARIABLE


def takes_core(attend: Any) -> bool:
    """Return whether the parameters of a possible attend allow queries, keys, values and a scale."""
    if not callable(attend):
        return False
    parameters = parameters_of(attend)
    if not parameters or any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return True  # a call will tell
    positional = [each for each in parameters if each.kind in POSITIONAL]
    required = sum(map(is_required, positional))
    if len(positional) <= ATTEND_PARAMETERS or required > ATTEND_PARAMETERS + 1:
        return False
    scale = positional[ATTEND_PARAMETERS].name
    is_scale = not any(part in scale for part in NO_SCALE)
    return is_scale and (required == ATTEND_PARAMETERS + 1 or "scal" in scale)


def declared_options(function: Callable[..., object]) -> frozenset[str]:
    """Return the names of a function's options: its keyword-only parameters.

    An adapter made by `with_attend` has the options of its `attend`.
    """
    stated = getattr(function, "options", None)
    if isinstance(stated, frozenset):
        return stated
    return frozenset(each.name for each in parameters_of(function) if each.kind is each.KEYWORD_ONLY)
