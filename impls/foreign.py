"""Functions of other packages as kernels: the names of their parameters say what to pass, a call shows the layout."""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from inspect import Parameter
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import _disable_current_modes

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


@dataclass(frozen=True)
class Way:
    """How a function computes a core: its layout, the place of the output in its result, and its own scale.

    The scale is passed if `power` is None; else the function takes `D**power`.
    """

    layout: Layout
    place: int
    power: float | None


class Foreign:
    """A function with the meanings of its parameters; `name` is its `module:attribute`."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self.function = function
        self.name = name
        every = [each for each in parameters_of(function) if each.kind not in VARIABLE]
        self.by_meaning = _meanings(every)
        known = {each.name for each in self.by_meaning.values()}
        self.fixed = dict(_fixed(self.by_meaning.get("dropout"), every))
        self.missing = [each.name for each in every if _is_required(each) and each.name not in {*known, *self.fixed}]
        self.options = [
            each for each in every if each.kind is each.KEYWORD_ONLY and each.name not in {*known, *self.fixed, "mask"}
        ]
        last = max((at for at, each in enumerate(every, 1) if each.kind is each.POSITIONAL_ONLY), default=0)
        first = [self.by_meaning.get(each) for each in CORE]
        in_order = ATTEND_PARAMETERS if first == every[:ATTEND_PARAMETERS] else 0
        self.by_position = every[: max(last, in_order)]

    def call(self, q: Tensor, k: Tensor, v: Tensor, scale: float | None, **asked: Any) -> Any:
        """Call the function with what it takes of these; `mask` is None or "causal"."""
        given = {**self.fixed, "q": q, "k": k, "v": v, "scale": scale, "causal": asked.pop("mask", None) is not None}
        values = {each.name: given[meaning] for meaning, each in self.by_meaning.items() if meaning in given}
        if scale is None and "scale" in self.by_meaning:
            del values[self.by_meaning["scale"].name]
        values |= {**self.fixed, **asked}
        args = [values.pop(each.name, each.default) for each in self.by_position]
        return self.function(*args, **values)

    def refusal(self, reason: str) -> Unresolved:
        """Return the error that says why a function can't be used as it is, and the wrapper that can."""
        module, _, attribute = self.name.partition(":")
        names = {each.name: meaning for meaning, each in self.by_meaning.items() if meaning in (*CORE, "scale")}
        core = [f"{name}={meaning}" for name, meaning in names.items()] or [*CORE]
        given = ", ".join([*core, *(f"{name}=…" for name in self.missing)]) + ("" if self.missing else ", …")
        first = attribute.partition(".")[0]
        return Unresolved(
            f"implementation {self.name!r} can't be used as it is: {reason}; in a file of your own write: "
            f"from {module} import {first}; def attend(q, k, v, scale): return {attribute}({given})  # [B, H, N, D]"
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
            raise Foreign(function, name).refusal("it is a class, and its arguments aren't known")
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
    is_scale = required == ATTEND_PARAMETERS and fourth[0].name == "scale"
    return is_scale and not any(_means_something(each.name) for each in positional[ATTEND_PARAMETERS + 1 :])


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
    find = cache(lambda dtype, device, mask: _find(foreign, dtype, device, mask))

    @torch.compiler.assume_constant_result
    def way_of(dtype: torch.dtype, device: torch.device, mask: torch.dtype | None) -> Way:
        return find(dtype, device, mask)

    def attend(q: Tensor, k: Tensor, v: Tensor, scale: float, **asked: Any) -> Tensor:
        attn_mask = asked.get("attn_mask")
        way = way_of(q.dtype, q.device, None if attn_mask is None else attn_mask.dtype)
        if way.power is not None and scale != (own := q.shape[-1] ** way.power):
            q = q * (scale / own)
        q, k, v = (way.layout.into(each) for each in (q, k, v))
        result = foreign.call(q, k, v, scale if way.power is None else None, **asked)
        output: Tensor = result if isinstance(result, Tensor) else result[way.place]
        return way.layout.back(output, q.shape[0])

    attend.__name__ = foreign.name
    attend.compiles = getattr(foreign.function, "compiles", False)  # type: ignore[attr-defined]  # as `compiling` does
    attend.__signature__ = _signature(foreign)  # type: ignore[attr-defined]  # functions take attributes
    return attend


def _signature(foreign: Foreign) -> inspect.Signature:
    keywords = {
        "mask": "causal" in foreign.by_meaning,
        "attn_mask": "attn_mask" in foreign.by_meaning,
        "enable_gqa": "enable_gqa" in foreign.by_meaning,
    }
    declared = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=None) for name, is_there in keywords.items() if is_there
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
    failed: dict[str, Exception] = {}
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
    foreign: Foreign, dtype: torch.dtype, device: torch.device, mask: torch.dtype | None, failed: dict[str, Exception]
) -> Iterator[tuple[float, Way]]:
    """Yield each way that gives an output of the right shape, with its relative error; note the layouts that fail."""
    generator = torch.Generator().manual_seed(0)
    sizes, asked = (BATCH, HEADS, TOKENS, WIDTH), dict[str, Any]()
    q, k, v = (torch.randn(sizes, generator=generator).to(device, dtype) for _ in CORE)
    if mask is not None:
        numbers = torch.randn((BATCH, 1, TOKENS, TOKENS), generator=generator).to(device)
        asked = {"attn_mask": numbers > 0 if mask == torch.bool else numbers.to(mask)}
    scale = foreign.by_meaning.get("scale")
    for is_passed in (True, False) if scale and not _is_required(scale) else (bool(scale),):
        powers = (None,) if is_passed else (-0.5, 0.0)
        expected = {power: _formula(q, k, v, SCALE if power is None else WIDTH**power, asked) for power in powers}
        for layout in LAYOUTS:
            try:
                result = foreign.call(*map(layout.into, (q, k, v)), SCALE if is_passed else None, **asked)
            except Exception as error:
                failed.setdefault(layout.name, error)
                continue
            for place, output in _outputs(result, layout):
                yield from ((_error(output, right), Way(layout, place, power)) for power, right in expected.items())


