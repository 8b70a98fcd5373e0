"""The way of scores through the operators of a model: which products, softmaxes and products are a core.

A core is a product of two activations whose result goes through a softmax to another product. Between them there may be
masks, biases, dropout and layers over heads, as in talking heads: whatever leaves the number of scores as it is.
Tensors are followed by their memory, so the names of modules play no part.
"""

import os
import sys
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from traceback import walk_stack
from typing import Any

import torch
from torch import Tensor

from impls.modules.masks import Mask, noted
from impls.modules.trace import Trace, memory, tensors

CORE = "core"
"""The name, among operators, of one that computes a core alone."""

PRODUCTS = ("bmm", "baddbmm", "mm", "addmm")
SOFTMAXES = ("_softmax", "_safe_softmax", "_masked_softmax")
KINDS = {**dict.fromkeys(PRODUCTS, "product"), **dict.fromkeys(SOFTMAXES, "softmax"), "convolution": "convolution"}
"""The operators that show a core, by their kinds. Products have several names for the same: a linear layer of
four dimensions is another one under a dispatch mode than without it."""

MASKING = ("add", "sub", "masked_fill", "where")

COMPOSITES = ("matmul", "einsum")
"""The operators that call a product of three dimensions for operands of more."""

LAST_COPIES = 4
"""The copies among which an operand of a product is sought: it may be made just before, and so may the other one."""

OWN = tuple(f"{Path(file).parent}{os.sep}" for file in (torch.__file__, __file__))
"""The folders whose frames are no lines of a model's source."""

EINOPS = f"{os.sep}einops{os.sep}"
"""A library in whose name for a product a model's line calls torch's."""


@dataclass
class Scores:
    """The result of a product on its way; `steps` are the numbers of the operators that have dealt with it."""

    query: Tensor
    key: Tensor
    numel: int
    steps: list[int]
    lines: list[tuple[str, int]]
    trace: Trace
    masks: list[Mask]
    lead: tuple[int, ...] | None = None
    """The shape of the scores but for queries and keys, once they have gone through a softmax."""
    value: Tensor | None = None

    def note(self, name: str, tensors: Sequence[Tensor], places: Sequence[int], output: Any, step: int) -> None:
        """Note an operator that works on the scores, which stand at these places among its tensors."""
        if name in SOFTMAXES:
            self.lead = tuple(output.shape[:-2])
        if name in KINDS and output.numel() == self.numel:
            self.steps.append(step)
        others = [each for place, each in enumerate(tensors) if place not in places]
        masking = name.removesuffix("_")
        if masking in MASKING and self.lead is None and others:
            shows = masking == "where" and 1 in places
            self.masks += noted(others[0], shows=shows, is_subtracted=masking == "sub")


