"""Functions of other packages as kernels: the names of their parameters say what to pass, a call shows the layout."""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache, partial
from inspect import Parameter
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import _disable_current_modes

from impls.attend import eager
from impls.catalogue import ATTEND_PARAMETERS
from impls.contract import Attend, Unresolved, Unsupported
from impls.signatures import POSITIONAL, VARIABLE, parameters_of

CORE = ("q", "k", "v")

MEANINGS = {
    "q": r"x?(q|qs|query|queries)(_\w*)?",
    "k": r"x?(k|ks|key|keys)(_\w*)?",
    "v": r"x?(v|vs|value|values)(_\w*)?",
    "scale": r"((softmax|sm|qk|attn|attention|scores?|logits?)_)?(scale|scaling)(_factor)?",
    "causal": r"(is_|use_)?causal",
    "dropout": r"p|(attn_|attention_)?p?_?drop(out)?(_p|_prob|_rate|_probability)?",
    "attn_mask": r"attn_mask",
    "enable_gqa": r"enable_gqa",
}
"""The names of parameters, in small letters, by what they mean."""

NEUTRAL = {
    r"\w*(mask|bias)\w*|score_mod|block_mask": None,
    r"training|deterministic|enable_gqa|(return|output|need)_\w+": False,
}
"""What a required parameter gets that is known, and plays no part in the plain core."""

OTHER = re.compile(
    r"\w*(window|block|chunk|bucket|layout|seqlen|length|head|dim)\w*|d_k|d_model|g|gates?|decay|qkv\w*|kv\w*"
)
"""Further names that mean no scale."""

SIZE = re.compile(
    r"\w*(dim|size|heads?|width|channels?|features?|window|hidden|embed|model|length|eps|config)s?\w*|d_\w+"
)
"""Names of arguments of constructors that are no layer."""

BATCH, HEADS, TOKENS, WIDTH = 2, 4, 128, 64
"""The sizes of the tensors of a first call: kernels are made for such tokens and widths."""

SCALE = 0.2
"""The scale of a first call: neither WIDTH**-0.5, which a function may use by itself, nor 1."""

NEAR = 0.1
"""The relative error up to which a result is surely that of the formula: one of 8-bit products is within it."""

FAR = 0.5
"""The relative error from which a result has nothing to do with the formula: another layout has 1 or more."""


CANNOT = (Unsupported, NotImplementedError, MemoryError, torch.OutOfMemoryError)
"""Errors that say by themselves how a case ends."""


@dataclass(frozen=True)
class Layout:
    """An order of dimensions: how to bring `[B, H, N, D]` into it, and a result back, for B items."""

    name: str
    into: Callable[[Tensor], Tensor]
    back: Callable[[Tensor, int], Tensor]


LAYOUTS = (
    Layout("[B, H, N, D]", lambda x: x, lambda o, _: o),
    Layout("[B, N, H, D]", lambda x: x.transpose(1, 2), lambda o, _: o.transpose(1, 2)),
    Layout("[B·H, N, D]", lambda x: x.flatten(0, 1), lambda o, items: o.unflatten(0, (items, -1))),
    Layout("[N, B, H, D]", lambda x: x.permute(2, 0, 1, 3), lambda o, _: o.permute(1, 2, 0, 3)),
)


class Way(NamedTuple):
    """How a function computes a core: its layout's place in LAYOUTS, that of the output in its result, its own scale.

    The scale is passed if `power` is None; else the function takes `D**power`.
    """

    layout: int
    place: int
    power: float | None


