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
from bench.plan.case import COLUMNS
from bench.plan.layers import layer_of
from bench.plan.layers.layer import OF_ONE_LENGTH
from impls import Unsupported, packing


def formed(work: Workload, subject: Subject) -> Workload:
    """Return the workload of an implementation: with packed tensors if its core takes packed items.

    Raises `Unsupported` for columns of a point that packed items can't have.
    """
    if layer_of(work.point.layer).is_module or not packing.packs(subject.function):
        return work
    if never := [name for name in OF_ONE_LENGTH if not COLUMNS[name].is_usual(work.point)]:
        raise Unsupported(f"this implementation takes packed items, which can't have {' or '.join(never)}")
    layout = Packed(subject.function, work)
    layout.arrange(work.lengths)
    return replace(work, layout=layout, direction=layout.packed(work.direction), padded_direction=work.direction)


class Packed(Layout):
    """The layout of packed items: their tokens follow each other on the axis before the last."""

    def __init__(self, function: Any, work: Workload) -> None:
        self._function = function
        self._longest, self._device = work.point.num_tokens, work.values.device
        self._batch, self._varied = work.point.batch, len(work.shapes)
        self.lengths: tuple[int, ...] = ()

    def arrange(self, lengths: tuple[int, ...]) -> None:
        """Set the lengths of items for the implementation's next calls; call it before a hold, which would delay it."""
        lengths = lengths or (self._longest,) * self._batch
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
        return tuple(map(self.packed, inputs[: self._varied]))

    def whole(self, packed: Tensor) -> Tensor:
        """Return all items, padded with zeros to the longest."""
        return torch.stack([self.item(packed, item) for item in range(len(self.lengths))])

    def item(self, packed: Tensor, item: int) -> Tensor:
        """Return one item, padded with zeros to the longest."""
        begin, length = sum(self.lengths[:item]), self.lengths[item]
        tokens = packed[0].narrow(-2, begin, length)
        return torch.nn.functional.pad(tokens, (0, 0, 0, self._longest - length))
