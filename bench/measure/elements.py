"""The elements of timed outputs that are compared: where something is expected, at most ELEMENTS of each tensor.

They are drawn after the rounds. All others are neither copied to the host nor handed over.
"""

import random
from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import torch
from torch import Tensor

ELEMENTS = 1 << 17
"""The most elements of a tensor that are compared: if one in 10,000 is wrong, all but one of 500,000 draws find it.
On an H200 it took three seconds for each implementation to hand over all of 54 items with 4 million elements."""


class Elements(NamedTuple):
    """The places of elements in the flat tensors of a whole output, and of an item; None stands for all of a tensor."""

    of_whole: Sequence[Tensor | None] = ()
    of_part: Sequence[Tensor | None] = ()


def drawn(tensors: Sequence[Tensor]) -> Tensor | None:
    """Return places in flat tensors of one shape: those where something is expected in one of them, ELEMENTS at most.

    None if that is everywhere.
    """
    expected = reduce(torch.logical_or, (~tensor.flatten().isnan() for tensor in tensors))
    places = expected.nonzero().flatten().cpu()
    if len(places) > ELEMENTS:
        generator = torch.Generator().manual_seed(random.SystemRandom().getrandbits(63))
        within = torch.rand(ELEMENTS, generator=generator, dtype=torch.float64)
        one_of_each_part = (torch.arange(ELEMENTS) + within) * (len(places) / ELEMENTS)
        places = places[one_of_each_part.long().clamp(max=len(places) - 1)]
    return None if len(places) == len(expected) else places


def at(places: Tensor | None, tensor: Tensor, *, batch: bool = False) -> Tensor:
    """Return the elements of a tensor, or of each item of a batch, at these places; all in their shape if None."""
    return tensor if places is None else tensor.flatten(int(batch))[..., places.to(tensor.device)]


def spread(wrong: Tensor, places: Tensor | None, shape: Sequence[int]) -> Tensor:
    """Return a tensor of a shape that is True at those of these places that are True."""
    if places is None:
        return wrong.reshape(*shape)
    whole = torch.zeros(*shape, dtype=torch.bool)
    whole.flatten()[places] = wrong.flatten()
    return whole
