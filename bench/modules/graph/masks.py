"""What the masks of a model do: they hide keys or later tokens, or they are a bias of the scores."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from impls.catalogue import CAUSAL, GIVEN, LEARNED, PADDING

LOWEST = -1000.0
"""A number that hides a score when it is added: nothing is left of it after the softmax."""

OTHER = "other"
"""What hides other pairs than CAUSAL and PADDING do."""


@dataclass(frozen=True)
class Mask:
    """A mask of a core, as it was when the core took it.

    `kind` is CAUSAL (upper left corner), PADDING (the same for all queries and heads of an item), GIVEN, LEARNED or
    OTHER. A floating-point mask whose numbers are all 0, or so low that nothing of a score is left, is no bias.
    `lengths` are the keys that PADDING leaves of each item, empty if the mask has no items or if none is left of one.
    """

    kind: str
    dtype: str
    shape: tuple[int, ...]
    lengths: tuple[int, ...] = ()

    def __str__(self) -> str:
        """Return the dtype and the shape: `float32 [8, 1, 1, 128]`."""
        return f"{self.dtype} {list(self.shape)}"


def noted(mask: Any, *, shows: bool = True, is_subtracted: bool = False) -> tuple[Mask, ...]:
    """Return what is kept of a mask, nothing if it is none; a boolean one `shows` what is True, or hides it."""
    if not isinstance(mask, Tensor):
        return ()
    with torch.no_grad():
        values = -mask.detach() if is_subtracted else mask.detach()
        kind = _kind(values, is_learned=mask.requires_grad, shows=shows)
        lengths = _lengths(_hidden(values, shows=shows)) if kind == PADDING else ()
    return (Mask(kind, str(mask.dtype).removeprefix("torch."), tuple(mask.shape), lengths),)


def _hidden(mask: Tensor, *, shows: bool) -> Tensor:
    if mask.dtype == torch.bool:
        return ~mask if shows else mask
    return mask <= LOWEST


def _lengths(hidden: Tensor) -> tuple[int, ...]:
    if hidden.dim() != len("BHNM"):
        return ()
    left = (~hidden[:, 0, 0]).sum(-1).tolist()
    return tuple(left) if min(left) else ()


def _kind(mask: Tensor, *, is_learned: bool, shows: bool) -> str:
    # an expanded mask has the same numbers again
    for place, (size, stride) in enumerate(zip(mask.shape, mask.stride(), strict=True)):
        mask = mask.narrow(place, 0, 1) if size > 1 and stride == 0 else mask
    hidden = _hidden(mask, shows=shows)
    if mask.dtype != torch.bool and (is_learned or not bool((hidden | (mask == 0)).all())):
        return LEARNED if is_learned else GIVEN
    if hidden.dim() < 2:
        return PADDING
    queries, keys = hidden.shape[-2:]
    if queries > 1 and bool((hidden == torch.ones(queries, keys, dtype=torch.bool, device=mask.device).triu(1)).all()):
        return CAUSAL
    per_item = hidden[..., :1, :1, :] if hidden.dim() > len("HNM") else hidden[..., :1, :]
    return PADDING if bool((hidden == per_item).all()) else OTHER
