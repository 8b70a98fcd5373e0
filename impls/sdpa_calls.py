"""Find the names under which `F.scaled_dot_product_attention` is called, and replace it there."""

import functools
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention
from torch import Tensor, nn

from impls.catalogue import CORE_KEYWORDS
from impls.contract import Attend, checked

SDPA = "scaled_dot_product_attention"
"""The name of torch's function in `torch.nn.functional`."""

ORIGINAL = F.scaled_dot_product_attention
"""torch's own function."""

CORE_DIMENSIONS = 4
"""The dimensions of queries, keys and values for an `attend`: `[B, H, N, D]`."""

Name = tuple[str, str]
"""A Python module and the name of torch's function in it."""

OF_TORCH: Name = (F.__name__, SDPA)

SHARED = ("torch", __name__.partition(".")[0])
"""The packages in which torch's function is not replaced."""


def names_of_sdpa(module: nn.Module) -> tuple[Name, ...]:
    """Return the names of torch's function: its own, and the ones under which a module's packages import it."""
    packages = {type(each).__module__.partition(".")[0] for each in module.modules()}.difference(SHARED)
    every = [(name, vars(of)) for name, of in [*sys.modules.items()] if name.partition(".")[0] in packages]
    own = [(name, key) for name, of in every for key, value in [*of.items()] if value is ORIGINAL]
    return OF_TORCH, *own


class SDPAReplaced(AbstractContextManager[None]):
    """Replaces `F.scaled_dot_product_attention` under these names while the context lasts; reusable."""

    def __init__(self, function: Callable[..., Tensor], names: Sequence[Name] = (OF_TORCH,)) -> None:
        self._function = function
        self._names = [(vars(sys.modules[module]), name) for module, name in names]
        self._before: list[list[Any]] = []

    def __enter__(self) -> None:
        self._before.append([of[name] for of, name in self._names])
        for of, name in self._names:
            of[name] = self._function

    def __exit__(self, *_: object) -> None:
        for (of, name), value in zip(self._names, self._before.pop(), strict=True):
            of[name] = value


def mask_cast(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, *args: Any, **of: Any
) -> Tensor:
    """Call torch's function with a floating-point mask cast to the dtype of the queries.

    A module that is cast to float64 may still make its mask in float32. On a CPU torch 2.13 then silently skips scale
    and mask for half of the scores.
    """
    if attn_mask is not None and attn_mask.is_floating_point():
        attn_mask = attn_mask.to(query.dtype)
    return ORIGINAL(query, key, value, attn_mask, *args, **of)


def stand_in(attend: Attend) -> Callable[..., Tensor]:
    """Return a function with the signature of `F.scaled_dot_product_attention` that calls an attend.

    The attend gets the CORE_KEYWORDS that a call uses. If it calls torch's function itself, the original runs.
    """
    running: list[bool] = []

    def scaled_dot_product_attention(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        if running:
            return ORIGINAL(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
        asked = (attn_mask, dropout_p or None, "causal" if is_causal else None, enable_gqa or None)
        options = {name: given for name, given in zip(CORE_KEYWORDS, asked, strict=True) if given is not None}
        running.append(True)
        try:
            return attend(query, key, value, query.shape[-1] ** -0.5 if scale is None else scale, **options)
        finally:
            running.clear()

    return scaled_dot_product_attention


@functools.cache  # reading a signature takes as long as a small core
def bridge(attend: Attend) -> Callable[..., Tensor]:
    """Return a stand-in for `F.scaled_dot_product_attention` that calls an attend; other keywords are `Unsupported`."""
    return stand_in(any_dimensions(checked(attend)))


def any_dimensions(attend: Attend) -> Attend:
    """Return an attend that also takes three dimensions, as one head, and more than four."""

    def reshaped(q: Tensor, k: Tensor, v: Tensor, scale: float, **options: Any) -> Tensor:
        if q.dim() == CORE_DIMENSIONS:
            return attend(q, k, v, scale, **options)
        *lead, tokens, _ = q.shape
        if (mask := options.get("attn_mask")) is not None:
            options["attn_mask"] = _headed(mask.expand(*lead, tokens, k.shape[-2]))
        o: Tensor = attend(*map(_headed, (q, k, v)), scale, **options)
        return o.reshape(*lead, *o.shape[-2:])

    return reshaped


def _headed(tensor: Tensor) -> Tensor:
    """Return a tensor `[…, B, H, N, D]` or `[B, N, D]` as `[B, H, N, D]`."""
    return tensor.unsqueeze(1) if tensor.dim() < CORE_DIMENSIONS else tensor.flatten(0, -CORE_DIMENSIONS)
