"""Attention cores that several operators compute, found by what flows between them, whatever their modules are named.

A core is a product of two activations whose result goes through a softmax to another product. Between them there may be
masks, biases, dropout and layers over heads, as in talking heads: whatever leaves the number of scores as it is.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

PRODUCTS = ("bmm", "baddbmm", "mm", "addmm")
SOFTMAXES = ("_softmax", "_safe_softmax", "_masked_softmax")
KINDS = {**dict.fromkeys(PRODUCTS, "product"), **dict.fromkeys(SOFTMAXES, "softmax"), "convolution": "convolution"}
"""The operators by which a core is known, by their kinds. Products have several names for the same: a linear layer of
four dimensions is another one under a dispatch mode than without it."""

MASKING = ("add", "add_", "masked_fill", "masked_fill_", "where")

OWN = tuple(f"{Path(file).parent}{os.sep}" for file in (torch.__file__, __file__))
"""The folders whose frames are no lines of a model's source."""


@dataclass
class Scores:
    """The result of a product on its way; `steps` are the numbers of the operators that have dealt with it."""

    query: Tensor
    key: Tensor
    numel: int
    steps: list[int]
    lines: list[tuple[str, int]]
    mask: str = ""
    lead: tuple[int, ...] | None = None
    """The shape of the scores but for queries and keys, once they have gone through a softmax."""
    value: Tensor | None = None

    def note(self, name: str, tensors: Sequence[Tensor], output: Any, step: int) -> None:
        """Note an operator that works on the scores, among these tensors."""
        if name in SOFTMAXES:
            self.lead = tuple(output.shape[:-2])
        if name in KINDS and output.numel() == self.numel:
            self.steps.append(step)
        if name in MASKING and self.lead is None and len(tensors) > 1:
            self.mask = described(min(tensors, key=Tensor.numel))


@dataclass
class Flow:
    """Follows the results of products through operators, which it gets one after the other.

    `operators` are the kinds of those by which a core is known, in their order; a step of a core is a place among them.
    """

    operators: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._activations: set[int] = set()
        self._constant_steps: list[int] = []
        self._scores: dict[int, Scores] = {}

    def begin(self, values: Iterable[Any]) -> None:
        """Note the input of the model: activations are what is computed from it, all else is constant."""
        self._activations.update(map(_memory, _tensors(values)))

    def whole(self, name: str, output: Any) -> int:
        """Note an operator that computes a core alone, and return its number."""
        self._forget(output)
        self.operators.append(name)
        return len(self.operators) - 1

    def inside(self, output: Any) -> None:
        """Note the output of an operator inside one that computes a core alone."""
        self._forget(output)

    def next(self, name: str, args: Sequence[Any], kwargs: Any, output: Any) -> Scores | None:
        """Note an operator; return the scores of the core that it ends, if it ends one."""
        tensors = [*_tensors(args), *_tensors((kwargs or {}).values())]
        inputs = {_memory(each) for each in tensors}
        is_constant, step = not inputs & self._activations, len(self.operators)
        if name in KINDS:
            self.operators.append(KINDS[name])
            self._constant_steps += [step] * is_constant
        if name in PRODUCTS and all(_memory(each) in self._activations for each in tensors[-2:]):
            return self._product(tensors, output, step)
        known = [scores for each in tensors if (scores := self._scores.get(_memory(each))) is not None]
        scores = max(known, key=lambda each: each.steps[0], default=None)
        if scores is not None:
            scores.note(name, tensors, output, step)
        for each in _tensors([output]):
            place = _memory(each)
            (self._activations.discard if is_constant else self._activations.add)(place)
            if place in inputs and place in self._scores:
                continue  # a view, or a change in place
            self._scores.pop(place, None)
            if scores is not None and each.numel() == scores.numel:
                self._scores[place] = scores
        return None

    def _product(self, tensors: Sequence[Tensor], output: Tensor, step: int) -> Scores | None:
        left, right = tensors[-2:]
        self._forget(output)
        for weights, value in ((left, right), (right, left)):
            scores = self._scores.get(_memory(weights))
            if scores is not None and scores.lead is not None and weights.numel() == scores.numel:
                self._scores = {place: each for place, each in self._scores.items() if each is not scores}
                scores.value = value
                biases = [each for each in self._constant_steps if scores.steps[0] < each < step]
                scores.steps = sorted([*scores.steps, *biases, step])
                scores.lines.extend(_line())
                return scores
        mask = described(tensors[0]) if len(tensors) > 2 else ""
        self._scores[_memory(output)] = Scores(left, right.mT, output.numel(), [step], [*_line()], mask)
        return None

    def _forget(self, output: Any) -> None:
        for each in _tensors([output]):
            self._scores.pop(_memory(each), None)
            self._activations.add(_memory(each))


def described(mask: Any) -> str:
    """Return a mask in words: its dtype and shape; empty without one."""
    if not isinstance(mask, torch.Tensor):
        return ""
    return f"{str(mask.dtype).removeprefix('torch.')} {list(mask.shape)}"


def _tensors(values: Iterable[Any]) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


def _memory(tensor: Tensor) -> int:
    """Return what names a tensor's memory while it lives: views share it, and each new output takes it over."""
    return int(tensor.untyped_storage()._cdata)


def _line() -> Iterator[tuple[str, int]]:
    """Yield the line of the model's source that runs now, if one does."""
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(OWN) and Path(file).is_file():
            yield file, frame.f_lineno
            return
        frame = frame.f_back  # type: ignore[assignment]
