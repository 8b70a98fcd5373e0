"""Functions of other packages as kernels: a table says the layout of each that is known, and what it takes."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from impls.contract import (
    ATTEND_PARAMETERS,
    Attend,
    Implementation,
    Unresolved,
    Unsupported,
    imported,
    is_required,
    parameters_of,
    takes_core,
    with_attend,
)

QUERIES = re.compile(r"x?(q|qs|qkv|query|queries)(_\w*)?")
"""The names of a first parameter that make a function no adapter."""


@dataclass(frozen=True)
class Known:
    """A function that computes a core on `[B, H, N, D]`, or on `[B, N, H, D]` if its tokens are first.

    `takes` maps the scale, keywords of a core and options to the function's parameters; to "" if it needs to be told
    nothing. `aligns_last` is true if its causal mask lets the last query see all keys. `call` calls it.
    Other parameters keep their defaults.
    """

    takes: Mapping[str, str]
    tokens_first: bool = False
    aligns_last: bool = False
    call: Callable[..., Any] = lambda function, *qkv, **values: function(*qkv, **values)


def item_by_item(function: Callable[..., Tensor], q: Tensor, k: Tensor, v: Tensor, **values: Any) -> Tensor:
    """Call a function that takes one item of the batch."""
    return torch.stack([function(*each, **values) for each in zip(q, k, v, strict=True)])


def of_module(function: Callable[..., Any], q: Tensor, k: Tensor, v: Tensor, **values: Any) -> Tensor:
    """Call a function of transformers, which takes the layer first, and returns `[B, N, H, D]`."""
    layer = nn.Module()
    layer.num_key_value_groups = q.shape[1] // k.shape[1]  # type: ignore[assignment]  # no submodule
    o: Tensor = function(layer, q, k, v, **{"attention_mask": None, **values})[0]
    return o.transpose(1, 2)


OF_TORCH = {"scale": "scale", "mask": "is_causal", "attn_mask": "attn_mask", "enable_gqa": "enable_gqa"}
FLASH = Known({"scale": "softmax_scale", "mask": "causal", "enable_gqa": ""}, tokens_first=True, aligns_last=True)
SAGE = Known({"scale": "sm_scale", "mask": "is_causal", "enable_gqa": ""})

KNOWN: Mapping[str, Known] = {
    "torch:scaled_dot_product_attention": Known(OF_TORCH),
    "flash_attn:flash_attn_func": FLASH,
    "flash_attn_interface:flash_attn_func": FLASH,
    "xformers:memory_efficient_attention": Known({"scale": "scale"}, tokens_first=True),
    "sageattention:sageattn": SAGE,
    "sageattention:sageattn_qk_int8_pv_fp16_cuda": SAGE,
    "sageattention:sageattn_qk_int8_pv_fp16_triton": SAGE,
    "sageattention:sageattn_qk_int8_pv_fp8_cuda": SAGE,
    "flashinfer:single_prefill_with_kv_cache": Known(
        {"scale": "sm_scale", "mask": "causal", "enable_gqa": ""},
        tokens_first=True, aligns_last=True, call=item_by_item,
    ),
    "transformers:sdpa_attention_forward": Known(
        {"scale": "scaling", "mask": "is_causal", "attn_mask": "attention_mask", "enable_gqa": ""}, call=of_module
    ),
    "diffusers:dispatch_attention_fn": Known({**OF_TORCH, "backend": "backend"}, tokens_first=True),
}  # fmt: skip
"""The known functions, by package and name. `docs/implementations.md` lists them.

Sources: the packages' own signatures and docstrings, in 2026.
"""


def attend_of(function: Callable[..., Any], name: str) -> Attend | None:
    """Return what a name leads to as an attend: itself if it has our contract, a known function adapted.

    None if it is an adapter. Raises Unresolved for any other function of queries, keys and values, and for a class that
    can't take a layer alone, with the wrapper to write.
    """
    module, _, attribute = name.partition(":")
    if known := KNOWN.get(f"{module.partition('.')[0]}:{attribute.rpartition('.')[2]}"):
        return _adapted(function, known, name)
    if isinstance(getattr(function, "options", None), frozenset):
        return None  # `with_attend` made it
    parameters = parameters_of(function)
    required = sum(map(is_required, parameters))
    if isinstance(function, type):
        if required != 1 or issubclass(function, torch.autograd.Function):
            own = f"a layer has its own option, --layer {name}"
            raise _refusal(name, f"it is a class, which must take a layer alone; {own}")
        return None
    if required < ATTEND_PARAMETERS and not (parameters and QUERIES.fullmatch(parameters[0].name.lower())):
        return None
    if not takes_core(function):
        raise _refusal(name, "it is no attend(q, k, v, scale), and no known function")
    return function


def _refusal(name: str, reason: str) -> Unresolved:
    """Return the error that says why a function can't be used as it is, and the wrapper that can."""
    module, _, attribute = name.partition(":")
    return Unresolved(
        f"implementation {name!r} can't be used as it is: {reason}; write in a file of your own, for [B, H, N, D]: "
        f"from {module} import {attribute.partition('.')[0]}; "
        f"def attend(q, k, v, scale): return {attribute}(q, k, v, …)"
    )


def _adapted(function: Callable[..., Any], known: Known, name: str) -> Attend:
    """Return the attend that calls a known function."""

    def attend(q: Tensor, k: Tensor, v: Tensor, scale: float, *, mask: str | None = None, **asked: Any) -> Tensor:
        if mask is not None and known.aligns_last and q.shape[-2] != k.shape[-2]:
            raise Unsupported(f"{name} lets the last query see all keys, which is_causal of torch does not")
        if mask is not None and asked.get("attn_mask") is not None:
            raise Unsupported(f"{name} takes no causal mask beside another one")
        every = {"scale": scale, **({"mask": mask is not None} if "mask" in known.takes else {}), **asked}
        values = {known.takes[each]: value for each, value in every.items() if known.takes[each]}
        core = (each.transpose(1, 2) for each in (q, k, v)) if known.tokens_first else (q, k, v)
        result = known.call(function, *core, **values)
        o: Tensor = result if isinstance(result, Tensor) else result[0]
        return o.transpose(1, 2) if known.tokens_first else o

    attend.__name__ = name
    attend.options = frozenset(known.takes) - {"scale"}  # type: ignore[attr-defined]  # functions take attributes
    return attend


def flash_attn(layer: nn.Module) -> Implementation:
    """Return the layer with `flash_attn_func` of the package flash-attn as its core."""
    name = "flash_attn:flash_attn_func"
    return with_attend(_adapted(imported(name, "implementation 'flash_attn'"), FLASH, name))(layer)
