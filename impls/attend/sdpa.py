"""PyTorch's scaled_dot_product_attention, with the backend that PyTorch chooses or with a fixed one.

If `impls.lookup.activate` has registered a package's FlashAttention, `adapt_flash` runs that one.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from impls.attend import hidden
from impls.contract import Attend, Unsupported, repeated, with_attend

ON_GPUS_ALONE = (SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION)

MISSING_KERNEL = ("No available kernel", "No viable backend")
"""Words in torch's errors if no allowed backend can compute a core."""


@contextmanager
def explained(prefix: str = "") -> Iterator[None]:
    """Raise `Unsupported` with all of torch's reasons if no allowed backend can compute a core inside.

    torch gives the reasons as warnings, one per backend, so no warning from inside is shown.
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
    """Return whether torch raised an error because no allowed backend can compute a core."""
    return any(words in str(error) for words in MISSING_KERNEL)


def attend(
    q: Tensor, k: Tensor, v: Tensor, scale: float, *, mask: str | None = None, attn_mask: Tensor | None = None,
    enable_gqa: bool = False, gqa: str = "built-in",
) -> Tensor:  # fmt: skip
    """Return `F.scaled_dot_product_attention(q, k, v, scale=scale)`, with `is_causal` for a causal mask.

    With fewer key heads, `gqa` is "built-in" for torch's `enable_gqa`, or "repeat" to copy the heads first.
    q `[B, H, Nq, D]`, k `[B, H, Nk, D]`, v `[B, H, Nk, Dv]`, result `[B, H, Nq, Dv]`.
    Source: `torch.nn.functional.scaled_dot_product_attention`, PyTorch documentation.
    """
    if enable_gqa and gqa == "repeat":
        k, v, enable_gqa = *repeated(q, k, v), False
    if attn_mask is not None and mask is not None:  # some backends refuse both, so they become one tensor
        nothing = False if attn_mask.dtype == torch.bool else float("-inf")
        attn_mask = attn_mask.masked_fill(hidden(q.shape[-2], k.shape[-2], q.device), nothing)
        mask = None
    return F.scaled_dot_product_attention(
        q, k, v, attn_mask, scale=scale, is_causal=mask is not None, enable_gqa=enable_gqa
    )


def pinned(backend: SDPBackend) -> Attend:
    """Return the attend that allows only one backend.

    It raises `Unsupported` with torch's own reasons if that backend can't compute the core.
    Choosing the backend takes a few microseconds of Python per call, which timings include.
    """

    @wraps(attend)
    def attend_pinned(q: Tensor, *others: Any, **keywords: Any) -> Tensor:
        with sdpa_kernel(backend):
            try:
                return attend(q, *others, **keywords)
            except RuntimeError as error:
                if not lacks_kernel(error):
                    raise
                missing = f"PyTorch has no {backend.name} kernel for the {q.device.type.upper()}. "
                is_missing = q.device.type == "cpu" and backend in ON_GPUS_ALONE
                attn_mask = keywords.get("attn_mask")
                if attn_mask is not None and attn_mask.requires_grad and torch.is_grad_enabled():
                    missing, is_missing = f"{backend.name} computes no gradient of attn_mask. ", True
                with explained(is_missing * missing):  # not around each call, because that takes microseconds
                    return attend(q, *others, **keywords)

    attend_pinned.inside = partial(sdpa_kernel, backend)  # type: ignore[attr-defined]  # functions take them
    return attend_pinned


adapt = with_attend(attend, "sdpa")
adapt_math = with_attend(pinned(SDPBackend.MATH))
adapt_flash = with_attend(pinned(SDPBackend.FLASH_ATTENTION))
adapt_efficient = with_attend(pinned(SDPBackend.EFFICIENT_ATTENTION))
adapt_cudnn = with_attend(pinned(SDPBackend.CUDNN_ATTENTION))