class Foreign:
    """A function with the meanings of its parameters; `name` is its `module:attribute`."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self.function = function
        self.name = name
        self.parameters = every = [each for each in parameters_of(function) if each.kind not in VARIABLE]
        self.by_meaning = _meanings(every)
        known = {each.name for each in self.by_meaning.values()}
        self.fixed = dict(_fixed(self.by_meaning.get("dropout"), every))
        self.missing = [each.name for each in every if _is_required(each) and each.name not in {*known, *self.fixed}]
        self.options = [
            each for each in every if each.kind is each.KEYWORD_ONLY and each.name not in {*known, *self.fixed, "mask"}
        ]
        self.names = {meaning: each.name for meaning, each in self.by_meaning.items()}
        last = max((at for at, each in enumerate(every, 1) if each.kind is each.POSITIONAL_ONLY), default=0)
        self.by_position = every[:last]
        self.is_in_order = not last and [self.by_meaning.get(each) for each in CORE] == every[:ATTEND_PARAMETERS]

    def call(self, core: tuple[Tensor, Tensor, Tensor], scale: float | None, **asked: Any) -> Any:
        """Call the function with queries, keys and values, and what it takes of the rest; no scale if that is None."""
        names, mask = self.names, asked.pop("mask", None)
        values = {**self.fixed, **asked}
        if "causal" in names:
            values[names["causal"]] = mask is not None
        if scale is not None:
            values[names["scale"]] = scale
        if self.is_in_order:
            return self.function(*core, **values)  # the usual case, in which a microsecond counts
        values |= zip((names[each] for each in CORE), core, strict=True)
        args = [values.pop(each.name, each.default) for each in self.by_position]
        return self.function(*args, **values)

    def refusal(self, reason: str, made: str = "") -> Unresolved:
        """Return the error that says why a function can't be used as it is, and the wrapper that can.

        `made` is the name under which the wrapper calls an instance of a class.
        """
        module, _, attribute = self.name.partition(":")
        meanings = {name: meaning for meaning, name in self.names.items()}
        known = {each: each for each in (*CORE, "scale")} | {"causal": "False"}
        arguments = []
        for each in self.parameters:
            value = known.get(meanings.get(each.name, ""), repr(self.fixed.get(each.name, Ellipsis)))
            if _is_required(each) or value == "scale" or each.name in self.fixed:
                name = "" if each.kind is each.POSITIONAL_ONLY else f"{each.name}="
                arguments.append(name + value.replace("Ellipsis", "…"))
        given = ", ".join(arguments or [*CORE, "…"])
        making = f"; {made} = {attribute}(…)" if made else ""
        return Unresolved(
            f"implementation {self.name!r} can't be used as it is: {reason}; write in a file of your own, for "
            f"[B, H, N, D]: from {module} import {attribute.partition('.')[0]}{making}; "
            f"def attend(q, k, v, scale): return {made or attribute}({given})"
        )


def attend_of(function: Callable[..., Any], name: str) -> Attend | None:
    """Return what a name leads to as an attend: itself if it has our contract, else a foreign function adapted.

    None if it is an adapter. Raises Unresolved for a class, and for a function whose parameters can't be known.
    """
    if isinstance(function, type) and issubclass(function, torch.autograd.Function):
        function, name = function.apply, f"{name}.apply"
    parameters = parameters_of(function)
    if isinstance(function, type):
        if issubclass(function, nn.Module) and not _may_take_a_layer(parameters):
            forward = Foreign(partial(function.forward, None), name)  # without self
            reason = "it is a class, and the arguments of an instance aren't known"
            raise forward.refusal(f"{reason}; a layer has its own option: --layer {name}", made="core")
        return None
    if isinstance(getattr(function, "options", None), frozenset) or not _takes_a_core(parameters):
        return None
    return function if _is_ours(parameters) else _adapted(Foreign(function, name))


def _takes_a_core(parameters: Sequence[Parameter]) -> bool:
    """Return whether a function takes queries, keys and values, and so is no adapter."""
    positional = [each for each in parameters if each.kind in POSITIONAL]
    required = [each for each in positional if _is_required(each)]
    first = positional[0].name if positional else ""
    return len(required) >= ATTEND_PARAMETERS or _means("q", first) or first.lower().startswith("qkv")


def _is_ours(parameters: Sequence[Parameter]) -> bool:
    """Return whether a function is an `attend(q, k, v, scale)`, in which the scale may have a default."""
    positional = [each for each in parameters if each.kind in POSITIONAL]
    required, fourth = sum(map(_is_required, positional)), positional[ATTEND_PARAMETERS : ATTEND_PARAMETERS + 1]
    if required == ATTEND_PARAMETERS and not fourth:
        return any(each.kind is each.VAR_POSITIONAL for each in parameters)
    if required == ATTEND_PARAMETERS + 1:
        return not _means_something(fourth[0].name)
    has_scale = required == ATTEND_PARAMETERS and fourth[0].name == "scale" and not isinstance(fourth[0].default, bool)
    return has_scale and not _meanings(positional).keys() - {*CORE, "scale"}


def _may_take_a_layer(constructor: Sequence[Parameter]) -> bool:
    """Return whether a module's constructor may be an adapter: it needs one argument, and that is no size."""
    required = [each for each in constructor if _is_required(each) and each.kind not in VARIABLE]
    return len(required) == 1 and not (
        SIZE.fullmatch(required[0].name.lower()) or required[0].annotation in (int, float, str, "int", "float", "str")
    )