class Flow:
    """Follows the results of products through operators, which it gets one after the other.

    `operators` are the kinds of those that show a core, in their order; a step of a core is a place among them.
    """

    def __init__(self) -> None:
        self.operators: list[str] = []
        self._activations: set[int] = set()
        self._constant_steps: list[int] = []
        self._scores: dict[int, Scores] = {}
        self._traces: list[Trace] = []
        self._ended: list[Trace] = []
        self.composite = ""
        """The operator that calls those that are noted, if it is one of COMPOSITES; with gradients none is seen."""
        self._copies: dict[int, Tensor] = {}
        """The last tensors that were copied, by the memory of their copies."""

    def begin(self, values: Iterable[Any]) -> None:
        """Note the input of the model: activations are what is computed from it, all else is constant."""
        self._activations.update(map(memory, tensors(values)))

    def end(self) -> None:
        """Note the end of the model; a backward pass that follows uses what it computed, but is no part of it."""
        self._traces, self._ended = [], []

    def whole(self, output: Any) -> list[int]:
        """Note an operator that computes a core alone, and return its steps."""
        self.inside(output)
        self.operators.append(CORE)
        return [len(self.operators) - 1]

    def inside(self, output: Any) -> None:
        """Note the output of an operator inside one that computes a core alone."""
        for each in tensors([output]):
            self._scores.pop(memory(each), None)
            self._copies.pop(memory(each), None)
            self._activations.add(memory(each))
            for trace in (*self._traces, *self._ended):
                trace.overwritten(memory(each))

    def next(self, operator: Any, args: Sequence[Any], kwargs: Any, output: Any) -> Scores | None:
        """Note an operator; return the scores of the core that it ends, if it ends one."""
        name = operator.overloadpacket.__name__
        given = [*tensors([args, kwargs or {}])]
        inputs = {memory(each) for each in given}
        is_constant, step = not inputs & self._activations, len(self.operators)
        if name in KINDS:
            self.operators.append(KINDS[name])
            self._constant_steps += [step] * is_constant
        if name in PRODUCTS and all(memory(each) in self._activations for each in given[-2:]):
            return self._product(operator, args, kwargs, output, step)
        self._copy(name, args, output, inputs)
        self._trace(operator, args, kwargs, output, inputs)
        nearby = [self._scores[place] for place in inputs & self._scores.keys()]
        scores = max(nearby, key=lambda each: each.steps[0], default=None)
        if scores is not None:
            places = [place for place, each in enumerate(given) if self._scores.get(memory(each)) is scores]
            scores.note(name, given, places, output, step)
        for each in tensors([output]):
            place = memory(each)
            (self._activations.discard if is_constant else self._activations.add)(place)
            if place in inputs and place in self._scores:
                continue  # a view, or a change in place
            self._scores.pop(place, None)
            if scores is not None and each.numel() == scores.numel:
                self._scores[place] = scores
        return None

    def _copy(self, name: str, args: Sequence[Any], output: Any, inputs: Container[int]) -> None:
        """Note a copy, and forget those whose memory was taken over."""
        for each in tensors([output]):
            if memory(each) not in inputs:
                self._copies.pop(memory(each), None)
        if name == "clone":
            self._copies = dict([*self._copies.items(), (memory(output), args[0].detach())][-LAST_COPIES:])

    def _trace(self, operator: Any, args: Sequence[Any], kwargs: Any, output: Any, inputs: Container[int]) -> None:
        """Note an operator in the traces that it goes on with."""
        for trace in self._ended:
            trace.after(operator, [args, kwargs], output, _line)
        self._traces = [each for each in self._traces if each.is_open]
        for trace in self._traces:
            if trace.knows(inputs):
                trace.note(operator, args, kwargs, output, _line())
                continue
            for each in tensors([output]):
                if memory(each) not in inputs:
                    trace.overwritten(memory(each))

    def _product(self, operator: Any, args: Sequence[Any], kwargs: Any, output: Tensor, step: int) -> Scores | None:
        left, right = args[-2:]
        for weights, value in ((left, right), (right, left)):
            scores = self._scores.get(memory(weights))
            if scores is not None and scores.lead is not None and weights.numel() == scores.numel:
                scores.trace.end(operator, args, kwargs, output, self._copies, is_swapped=weights is right)
                self._ended.append(scores.trace)
                self.inside(output)
                self._scores = {place: each for place, each in self._scores.items() if each is not scores}
                scores.value = value
                biases = [each for each in self._constant_steps if scores.steps[0] < each < step]
                scores.steps = sorted([*scores.steps, *biases, step])
                scores.lines += _line()
                return scores
        self._trace(operator, args, kwargs, output, {memory(left), memory(right)})
        self._scores.pop(memory(output), None)
        self._activations.add(memory(output))
        is_direct = torch.is_inference_mode_enabled() and not self.composite
        trace = Trace(is_flat=left.dim() == len("BND") and (is_direct or len(args) > len((left, right))))
        trace.begin(operator, args, kwargs, output, _line(), self._copies)
        self._traces.append(trace)
        is_biased = len(args) > len((left, right)) and (kwargs or {}).get("beta", 1) != 0
        masks = [*noted(args[0])] if is_biased else []
        self._scores[memory(output)] = Scores(left, right.mT, output.numel(), [step], _line(), trace, masks)
        return None


def _line() -> list[tuple[str, int]]:
    """Return the line of the model's source that runs now, if one does."""
    for frame, line in walk_stack(sys._getframe()):
        file = frame.f_code.co_filename
        if not file.startswith(OWN) and EINOPS not in file and Path(file).is_file():
            return [(file, line)]
    return []
