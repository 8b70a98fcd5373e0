"""Functions of other packages as kernels: a table says the layout of each that is known, and what it takes.

No GPU has run those that need one.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, wraps
from typing import Any

import torch
from torch import Tensor, nn

from impls.attend.package_calls import (
    first,
    in_fp8,
    in_graph,
    item_by_item,
    keeping_keys,
    line,
    of_module,
    packed,
    planned,
    wants_gradients,
    with_lower_triangle,
)
from impls.catalogue import DTYPE, IMPLEMENTATIONS, PACKING, Limits
from impls.contract import (
    ATTEND_PARAMETERS,
    Adapt,
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

REFUSALS = (AssertionError, NotImplementedError, ValueError)
"""What a package raises for a core that it doesn't take, with its reason."""

QUERIES = re.compile(r"x?(q|qs|qkv|query|queries)(_\w*)?")
"""The names of a first parameter that make a function no adapter."""


@dataclass(frozen=True)
class Known:
    """A function that computes a core on `[B, H, N, D]`, or on `[B, N, H, D]` if its tokens are first.

    `takes` maps the scale, keywords of a core and options to the function's parameters; to "" if it needs to be told
    nothing. `aligns_last` is true if its causal mask is ours only for as many keys as queries. `call` calls it.
    Other parameters keep their defaults.
    """

    takes: Mapping[str, str]
    tokens_first: bool = False
    aligns_last: bool = False
    call: Callable[..., Any] = lambda function, *qkv, **values: function(*qkv, **values)


OF_TORCH = {"scale": "scale", "mask": "is_causal", "attn_mask": "attn_mask", "enable_gqa": "enable_gqa"}
OF_FLASH = {"scale": "softmax_scale", "mask": "causal", "enable_gqa": ""}
OF_SAGE = {"scale": "sm_scale", "mask": "is_causal", "enable_gqa": ""}
OF_FLASHINFER = {"scale": "sm_scale", "mask": "causal", "enable_gqa": ""}

FLASH = Known(OF_FLASH, tokens_first=True, aligns_last=True)
FLASH_PACKED = Known({**OF_FLASH, PACKING: PACKING}, tokens_first=True, call=packed)
SAGE = Known(OF_SAGE, aligns_last=True, call=keeping_keys)

KNOWN: Mapping[str, Known] = {
    "torch:scaled_dot_product_attention": Known(OF_TORCH),
    "flash_attn:flash_attn_func": FLASH,
    "flash_attn:flash_attn_varlen_func": FLASH_PACKED,
    "flash_attn_interface:flash_attn_func": Known(
        {**OF_FLASH, DTYPE: DTYPE}, tokens_first=True, aligns_last=True, call=in_fp8
    ),
    "flash_attn_interface:flash_attn_varlen_func": FLASH_PACKED,
    "xformers:memory_efficient_attention": Known(
        {"scale": "scale", "mask": "causal"}, tokens_first=True, call=with_lower_triangle
    ),
    "cudnn:pygraph": Known({"scale": "attn_scale", "mask": "use_causal_mask", "enable_gqa": ""}, call=in_graph),
    "sageattention:sageattn": SAGE,
    "sageattention:sageattn_qk_int8_pv_fp16_cuda": SAGE,
    "sageattention:sageattn_qk_int8_pv_fp16_triton": SAGE,
    "sageattention:sageattn_qk_int8_pv_fp8_cuda": SAGE,
    "flashinfer:single_prefill_with_kv_cache": Known(
        OF_FLASHINFER, tokens_first=True, aligns_last=True, call=item_by_item
    ),
    "flashinfer:BatchPrefillWithRaggedKVCacheWrapper": Known(
        OF_FLASHINFER, tokens_first=True, aligns_last=True, call=planned
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
            raise Unsupported(f"{name} computes is_causal of torch only for as many keys as queries")
        if mask is not None and asked.get("attn_mask") is not None:
            raise Unsupported(f"{name} takes no causal mask beside another one")
        every = {"scale": scale, **({"mask": mask is not None} if "mask" in known.takes else {}), **asked}
        values = {known.takes[each]: value for each, value in every.items() if known.takes[each]}
        core = (each.transpose(1, 2) for each in (q, k, v)) if known.tokens_first else (q, k, v)
        o = first(known.call(function, *core, **values))
        return o.transpose(1, 2) if known.tokens_first else o

    attend.__name__ = name
    attend.options = frozenset(known.takes) - {"scale"}  # type: ignore[attr-defined]  # functions take attributes
    return attend


def of_package(name: str) -> Adapt:
    """Return the adapter of an entry of the catalogue whose core is a function of a package.

    The package is imported when a layer is built.
    """
    entry = IMPLEMENTATIONS[name]

    def adapt(layer: nn.Module, **options: Any) -> Implementation:
        function = imported(entry.function, f"implementation {name!r}")
        attend = attend_of(function, entry.function)
        assert attend is not None  # each entry's function is known
        return with_attend(_limited(attend, entry.limits))(layer, **options)

    adapt.options = frozenset(entry.options)  # type: ignore[attr-defined]  # functions take attributes
    return adapt


def _limited(attend: Attend, limits: Limits) -> Attend:
    """Return an attend that raises `Unsupported` for what is beyond its limits, and for what its package refuses."""

    @wraps(attend)
    def attend_limited(q: Tensor, k: Tensor, v: Tensor, scale: float, **asked: Any) -> Tensor:
        widths = (q.shape[-1], k.shape[-1], v.shape[-1])
        if reason := _refused(limits, q.dtype, widths, q.device, wants_gradients=wants_gradients(q, k, v)):
            raise Unsupported(reason)
        try:
            return attend(q, k, v, scale, **asked)
        except REFUSALS as error:
            raise Unsupported(f"{attend.__name__}: {line(error)}") from None

    return attend_limited


@cache
def _refused(
    limits: Limits, dtype: torch.dtype, widths: tuple[int, ...], device: torch.device, *, wants_gradients: bool
) -> str:
    """Return the limits' refusal of tensors of a dtype on a device."""
    capability = torch.cuda.get_device_capability(device) if device.type == "cuda" else None
    return limits.refusal(str(dtype).removeprefix("torch."), widths, capability, wants_gradients=wants_gradients)


flash_attn = of_package("flash_attn")
flash_attn_3 = of_package("flash_attn_3")
flash_attn_4 = of_package("flash_attn_4")
flash_attn_varlen = of_package("flash_attn_varlen")
xformers = of_package("xformers")
cudnn_frontend = of_package("cudnn_frontend")
sageattention = of_package("sageattention")
flashinfer = of_package("flashinfer")
