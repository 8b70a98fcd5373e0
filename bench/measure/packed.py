"""The tensors of an implementation that takes packed items: the same values as those of the others, without padding.

What it returns is handed over as the others' is, with zeros as padding.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from bench.measure.layer import Tensors
from bench.measure.workload import Layout, Subject, Workload
from bench.sampling.inputs import InputValues
from impls import packing


def formed(work: Workload, subject: Subject) -> Workload:
    """Return the workload of an implementation: with packed tensors if its core takes packed items."""
    if not (work.lengths and packing.packs(subject.function)):
        return work
    layout = Packed(subject.function, work)
    layout.arrange(work.lengths)
    shapes = tuple((1, *shape[1:-2], sum(work.lengths), shape[-1]) for shape in work.shapes)
    values = {**vars(work), "shapes": shapes, "fixed": (), "direction": layout.packed(work.direction), "layout": layout}
    values = {name: values[name] for name in Workload.__dataclass_fields__}
    return PackedWorkload(**values, padded=work)


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

    def whole(self, packed: Tensor) -> Tensor:
        """Return all items, padded with zeros to the longest."""
        return torch.stack([self.item(packed, item) for item in range(len(self.lengths))])

    def item(self, packed: Tensor, item: int) -> Tensor:
        """Return one item, padded with zeros to the longest."""
        begin, length = sum(self.lengths[:item]), self.lengths[item]
        tokens = packed[0].narrow(-2, begin, length)
        return torch.nn.functional.pad(tokens, (0, 0, 0, self._longest - length))


@dataclass(frozen=True)
class PackedWorkload(Workload):
    """A workload whose tensors are packed; `padded` is that of the others."""

    padded: Workload = None  # type: ignore[assignment]  # a dataclass wants a default after others

    def inputs(self, values: InputValues = InputValues()) -> Tensors:  # noqa: B008 - it can't be changed
        """Return inputs, packed in the order of checks, in which the implementation is arranged from now on."""
        self.layout.arrange(self.lengths)
        return tuple(map(self.layout.packed, self.padded.inputs(values)[: len(self.shapes)]))

    def timed(self, key: int, shift: int) -> Tensors:
        """Return the inputs of a call, packed as the implementation is arranged; what is padding is nowhere."""
        return tuple(map(self.layout.packed, self.padded.timed(key, shift)[: len(self.shapes)]))

    def timed_lengths(self, key: int) -> tuple[int, ...]:
        """Return the lengths of the items in a timing by its key."""
        return self.padded.timed_lengths(key)

    def direction_of(self, key: int) -> Tensor:
        """Return the gradient of the outputs of a timing by its key."""
        return self.layout.packed(self.padded.direction_of(key))
