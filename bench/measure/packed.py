"""The tensors of an implementation that takes packed items: the values that others get, without padding.

Its outputs are handed over like others, with zeros as padding.
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
    """The layout of packed items: their tokens follow each other on the axis before the last."""

    def __init__(self, function: Any, work: Workload) -> None:
        self._function = function
        self._longest, self._device = work.point.num_tokens, work.values.device
        self.lengths: tuple[int, ...] = ()

    def arrange(self, lengths: tuple[int, ...]) -> None:
        """Set the lengths of items for the implementation's next calls; call it before a hold, which would delay it."""
        if lengths != self.lengths:
            self.lengths = lengths
            with torch.inference_mode(False):  # else tensors made in the rounds would be inference tensors
                packing.pack(self._function, lengths, self._longest, self._device)
                places = (torch.arange(length) + item * self._longest for item, length in enumerate(lengths))
                self._places = torch.cat([*places]).to(self._device)

    def packed(self, padded: Tensor) -> Tensor:
        """Return padded items `[B, …, N, X]` packed as `[1, …, T, X]`."""
        rows = padded.movedim(-2, 1).flatten(0, 1)  # [B·N, …, X]
        return rows.index_select(0, self._places).unsqueeze(0).movedim(1, -2).contiguous()

    def taken(self, inputs: Tensors) -> Tensors:
        """Return the inputs of a call, packed and without the padding mask."""
        return tuple(map(self.packed, inputs[:-1]))

    def whole(self, packed: Tensor) -> Tensor:
        """Return all items, padded with zeros to the longest."""
        return torch.stack([self.item(packed, item) for item in range(len(self.lengths))])

    def item(self, packed: Tensor, item: int) -> Tensor:
        """Return one item, padded with zeros to the longest."""
        begin, length = sum(self.lengths[:item]), self.lengths[item]
        tokens = packed[0].narrow(-2, begin, length)
        return torch.nn.functional.pad(tokens, (0, 0, 0, self._longest - length))