def _is_required(parameter: Parameter) -> bool:
    return parameter.default is parameter.empty


def _means(meaning: str, name: str) -> bool:
    return bool(re.fullmatch(MEANINGS[meaning], name.lower()))


def _means_something(name: str) -> bool:
    """Return whether the name of a parameter is known to mean something else than a scale."""
    patterns = (*(each for meaning, each in MEANINGS.items() if meaning != "scale"), *NEUTRAL, OTHER.pattern)
    is_scale = _means("scale", name)
    return not is_scale and any(re.fullmatch(pattern, name.lower()) for pattern in patterns)


def _meanings(parameters: Sequence[Parameter]) -> dict[str, Parameter]:
    """Return the first parameter of each meaning."""
    found: dict[str, Parameter] = {}
    for each in parameters:
        meaning = next((meaning for meaning in MEANINGS if _means(meaning, each.name)), None)
        if meaning and meaning not in found:
            found[meaning] = each
    return found


def _fixed(dropout: Parameter | None, parameters: Sequence[Parameter]) -> Iterator[tuple[str, Any]]:
    """Yield the parameters that always get one value: no dropout, and what is neutral where a value is required."""
    if dropout and (_is_required(dropout) or dropout.default):  # None may stand for no function
        yield dropout.name, 0.0
    for each in parameters:
        for pattern, value in NEUTRAL.items():
            if _is_required(each) and re.fullmatch(pattern, each.name.lower()):
                yield each.name, value


def _adapted(foreign: Foreign) -> Attend:
    """Return the attend that calls a foreign function; it declares what the function can do, and its options.

    The layout is found at the first call in each dtype on each device.
    """
    if absent := [each for each in CORE if each not in foreign.by_meaning]:
        words = {"q": "queries", "k": "keys", "v": "values"}
        raise foreign.refusal(f"no parameter is named as {' and '.join(words[each] for each in absent)}")
    if foreign.missing:
        raise foreign.refusal(f"it needs {' and '.join(foreign.missing)}")

    found = cache(partial(_find, foreign))

    @torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
    def way_of(dtype: torch.dtype, device: torch.device, mask: torch.dtype | None) -> tuple[Any, ...]:
        return tuple(found(dtype, device, mask))  # constants, which a graph can hold

    def attend(q: Tensor, k: Tensor, v: Tensor, scale: float, **asked: Any) -> Tensor:
        attn_mask = asked.get("attn_mask")
        number, place, power = way_of(q.dtype, q.device, None if attn_mask is None else attn_mask.dtype)
        layout, items = LAYOUTS[number], q.shape[0]
        if power is not None and scale != (own := q.shape[-1] ** power):
            q = q * (scale / own)
        core = layout.into(q), layout.into(k), layout.into(v)
        result = foreign.call(core, scale if power is None else None, **asked)
        return layout.back(result if isinstance(result, Tensor) else result[place], items)

    attend.__name__ = foreign.name
    attend.compiles = getattr(foreign.function, "compiles", False)  # type: ignore[attr-defined]  # as `compiling` does
    attend.__signature__ = _signature(foreign)  # type: ignore[attr-defined]  # functions take attributes
    return attend


def _signature(foreign: Foreign) -> inspect.Signature:
    keywords = {"mask": ("causal", None), "attn_mask": ("attn_mask", None), "enable_gqa": ("enable_gqa", False)}
    declared = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default)
        for name, (meaning, default) in keywords.items()
        if meaning in foreign.by_meaning
    ]
    core = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in (*CORE, "scale")]
    return inspect.Signature([*core, *declared, *foreign.options])


