"""The tensors of an implementation that takes packed items: the same values as those of the others, without padding.

What it returns is handed over as the others' is, with zeros as padding.
"""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from bench.measure.layer import Tensors
from bench.measure.subjects import Subject
from bench.measure.workload import Layout, Workload
from impls import packing


def formed(work: Workload, subject: Subject) -> Workload:
    """Return the workload of an implementation: with packed tensors if its core takes packed items."""
    if not (work.lengths and packing.packs(subject.function)):
        return work
    layout = Packed(subject.function, work)
    layout.arrange(work.lengths)
    return replace(work, layout=layout, direction=layout.packed(work.direction), padded_direction=work.direction)


class Packed(Layout):
    """How items are packed: their tokens one after the other, on the axis before the last."""

    def __init__(self, function: Any, work: Workload) -> None:
        self._function = function
        self._longest, self._device = work.point.num_tokens, work.values.device
        self.lengths: tuple[int, ...] = ()

    def arrange(self, lengths: tuple[int, ...]) -> None:
        """Let the implementation compute items of these lengths from now on; a GPU that is held would hold this up."""
        if lengths != self.lengths:
            self.lengths = lengths
            with torch.inference_mode(False):  # else those that are made in the rounds would be of another kind
                packing.pack(self._function, lengths, self._longest, self._device)
                places = (torch.arange(length) + item * self._longest for item, length in enumerate(lengths))
                self._places = torch.cat([*places]).to(self._device)

    def packed(self, padded: Tensor) -> Tensor:
        """Return the tokens of all items `[1, …, T, X]` of padded ones `[B, …, N, X]`."""
        rows = padded.movedim(-2, 1).flatten(0, 1)  # [B·N, …, X]
        return rows.index_select(0, self._places).unsqueeze(0).movedim(1, -2).contiguous()

    def taken(self, inputs: Tensors) -> Tensors:
        """Return the inputs of a call, packed; what says which tokens are padding is left out."""
        return tuple(map(self.packed, inputs[:-1]))

    def whole(self, packed: Tensor) -> Tensor:
        """Return all items, padded with zeros to the longest."""
        return torch.stack([self.item(packed, item) for item in range(len(self.lengths))])

    def item(self, packed: Tensor, item: int) -> Tensor:
        """Return one item, padded with zeros to the longest."""
        begin, length = sum(self.lengths[:item]), self.lengths[item]
        tokens = packed[0].narrow(-2, begin, length)
        return torch.nn.functional.pad(tokens, (0, 0, 0, self._longest - length))
