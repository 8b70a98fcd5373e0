"""Kernels of packages: FlashAttention 2, 3 and 4, and memory_efficient_attention of xformers.

Each function takes the package's function first, then the arguments of an attend.
"""

from collections.abc import Callable
from functools import cache, wraps
from typing import Any

import torch
from torch import Tensor, nn

from impls.catalogue import IMPLEMENTATIONS
from impls.contract import Adapt, Attend, Implementation, Unresolved, Unsupported, imported, with_attend
from impls.packing import Packing

REFUSALS = (AssertionError, NotImplementedError, ValueError, RuntimeError)
"""The errors by which packages reject a core."""

FAILURES = (torch.OutOfMemoryError, torch.AcceleratorError)
"""RuntimeErrors that don't mean that a package rejects a core."""


def flash(
    function: Callable[..., Any], q: Tensor, k: Tensor, v: Tensor, scale: float, *, mask: str | None = None,
    enable_gqa: bool = False,  # noqa: ARG001 - the package sees it by the shapes
) -> Tensor:  # fmt: skip
    """Call `flash_attn_func` of FlashAttention on `[B, N, H, D]`."""
    if mask is not None and q.shape[-2] != k.shape[-2]:
        raise Unsupported("its causal mask ends in the lower right corner, so it needs as many keys as queries")
    return _first(function(*_tokens_first(q, k, v), softmax_scale=scale, causal=mask is not None)).transpose(1, 2)


def flash_packed(
    function: Callable[..., Any], q: Tensor, k: Tensor, v: Tensor, scale: float, *, packing: Packing,
    mask: str | None = None, enable_gqa: bool = False,  # noqa: ARG001 - the package sees it by the shapes
) -> Tensor:  # fmt: skip
    """Call `flash_attn_varlen_func` of FlashAttention on `[T, H, D]`, the tokens of all items."""
    ends, longest = (packing.offsets,) * 2, (packing.longest,) * 2
    packed = (each.squeeze(0) for each in _tokens_first(q, k, v))
    o = _first(function(*packed, *ends, *longest, softmax_scale=scale, causal=mask is not None))
    return o.unsqueeze(0).transpose(1, 2)


def efficient(
    function: Callable[..., Any], q: Tensor, k: Tensor, v: Tensor, scale: float, *, mask: str | None = None
) -> Tensor:
    """Call `memory_efficient_attention` of xformers on `[B, N, H, D]`."""
    bias = None if mask is None else _lower_triangular()
    output: Tensor = function(*_tokens_first(q, k, v), attn_bias=bias, scale=scale)
    return output.transpose(1, 2)


@cache
def _lower_triangular() -> Any:
    """Return the causal mask of xformers, which is an object of its own class."""
    return imported("xformers.ops:LowerTriangularMask", "the causal mask of xformers")()


def of_package(name: str, call: Callable[..., Tensor]) -> Adapt:
    """Return the adapter of an implementation that calls its package's function.

    It raises `Unsupported`, with the package's message, if the package can't be imported or rejects a core.
    """
    path = IMPLEMENTATIONS[name].function

    def adapt(layer: nn.Module, **options: Any) -> Implementation:
        try:
            function = imported(path, path)
        except Unresolved as error:
            raise Unsupported(str(error)) from None
        return with_attend(_refusing(path, function, call))(layer, **options)

    return adapt


def _refusing(path: str, function: Callable[..., Any], call: Callable[..., Tensor]) -> Attend:
    """Return an attend that raises `Unsupported` with the package's reason if the package rejects the core."""

    @wraps(call)
    def attend(*qkv_scale: Any, **asked: Any) -> Tensor:
        try:
            return call(function, *qkv_scale, **asked)
        except FAILURES:
            raise
        except REFUSALS as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise Unsupported(f"{path}: {reason}") from None

    attend.__name__ = path.partition(":")[2]
    return attend


def _tokens_first(*tensors: Tensor) -> list[Tensor]:
    """Return `[B, H, N, D]` as `[B, N, H, D]`."""
    return [each.transpose(1, 2) for each in tensors]


def _first(result: Any) -> Tensor:
    """Return the first result of a function that may return several."""
    output: Tensor = result if isinstance(result, Tensor) else result[0]
    return output


flash_attn = of_package("flash_attn", flash)
flash_attn_3 = of_package("flash_attn_3", flash)
flash_attn_4 = of_package("flash_attn_4", flash)
flash_attn_varlen = of_package("flash_attn_varlen", flash_packed)
xformers = of_package("xformers", efficient)
