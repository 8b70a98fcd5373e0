"""The attention of a model, as it runs: its cores with their shapes, strides and masks, and their modules.

A core is one operator, or several, which `Flow` finds.

A dispatch mode and hooks that hold for all modules leave the model's choice of kernels as it is. A function mode would
not: under any of them `nn.MultiheadAttention` leaves its fast path.
"""

import dataclasses
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from impls.modules.flow import COMPOSITES, Flow, Scores
from impls.modules.masks import Mask, noted
from impls.modules.trace import Trace
from impls.modules.wrapper import CORE_DIMENSIONS, SDPAReplaced, Wrapper

FUSED = re.compile(r"_scaled_dot_product_(?!.*backward)\w*attention\w*")
"""The operators that compute a core in one."""

WHOLE = re.compile(r"_native_multi_head_attention|_transformer_encoder_layer_fwd")
"""The operators that compute a layer in one: the fast paths of torch's own modules."""

KEYS = 1
"""The type of a mask that hides keys of items, in operators that compute a whole layer."""

UNFUSED = "unfused"

HEADS = re.compile(r"(^|_)n?heads?($|_)")
"""The names of a module's attributes that may be numbers of heads."""


@dataclass(frozen=True)
class Core:
    """One attention core of a call.

    `layer` is the path of the innermost module with weights around it, `class_name` that module's class, and
    `layer_input` the shape of the module's first tensor.
    `operator` is the operator that computed it, UNFUSED if several did. `by_sdpa` is true if the library called
    `torch.nn.functional.scaled_dot_product_attention` by that name, so that an attend can be put in its place.
    `shapes` and `strides` are those of queries, keys and values; of a whole layer only those of its first input.
    `mask` has the dtypes and shapes of `masks` in words, and is empty without one.
    """

    layer: str
    class_name: str
    layer_input: tuple[int, ...]
    operator: str
    by_sdpa: bool
    shapes: tuple[tuple[int, ...], ...]
    strides: tuple[tuple[int, ...], ...]
    dtype: str
    masks: tuple[Mask, ...] = ()
    mask: str = ""
    causal: bool = False
    dropout: float = 0.0
    lines: str = ""
    """The lines of source that compute the core, if several operators do: `/home/me/model.py:12-15`."""
    heads: int = 0
    """The heads, if the shapes don't show them: one operator computes the whole layer, or there are windows besides."""
    proposal: tuple[str, ...] = ()
    """The lines that compute it by `F.scaled_dot_product_attention`, if several operators do and it was proven."""
    obstacle: str = ""
    """What stands between its products and has no place there."""
    weights_are_used: bool = False
    """Whether it is no more than that scores or weights are used after the core too."""

    @property
    def is_fused(self) -> bool:
        """Whether one operator computes the core alone."""
        return bool(FUSED.search(self.operator))

    @property
    def is_whole(self) -> bool:
        """Whether one operator computes the whole layer."""
        return bool(WHOLE.search(self.operator))


def cores(model: Wrapper, *xs: Tensor) -> list[Core]:
    """Return the attention cores of one call on inputs, in the gradient mode that holds."""
    with watched(model) as watch:
        model(*xs)
    return watch.cores


@contextmanager
def watched(model: Wrapper) -> Iterator["Watch"]:
    """Watch the calls of a model that are made inside."""
    watch = Watch(model.inner)
    with ExitStack() as inside:
        # a lookup of F.scaled_dot_product_attention finds this, also that of F.multi_head_attention_forward
        inside.enter_context(SDPAReplaced(watch.standing_in_for(F.scaled_dot_product_attention), model.names))
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
            self._flow.begin([*args, *(module.given if isinstance(module, Wrapper) else ())])
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

        def seen(query: Tensor, key: Tensor, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
            self._operator = UNFUSED
            self._depth += 1
            try:
                output = function(query, key, value, *args, **kwargs)
            finally:
                self._depth -= 1
            options = {**dict(zip(("attn_mask", "dropout_p", "is_causal"), args, strict=False)), **kwargs}
            with _disable_current_modes():  # what looks at a mask is no part of the model
                facts = _facts(options)
            self._add(self._flow.whole(output), self._operator, (query, key, value), by_sdpa=True, **facts)
            return output

        return seen

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
            self._add(self._flow.whole(output), name, args[:3], **_facts(_named(func, args, kwargs)))
        elif WHOLE.search(name):
            _width, heads, *_ = (each for each in args if type(each) is int)
            self._add(
                self._flow.whole(output), name, args[:1], heads=heads, masks=_hiding(**_named(func, args, kwargs))
            )
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
            masks=tuple(scores.masks),
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
        usual: dict[str, Any] = {"by_sdpa": False, "shapes": tuple(tuple(tensor.shape) for tensor in tensors)}
        if len(seen := facts.get("shapes", usual["shapes"])[0]) > CORE_DIMENSIONS:
            usual["heads"] = _heads(seen, numbers_of_heads(module), shape[-1:])
        self.steps.append(steps)
        self.cores.append(
            Core(
                layer=self._paths[id(module)],
                class_name=type(module).__name__,
                layer_input=shape,
                operator=operator,
                strides=tuple(tuple(tensor.stride()) for tensor in tensors),
                dtype=str(tensors[0].dtype).removeprefix("torch."),
                mask=" + ".join(map(str, facts.get("masks", ()))),
                **{**usual, **facts},
            )
        )


def numbers_of_heads(module: nn.Module) -> set[int]:
    """Return the numbers that a module's attributes say of its heads."""
    return {value for name, value in vars(module).items() if type(value) is int and HEADS.search(name)}


def _heads(shape: Sequence[int], stated: Collection[int], layer_width: Sequence[int]) -> int:
    """Return the heads of queries `[B, …, N, D]`: the one axis that has as many as stated, or that fill the width."""
    *_, width = shape
    axes = {*shape[1:-2]}
    for possible in (axes & {*stated}, {size for size in axes if size * width in layer_width}):
        if len(possible) == 1:
            return possible.pop()
    return 1


def _named(operator: Any, args: Sequence[Any], kwargs: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the arguments of an operator by their names."""
    names = (argument.name for argument in operator._schema.arguments)
    return {**dict(zip(names, args, strict=False)), **(kwargs or {})}


def _facts(named: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the arguments of a core say of its masks, and of dropout."""
    return {
        "masks": noted(named.get("attn_mask", named.get("attn_bias"))),
        "causal": bool(named.get("is_causal", False)),
        "dropout": float(named.get("dropout_p", 0.0)),
    }


def _hiding(*, mask: Tensor | None = None, mask_type: int | None = None, **_: Any) -> tuple[Mask, ...]:
    """Return the mask of a whole layer, which hides where it is true; of type KEYS it is `[B, M]`."""
    return noted(mask[:, None, None] if mask is not None and mask_type == KEYS else mask, shows=False)
