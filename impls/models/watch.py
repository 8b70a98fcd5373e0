"""The attention of a model, as it runs: its cores with their shapes, strides and masks, and their modules.

A core is one operator, or a product of two activations whose result goes through a softmax to another product. Between
them there may be masks, biases, dropout and layers over heads, as in talking heads: whatever leaves the number of
scores as it is. `Flow` follows the tensors, so the names of modules play no part.

A dispatch mode and hooks that hold for all modules leave the model's choice of kernels as it is. A function mode would
not: under any of them `nn.MultiheadAttention` leaves its fast path.
"""

import dataclasses
import math
import os
import re
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from traceback import walk_stack
from typing import Any
from unittest.mock import patch

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode

from impls.models.model import SDPA, Model
from impls.models.trace import Trace, memory, tensors

FUSED = re.compile(r"_scaled_dot_product_(?!.*backward)\w*attention\w*")
"""The operators that compute a core in one."""

WHOLE = re.compile(r"_native_multi_head_attention|_transformer_encoder_layer_fwd")
"""The operators that compute a layer in one: the fast paths of torch's own modules."""

UNFUSED = "unfused"

CORE = "core"
"""The name, among operators, of one that computes a core alone."""

PRODUCTS = ("bmm", "baddbmm", "mm", "addmm")
SOFTMAXES = ("_softmax", "_safe_softmax", "_masked_softmax")
KINDS = {**dict.fromkeys(PRODUCTS, "product"), **dict.fromkeys(SOFTMAXES, "softmax"), "convolution": "convolution"}
"""The operators that show a core, by their kinds. Products have several names for the same: a linear layer of
four dimensions is another one under a dispatch mode than without it."""

MASKING = ("add", "add_", "sub", "sub_", "masked_fill", "masked_fill_", "where")

COMPOSITES = ("matmul", "einsum")
"""The operators that call a product of three dimensions for operands of more."""

LAST_COPIES = 4
"""The copies among which an operand of a product is sought: it may be made just before, and so may the other one."""

OWN = tuple(f"{Path(file).parent}{os.sep}" for file in (torch.__file__, __file__))
"""The folders whose frames are no lines of a model's source."""

EINOPS = f"{os.sep}einops{os.sep}"
"""A library in whose name for a product a model's line calls torch's."""


@dataclass(frozen=True)
class Core:
    """One attention core of a call.

    `layer` is the path of the innermost module with weights around it, `class_name` that module's class, and
    `layer_input` the shape of the module's first tensor.
    `operator` is the operator that computed it, UNFUSED if several did. `by_sdpa` is true if the library called
    `torch.nn.functional.scaled_dot_product_attention` by that name, so that an attend can be put in its place.
    `shapes` and `strides` are those of queries, keys and values. `mask` describes a mask, and is empty without one.
    """

    layer: str
    class_name: str
    layer_input: tuple[int, ...]
    operator: str
    by_sdpa: bool
    shapes: tuple[tuple[int, ...], ...]
    strides: tuple[tuple[int, ...], ...]
    dtype: str
    mask: str = ""
    causal: bool = False
    dropout: float = 0.0
    lines: str = ""
    """The lines of source that compute the core, if several operators do: `/home/me/model.py:12-15`."""
    proposal: tuple[str, ...] = ()
    """The lines that compute it by `F.scaled_dot_product_attention`, if several operators do and it was proven."""
    obstacle: str = ""
    """What stands between its products and has no place there."""

    @property
    def is_fused(self) -> bool:
        """Whether one operator computes the core alone."""
        return bool(FUSED.search(self.operator))

    @property
    def is_whole(self) -> bool:
        """Whether one operator computes the whole layer."""
        return bool(WHOLE.search(self.operator))


@dataclass
class Scores:
    """The result of a product on its way; `steps` are the numbers of the operators that have dealt with it."""

    query: Tensor
    key: Tensor
    numel: int
    steps: list[int]
    lines: list[tuple[str, int]]
    trace: Trace
    masks: list[str]
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
            self.masks.append(_described(min(tensors, key=lambda each: (each.dtype != torch.bool, each.numel()))))


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
            scores.note(name, given, output, step)
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
            trace.after([args, kwargs], output, _line)
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
        masks = [_described(args[0])] * (len(args) > len((left, right)))
        self._scores[memory(output)] = Scores(left, right.mT, output.numel(), [step], _line(), trace, masks)
        return None


def cores(model: Model, x: Tensor) -> list[Core]:
    """Return the attention cores of one call on x, in the gradient mode that holds."""
    with watched(model) as watch:
        model(x)
    return watch.cores


@contextmanager
def watched(model: Model) -> Iterator["Watch"]:
    """Watch the calls of a model that are made inside."""
    watch = Watch(model.inner)
    with ExitStack() as inside:
        # a lookup of F.scaled_dot_product_attention finds this, also that of F.multi_head_attention_forward
        inside.enter_context(patch.object(F, SDPA, watch.standing_in_for(getattr(F, SDPA))))
        inside.callback(register_module_forward_pre_hook(watch.enter).remove)
        inside.callback(register_module_forward_hook(watch.leave, always_call=True).remove)
        inside.enter_context(watch)
        yield watch


