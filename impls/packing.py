"""Packed items, whose lengths may differ: their tokens follow each other without padding."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any

import torch
from torch import Tensor, nn

from impls.catalogue import PACKING
from impls.contract import declared_options

Apart = Callable[["Packing", str], Any]
"""The attribute `apart` of an attend, which makes what it needs from a packing and a mask once per batch."""


@dataclass(frozen=True)
class Packing:
    """The places of items in a packed batch, which a data loader knows and all layers of a model share.

    `lengths` are the tokens of each item, on the host; `longest` is the most tokens that an item may have. `offsets`
    `[B + 1]`, int32, on the device, are the starts of the items and the end. `made` is the result of `apart`.
    """

    lengths: tuple[int, ...]
    longest: int
    offsets: Tensor
    made: Any = None

    @property
    def spans(self) -> list[tuple[int, int]]:
        """The first token of each item, and the token after its last."""
        return [*pairwise(accumulate(self.lengths, initial=0))]


def packs(function: object) -> bool:
    """Return whether a layer's core takes packed items."""
    attend = getattr(function, "attend", None)
    return isinstance(function, nn.Module) and callable(attend) and PACKING in declared_options(attend)


def pack(layer: Any, lengths: Sequence[int], longest: int, device: torch.device) -> None:
    """Set the lengths of items for the next calls of a layer whose core takes packed items."""
    apart: Apart | None = getattr(getattr(layer.attend, "func", layer.attend), "apart", None)
    with torch.inference_mode(False):  # a compiled core would recompile for inference tensors
        offsets = torch.tensor([0, *accumulate(lengths)], dtype=torch.int32).to(device)
        packing = Packing(tuple(lengths), longest, offsets)
        vars(layer)[PACKING] = packing if apart is None else replace(packing, made=apart(packing, layer.mask))


def asked(layer: Any, padding: Sequence[Tensor], bias: Tensor | None = None) -> dict[str, Any]:
    """Return the keywords that a layer gives its core: a mask with padding and bias or a packing, and grouped heads.

    `padding` has the boolean mask `[B, N]`, True at padding, if items are padded.
    """
    attn_mask = with_padding(bias, padding[-1]) if padding else bias
    keywords: dict[str, Any] = {"enable_gqa": True} if "enable_gqa" in layer.asks else {}
    if attn_mask is not None:
        keywords["attn_mask"] = attn_mask
    elif (packing := vars(layer).get(PACKING)) is not None:
        keywords[PACKING] = packing
    return keywords


def with_padding(bias: Tensor | None, padding: Tensor) -> Tensor:
    """Return a mask for the core: False, or minus infinity in a bias, at keys that are `padding` `[B, N]`."""
    hidden = padding[:, None, None]  # [B, 1, 1, N]
    return ~hidden if bias is None else bias.masked_fill(hidden, float("-inf"))
