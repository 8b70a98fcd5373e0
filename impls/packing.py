"""Items of different lengths, packed: their tokens one after the other, without padding."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any

import torch
from torch import Tensor, nn

from impls.catalogue import PACKING
from impls.contract import declared_options

Apart = Callable[["Packing", str], Any]
"""The attribute `apart` of an attend: what it makes of a packing and a layer's mask once for a batch, not in calls."""


@dataclass(frozen=True)
class Packing:
    """Where the items of a packed batch lie: what a data loader knows, and the layers of a model share.

    `lengths` are the tokens of each item on the host, `longest` is the most that an item may have, `offsets` `[B + 1]`,
    int32, is where each item begins, and the end, on the device. `made` is what the attend has made apart.
    """

    lengths: tuple[int, ...]
    longest: int
    offsets: Tensor
    made: Any = None

    @property
    def spans(self) -> list[tuple[int, int]]:
        """The first token of each item, and the one after its last."""
        return [*pairwise(accumulate(self.lengths, initial=0))]


def packs(function: object) -> bool:
    """Return whether a layer has a core that takes packed items."""
    attend = getattr(function, "attend", None)
    return isinstance(function, nn.Module) and callable(attend) and PACKING in declared_options(attend)


def pack(layer: Any, lengths: Sequence[int], longest: int, device: torch.device) -> None:
    """Let a layer whose core takes packed items compute items of these lengths from now on."""
    apart: Apart | None = getattr(getattr(layer.attend, "func", layer.attend), "apart", None)
    with torch.inference_mode(False):  # a compiled core would be compiled again for tensors of another kind
        offsets = torch.tensor([0, *accumulate(lengths)], dtype=torch.int32).to(device)
        packing = Packing(tuple(lengths), longest, offsets)
        vars(layer)[PACKING] = packing if apart is None else replace(packing, made=apart(packing, layer.mask))


def asked(layer: Any, padding: Sequence[Tensor], bias: Tensor | None = None) -> dict[str, Any]:
    """Return what a core gets: a mask of the keys that are padding, in a bias if there is one, or a packing of items.

    `padding` has the boolean mask `[B, N]` if items are padded.
    """
    attn_mask = with_padding(bias, padding[-1]) if padding else bias
    if attn_mask is not None:
        return {"attn_mask": attn_mask}
    packing = vars(layer).get(PACKING)
    return {} if packing is None else {PACKING: packing}


def with_padding(bias: Tensor | None, padding: Tensor) -> Tensor:
    """Return a mask for the core: False, or minus infinity in a bias, at the keys `[B, N]` that are padding."""
    hidden = padding[:, None, None]  # [B, 1, 1, N]
    return ~hidden if bias is None else bias.masked_fill(hidden, float("-inf"))
