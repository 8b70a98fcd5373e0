"""Cores that are wrong for items of different lengths; OF_LENGTHS says how each is found.

They are none of `tests.hacks`, whose every process would import nested tensors for them.
"""

from torch import Tensor

from impls.attend import sdpa
from impls.attend.packed import attend_by_item
from impls.packing import Packing

OF_LENGTHS: dict[str, str] = {
    "across_items": "output (normal input) is off by",
    "padding_leaks": "output (normal input) is off by",
    "forgets_the_mask": "output (normal input) is off by",
    "keeps_the_first_packing": "(in a timed call) is off by",
}
"""What is said of cores of causal items of different lengths, but for padding that leaks, which needs no mask."""


def across_items(q: Tensor, k: Tensor, v: Tensor, scale: float, *, packing: Packing, mask: str | None = None) -> Tensor:
    """Lets tokens of a packed batch attend to tokens of other items."""
    return sdpa.attend(q, k, v, scale, mask=mask)


def padding_leaks(
    q: Tensor, k: Tensor, v: Tensor, scale: float, *, mask: str | None = None, attn_mask: Tensor | None = None
) -> Tensor:
    """Takes padding for tokens."""
    return sdpa.attend(q, k, v, scale, mask=mask)


def forgets_the_mask(
    q: Tensor, k: Tensor, v: Tensor, scale: float, *, packing: Packing, mask: str | None = None
) -> Tensor:
    """Lets tokens of an item attend to later ones."""
    return attend_by_item(q, k, v, scale, packing=packing)


first_packings: list[Packing] = []


def keeps_the_first_packing(
    q: Tensor, k: Tensor, v: Tensor, scale: float, *, packing: Packing, mask: str | None = None
) -> Tensor:
    """Uses the lengths of the first batch for all batches."""
    first_packings.append(packing)
    return attend_by_item(q, k, v, scale, packing=first_packings[0], mask=mask)
