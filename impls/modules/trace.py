"""The operators of one core, from its first product to its last, as they were called; they can be called again."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from impls.modules.wrapper import changed

LEFT, RIGHT, VALUE, SCORES = range(4)
"""The numbers of the first product's operands, of the last one's values, and of the first product's result."""

MOST_CALLS = 200
"""A trace of more operators is given up: what follows a product that begins no core is followed to the model's end."""

CONSTANT = ("zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full", "new_empty", "lift_fresh")
"""The operators whose output depends on none of the numbers of the scores."""

Line = tuple[str, int]
Copies = Mapping[int, Tensor]
"""What memories were copied from."""

Geometry = tuple[int, tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True)
class Node:
    """The place of a tensor that the core itself computes, or of an operand of its products."""

    number: int


@dataclass(frozen=True, eq=False)
class OperatorCall:
    """An operator as it was called, with a Node in place of each tensor that depends on the scores."""

    operator: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    outputs: tuple[int, ...]
    lines: tuple[Line, ...] = ()

    @property
    def name(self) -> str:
        """The operator's name, the same for a change in place: `masked_fill` for `aten.masked_fill_.Scalar`."""
        return str(self.operator.overloadpacket.__name__).removesuffix("_")

    @cached_property
    def is_in_place(self) -> bool:
        """Whether it changes one of its arguments."""
        return bool(self.operator._schema.is_mutable)

    @property
    def inputs(self) -> list[int]:
        """The numbers of the nodes among the arguments, in order."""
        return [each.number for each in leaves([self.args, self.kwargs]) if isinstance(each, Node)]

    def again(self, values: Mapping[int, Tensor], dtype: torch.dtype | None = None) -> Any:
        """Return the output for other tensors in place of nodes; floating-point numbers are those of `dtype`."""
        if dtype is None and self._places is not None:
            args = list(self.args)
            for place, number in self._places:
                args[place] = values[number]
            return self.operator(*args, **self.kwargs)
        args = [self._filled(each, values, dtype) for each in self.args]
        kwargs = {name: self._filled(each, values, dtype) for name, each in self.kwargs.items()}
        if dtype and self.name == "_softmax":
            args[2] = False  # the result has the dtype of the input
        return self.operator(*args, **kwargs)

    @cached_property
    def _places(self) -> list[tuple[int, int]] | None:
        """The places of nodes among the arguments, with their numbers; None if it must be looked at more closely.

        It saves microseconds, which would count as the core's where it is timed.
        """
        places = [(place, each.number) for place, each in enumerate(self.args) if isinstance(each, Node)]
        return None if self.is_in_place or len(places) < len(self.inputs) else places

    def _filled(self, value: Any, values: Mapping[int, Tensor], dtype: torch.dtype | None) -> Any:
        if isinstance(value, Node):
            return values[value.number]
        if isinstance(value, Tensor):
            value = value.to(dtype) if dtype and value.is_floating_point() else value
            return value.clone() if self.is_in_place else value
        if isinstance(value, list | tuple):
            return [self._filled(each, values, dtype) for each in value]
        return dtype if dtype and isinstance(value, torch.dtype) and value.is_floating_point else value