class Watch(TorchDispatchMode):
    """Collects the cores of a module's calls."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's own
        self.cores: list[Core] = []
        self.steps: list[list[int]] = []
        """For each core the places among `operators` of those that compute it."""
        self._paths = {id(module): path for path, module in inner.named_modules()}
        self._modules: list[tuple[nn.Module, tuple[int, ...]]] = []
        self._depth = 0
        self._operator = ""
        self._flow = Flow()
        self.traces: dict[int, Trace] = {}
        """The operators of each core that several compute, by its place in `cores`; layers that are alike share one."""
        self._kinds: dict[tuple[Core, str], Trace] = {}
        self.operators = self._flow.operators
        """The operators that show cores, in the order of their calls."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return false: no compiler runs under this mode, and skipping it would import it, which takes seconds."""
        return False

    def enter(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        """Note that a module begins."""
        if not self._modules:
            self._flow.begin(args)
        shape = next((tuple(value.shape) for value in args if isinstance(value, Tensor)), ())
        self._modules.append((module, shape))

    def leave(self, module: nn.Module, _args: Any, _output: Any) -> None:
        """Note that a module ends."""
        while self._modules and self._modules.pop()[0] is not module:
            pass
        if not self._modules:
            self._flow.end()

    def standing_in_for(self, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        """Return a function that calls another one and notes its core."""

        def noted(query: Tensor, key: Tensor, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
            self._operator = UNFUSED
            self._depth += 1
            try:
                output = function(query, key, value, *args, **kwargs)
            finally:
                self._depth -= 1
            options = {**dict(zip(("attn_mask", "dropout_p", "is_causal"), args, strict=False)), **kwargs}
            self._add(
                self._flow.whole(output),
                self._operator,
                (query, key, value),
                by_sdpa=True,
                mask=_described(options.get("attn_mask")),
                causal=bool(options.get("is_causal", False)),
                dropout=float(options.get("dropout_p", 0.0)),
            )
            return output

        return noted

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call an operator and note what it is; one that only calls others is left to them."""
        name, around = func.overloadpacket.__name__, self._flow.composite
        self._flow.composite = name if name in COMPOSITES else around
        with self:
            output = func.decompose(*args, **(kwargs or {}))
        self._flow.composite = around
        if output is not NotImplemented:
            return output
        output = func(*args, **(kwargs or {}))
        if self._depth:
            self._operator = name if FUSED.search(name) else self._operator
            self._flow.inside(output)
        elif FUSED.search(name):
            self._add(self._flow.whole(output), name, args[:3], causal=any(value is True for value in args[3:]))
        elif WHOLE.search(name):
            self._add(self._flow.whole(output), name, args[:1])
        elif scores := self._flow.next(func, args, kwargs, output):
            self._add_unfused(scores)
        return output

    def _add_unfused(self, scores: Scores) -> None:
        assert scores.value is not None
        tensors, lead = (scores.query, scores.key, scores.value), scores.lead or ()
        fits = all(tensor.numel() == math.prod(lead) * tensor.shape[-2:].numel() for tensor in tensors)
        files, numbers = {file for file, _ in scores.lines}, [line for _, line in scores.lines]
        self._add(
            scores.steps,
            UNFUSED,
            tensors,
            shapes=tuple((*lead, *tensor.shape[-2:]) if fits else tuple(tensor.shape) for tensor in tensors),
            mask=" + ".join(scores.masks),
            lines=f"{min(files)}:{min(numbers)}-{max(numbers)}" if len(files) == 1 else "",
        )
        key = dataclasses.replace(self.cores[-1], layer=""), scores.trace.signature
        kept = self.traces[len(self.cores) - 1] = self._kinds.setdefault(key, scores.trace)
        if kept is not scores.trace:
            scores.trace.give_way(kept)

    def _add(self, steps: list[int], operator: str, tensors: Sequence[Tensor], **facts: Any) -> None:
        """Add a core that these steps compute from queries, keys and values; `facts` are further fields of it."""
        around = [(module, shape) for module, shape in self._modules if id(module) in self._paths]
        with_weights = [each for each in around if next(each[0].parameters(), None) is not None]
        module, shape = (with_weights or around)[-1]
        usual = {"by_sdpa": False, "shapes": tuple(tuple(tensor.shape) for tensor in tensors)}
        self.steps.append(steps)
        self.cores.append(
            Core(
                layer=self._paths[id(module)],
                class_name=type(module).__name__,
                layer_input=shape,
                operator=operator,
                strides=tuple(tuple(tensor.stride()) for tensor in tensors),
                dtype=str(tensors[0].dtype).removeprefix("torch."),
                **{**usual, **facts},
            )
        )


def _described(mask: Any) -> str:
    """Return a mask in words: its dtype and shape; empty without one."""
    return f"{str(mask.dtype).removeprefix('torch.')} {list(mask.shape)}" if isinstance(mask, Tensor) else ""


def _line() -> list[tuple[str, int]]:
    """Return the line of the model's source that runs now, if one does."""
    for frame, line in walk_stack(sys._getframe()):
        file = frame.f_code.co_filename
        if not file.startswith(OWN) and EINOPS not in file and Path(file).is_file():
            return [(file, line)]
    return []