def _find(foreign: Foreign, dtype: torch.dtype, device: torch.device, mask: torch.dtype | None) -> Way:
    """Return how a function computes a core, found by calls on small tensors.

    `mask` is the dtype of an attn_mask, None without one. Raises `Unsupported` if its attn_mask has another meaning
    than that of torch's function, Unresolved if no way leads to attention, and what the function raises if it can't
    compute on the device.
    """
    if isinstance(foreign.function, nn.Module):
        foreign.function.to(device, dtype)
    failed: dict[str, object] = {}
    best, nearest = None, float("inf")
    # what watches the layer's own operators must not see these
    with nullcontext() if torch.compiler.is_compiling() else _disable_current_modes(), torch.no_grad():
        for error, way in _tried(foreign, dtype, device, mask, failed):
            if error < nearest:
                best, nearest = way, error
            if nearest < NEAR:
                break
    if mask is not None and nearest >= NEAR:
        raise Unsupported(f"the attn_mask of {foreign.name} is not that of F.scaled_dot_product_attention")
    if best is None:
        raise _failure(foreign, failed)
    if nearest >= FAR:
        names = ", ".join(each.name for each in LAYOUTS)
        raise foreign.refusal(
            f"it computes softmax(scale · q kᵀ) v in none of the layouts {names}; the nearest is off by {nearest:.0%}"
        )
    return best


def _tried(
    foreign: Foreign, dtype: torch.dtype, device: torch.device, mask: torch.dtype | None, failed: dict[str, object]
) -> Iterator[tuple[float, Way]]:
    """Yield each way that gives an output of the right shape, with its relative error; note why a layout has none."""
    generator = torch.Generator().manual_seed(0)
    sizes, asked = (BATCH, HEADS, TOKENS, WIDTH), dict[str, Any]()
    q, k, v = (torch.randn(sizes, generator=generator).to(device, dtype) for _ in CORE)
    if mask is not None:
        numbers = torch.randn((BATCH, 1, TOKENS, TOKENS), generator=generator).to(device)
        asked = {"attn_mask": numbers > 0 if mask == torch.bool else numbers.to(mask)}
    for powers in _powers(foreign.by_meaning.get("scale")):
        wide = q.cpu().double(), k.cpu().double(), v.cpu().double()
        masks = {name: each.cpu() for name, each in asked.items()}
        expected = {power: eager.attend(*wide, SCALE if power is None else WIDTH**power, **masks) for power in powers}
        for number, layout in enumerate(LAYOUTS):
            core = layout.into(q), layout.into(k), layout.into(v)
            try:
                result = foreign.call(core, SCALE if None in powers else None, **asked)
            except Exception as error:
                failed.setdefault(layout.name, error)
                continue
            several = _tensors(result)
            failed.setdefault(layout.name, f"returned {[list(each.shape) for each in several.values()]}")
            for place, output in several.items():
                if output.shape == core[0].shape:
                    o = layout.back(output, BATCH)
                    yield from ((_error(o, right), Way(number, place, power)) for power, right in expected.items())


def _powers(scale: Parameter | None) -> Iterator[tuple[float | None, ...]]:
    """Yield the scales to compare with, as in `Way`: that which is passed, and those of functions that take none."""
    if scale:
        yield (None,)
    if not (scale and _is_required(scale)):
        yield (-0.5, 0.0)


def _tensors(result: Any) -> dict[Any, Tensor]:
    """Return the tensors in a function's result, by their places."""
    several = result if isinstance(result, tuple | list) else [result]
    places = result if isinstance(result, Mapping) else dict(enumerate(several))
    return {place: each for place, each in places.items() if isinstance(each, Tensor)}


def _error(output: Tensor, expected: Tensor) -> float:
    """Return the error of an output, relative to what was expected; infinity if it isn't finite."""
    error = float((output.cpu().double() - expected).norm() / expected.norm())
    return error if error == error else float("inf")


def _failure(foreign: Foreign, failed: Mapping[str, object]) -> Exception:
    """Return why no call gave an output: the function's own error if all say that it can't compute here."""
    own = [error for error in failed.values() if isinstance(error, CANNOT)]
    return own[0] if len(own) == len(failed) else foreign.refusal(_said(failed))


def _said(failed: Mapping[str, object]) -> str:
    """Return the reasons of layouts in one line; those that are alike are said once."""
    layouts: dict[str, list[str]] = {}
    for layout, reason in failed.items():
        lines = f"{type(reason).__name__}: {reason}".splitlines() if isinstance(reason, Exception) else [str(reason)]
        layouts.setdefault(lines[0], []).append(layout)
    each = (f"{reason} (as {', '.join(names)})" for reason, names in layouts.items())
    return f"with {TOKENS} tokens of width {WIDTH}: {'; '.join(each)}"