def _outputs(result: Any, layout: Layout) -> Iterator[tuple[Any, Tensor]]:
    """Yield the tensors in a function's result that have the shape of an output, with their places."""
    several = (
        result
        if isinstance(result, Mapping)
        else dict(enumerate(result if isinstance(result, tuple | list) else [result]))
    )
    shape = layout.into(torch.empty(BATCH, HEADS, TOKENS, WIDTH, device="meta")).shape
    for place, each in several.items():
        if isinstance(each, Tensor) and each.shape == shape:
            yield place, layout.back(each, BATCH)


def _formula(q: Tensor, k: Tensor, v: Tensor, scale: float, asked: Mapping[str, Any]) -> Tensor:
    """Return attention on the CPU in float64."""
    q, k, v = (each.cpu().double() for each in (q, k, v))
    scores = scale * q @ k.mT
    if (mask := asked.get("attn_mask")) is not None:
        mask = mask.cpu()
        scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask
    return scores.softmax(-1) @ v


def _error(output: Tensor, expected: Tensor) -> float:
    """Return the error of an output, relative to what was expected; infinity if it isn't finite."""
    error = float((output.cpu().double() - expected).norm() / expected.norm())
    return error if error == error else float("inf")


def _failure(foreign: Foreign, failed: Mapping[str, Exception]) -> Exception:
    """Return why no call gave an output: the function's own error if all say that it can't compute here."""
    for kind in (Unsupported, NotImplementedError, MemoryError, torch.OutOfMemoryError):
        if len(failed) == len(LAYOUTS) and all(isinstance(error, kind) for error in failed.values()):
            return next(iter(failed.values()))
    reasons = {layout: f"{type(error).__name__}: {error}".splitlines()[0] for layout, error in failed.items()}
    said = "; ".join(
        f"{layout}: {reasons.get(layout, 'an output of another shape')}" for layout in (e.name for e in LAYOUTS)
    )
    return foreign.refusal(f"no call with {TOKENS} tokens of width {WIDTH} gives an output, {said}")