@dataclass
class Trace:
    """The operators that have dealt with a product's result, and after `end` those of a core alone.

    `operands` are the tensors of the call by their numbers: LEFT, RIGHT and VALUE; `output` is the core's true output,
    None once the model has changed it in place.
    `sources` are those of which an operand is a copy in another order, which products make by themselves.
    Tensors that don't depend on the scores, such as masks, are held by the calls. What the core computed is not held:
    nodes are known by their memory and geometry, until another tensor takes the memory over.
    """

    calls: list[OperatorCall] = field(default_factory=list)
    operands: dict[int, Tensor] = field(default_factory=dict)
    sources: dict[int, Tensor] = field(default_factory=dict)
    output: Tensor | None = None
    has_ended: bool = False
    is_flat: bool = False
    """Whether the model itself calls a product of three dimensions, so that its queries have three."""
    is_swapped: bool = False
    """Whether the last product has the weights on the right."""
    use: str = ""
    """The line of source that uses scores or weights after the core, so that they are needed."""
    twin: "Trace | None" = None
    """The trace of a core that is alike, which is kept in place of this one."""
    shapes: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """The shapes of the nodes that operators computed."""
    roots: dict[int, int] = field(default_factory=dict)
    """For each of these nodes the first one in the same memory."""
    _nodes: dict[int, dict[Geometry, int]] = field(default_factory=dict)

    def begin(
        self, operator: Any, args: Sequence[Any], kwargs: Any, output: Tensor, lines: Sequence[Line], copies: Copies
    ) -> None:
        """Note the first product, whose last two arguments are its operands."""
        self._take(LEFT, args[-2], copies)
        self._take(RIGHT, args[-1], copies)
        given = (*changed(tuple(args[:-2]), _detached), Node(LEFT), Node(RIGHT))
        self.calls = [OperatorCall(operator, given, dict(kwargs or {}), (SCORES,), tuple(lines))]
        self._nodes, self.roots = {memory(output): {_geometry(output): SCORES}}, {SCORES: SCORES}
        self.shapes = {SCORES: tuple(output.shape)}

    @property
    def is_open(self) -> bool:
        """Whether operators can follow that belong to it."""
        return bool(self._nodes) and not self.has_ended

    def knows(self, places: Container[int]) -> bool:
        """Return whether one of these memories holds what depends on the scores."""
        return any(place in places for place in self._nodes)

    def note(self, operator: Any, args: Sequence[Any], kwargs: Any, output: Any, lines: Sequence[Line]) -> None:
        """Note an operator among whose arguments are nodes."""
        name = operator.overloadpacket.__name__
        if name == "detach":
            return  # it is the same node; autograd makes one of what it saves, and again it would end the graph
        if name in CONSTANT:
            self.overwritten(memory(output))  # a tensor that is lifted is new too, and its making was not seen
            return
        before = {memory(each) for each in tensors([args, kwargs])}
        given, options = changed((tuple(args), dict(kwargs or {})), self._held)
        outputs = tuple(self._number(each, is_new=memory(each) not in before) for each in tensors([output]))
        self.calls.append(OperatorCall(operator, given, options, outputs, tuple(lines)))
        if len(self.calls) > MOST_CALLS:
            self.forget()

    def forget(self) -> None:
        """Give up, and let go of all tensors."""
        self.calls, self.operands, self.sources, self._nodes = [], {}, {}, {}

    def give_way(self, twin: "Trace") -> None:
        """Let go of all tensors in favour of the trace of a core that is alike."""
        self.calls, self.operands, self.sources, self.output, self.twin = [], {}, {}, None, twin

    def after(self, operator: Any, args: Iterable[Any], output: Any, lines: Callable[[], Sequence[Line]]) -> None:
        """Note an operator after the core: it may change the output in place, or use scores or weights.

        A view of them is no use yet.
        """
        before = [*tensors(args)]
        places = {memory(each) for each in before}
        if self.output is not None and operator._schema.is_mutable and memory(self.output) in places:
            self.output = None
        uses = any(_geometry(each) in self._nodes.get(memory(each), {}) for each in before)
        views = [each for each in tensors([output]) if memory(each) in places]
        if uses and not views:
            (self.twin or self).use = " ".join(f"{file}:{line}" for file, line in lines())
        for each in views if uses else ():
            self._nodes[memory(each)][_geometry(each)] = SCORES
        for each in tensors([output]):
            if memory(each) not in places:
                self.overwritten(memory(each))

    def overwritten(self, place: int) -> None:
        """Note that another tensor has taken a memory over."""
        self._nodes.pop(place, None)

    def end(
        self, operator: Any, args: Sequence[Any], kwargs: Any, output: Tensor, copies: Copies, *, is_swapped: bool
    ) -> None:
        """Note the last product, and keep only the operators on whose results it depends."""
        if not self.calls:
            return
        weights, value = args[-2:][:: -1 if is_swapped else 1]
        self._take(VALUE, value, copies)
        pair = (self._held(weights), Node(VALUE))[:: -1 if is_swapped else 1]
        given = (*changed(tuple(args[:-2]), _detached), *pair)
        self.calls.append(OperatorCall(operator, given, dict(kwargs or {}), (max(self.roots) + 1,), ()))
        self.output, self.is_swapped, self.has_ended = output.detach(), is_swapped, True
        needed, calls = {self.roots[each] for each in self.calls[-1].inputs if each in self.roots}, list[OperatorCall]()
        for call in reversed(self.calls[:-1]):
            if needed & {self.roots[each] for each in call.outputs}:
                needed |= {self.roots[each] for each in call.inputs if each in self.roots}
                calls.insert(0, call)
        self.calls = [*calls, self.calls[-1]]

    def again(self, operands: Mapping[int, Tensor], dtype: torch.dtype | None = None) -> Tensor:
        """Return the core's output for other operands, which have the shapes of those of the call."""
        values = dict(operands)
        for call, unused in zip(self.calls, self._unused, strict=True):
            output = call.again(values, dtype)
            every = (output,) if isinstance(output, Tensor) else tensors(output)
            values.update(zip(call.outputs, every, strict=True))
            for each in unused:
                del values[each]
        o: Tensor = output
        return o

    @cached_property
    def _unused(self) -> list[list[int]]:
        """The nodes that no operator needs after each one."""
        last = {each: number for number, call in enumerate(self.calls) for each in (*call.inputs, *call.outputs)}
        return [[each for each, at in last.items() if at == number] for number in range(len(self.calls))]

    @property
    def signature(self) -> str:
        """What tells apart cores of the same shapes: their operators, with all arguments that are no tensors."""
        kept = [(str(call.operator), changed((call.args, call.kwargs), _described)) for call in self.calls]
        return repr(kept)

    def _take(self, number: int, operand: Tensor, copies: Copies) -> None:
        self.operands[number] = _detached(operand)
        source = copies.get(memory(operand))
        if source is not None and source.numel() == operand.numel() and operand.is_contiguous():
            self.sources[number] = source

    def _held(self, value: Any) -> Any:
        """Return the node of a tensor, or a tensor that isn't one, as a leaf."""
        if not isinstance(value, Tensor):
            return value
        number = self._nodes.get(memory(value), {}).get(_geometry(value))
        return _detached(value) if number is None else Node(number)

    def _number(self, tensor: Tensor, *, is_new: bool) -> int:
        number = max(self.roots) + 1
        known = {} if is_new else self._nodes.get(memory(tensor), {})
        self.roots.setdefault(number, self.roots[next(iter(known.values()))] if known else number)
        self._nodes[memory(tensor)], self.shapes[number] = known, tuple(tensor.shape)
        return known.setdefault(_geometry(tensor), number)


def memory(tensor: Tensor) -> int:
    """Return what names a tensor's memory while it lives: views share it, and each new output takes it over."""
    return int(tensor.untyped_storage()._cdata)


def leaves(values: Iterable[Any]) -> Iterator[Any]:
    """Yield what is in nested tuples, lists and dictionaries."""
    for value in values:
        if isinstance(value, list | tuple):
            yield from leaves(value)
        elif isinstance(value, dict):
            yield from leaves(value.values())
        else:
            yield value


def tensors(values: Iterable[Any]) -> Iterator[Tensor]:
    """Yield the tensors in nested tuples, lists and dictionaries."""
    return (each for each in leaves(values) if isinstance(each, Tensor))


def _geometry(tensor: Tensor) -> Geometry:
    return int(tensor.storage_offset()), tuple(tensor.shape), tuple(tensor.stride())


def _detached(value: Any) -> Any:
    """Return a tensor without its history; it needs a gradient if it did, since kernels are chosen by that too."""
    return value.detach().requires_grad_(value.requires_grad) if isinstance(value, Tensor) else value


def _described(value: Any) -> Any:
    return (str(value.dtype), tuple(value.shape), value.requires_grad) if isinstance(value, Tensor) else value
