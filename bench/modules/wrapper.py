"""A measured module as a function from its inputs, usually x alone, to one tensor."""

import contextlib
import copy
import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from impls.contract import Attend, Unresolved, Unsupported
from impls.sameness import are_same
from impls.sdpa_calls import SDPAReplaced, any_dimensions, names_of_sdpa, stand_in

NOTHING = contextlib.nullcontext()


@dataclass(frozen=True)
class Given:
    """The place of an input among the arguments of a module, by its number."""

    number: int = 0


X = Given()
"""The place of the first input, x."""


@dataclass(frozen=True)
class Held:
    """A tensor among the arguments that the wrapper holds under a name; `of_items` if all items have the same row."""

    name: str
    of_items: bool


class Wrapper(nn.Module):
    """A module that takes only inputs `[B, *item]`, one for each of `items`, and returns its first output tensor.

    `inner` is the module. `args` and `kwargs` are its arguments in a call with `batch` items; a Given marks the place
    of an input, and other tensors among them are held as buffers.
    `rows` is the number of rows of the inner x per item, such as the windows of an image. `embedding` is the path of
    an `nn.Embedding` inside that returns x in place of its rows for token ids.
    `forms` has the arguments for each setting of the library's switch that needs its own, such as a mask for `eager`.
    `attend`, unless None, replaces `F.scaled_dot_product_attention` and may get any of CORE_KEYWORDS. Calls run inside
    `context()`. `adapted_by` says how the core was replaced, `returned` is the type of an output that was no tensor,
    and `column_remarks` says which columns set a parameter that may mean something else, and which set none.
    """

    def __init__(
        self,
        inner: nn.Module,
        items: tuple[tuple[int, ...], ...],
        args: tuple[Any, ...] = (X,),
        kwargs: Mapping[str, Any] | None = None,
        *,
        batch: int = 1,
        rows: int = 1,
        embedding: str = "",
        forms: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.inner = inner
        self.items = items
        self.batch = batch
        self.rows = rows
        self.embedding = embedding
        if embedding:
            _let_take_place(inner.get_submodule(embedding))
        self.attend: Attend | None = None
        self.context: Callable[[], AbstractContextManager[object]] = contextlib.nullcontext
        self.names = names_of_sdpa(inner)
        self.adapted_by = self.returned = self.column_remarks = ""
        self.args, self.kwargs = changed((args, dict(kwargs or {})), self._hold)
        self.forms: dict[str, Any] = changed(dict(forms or {}), self._hold)
        is_as_inputs = self.args == tuple(map(Given, range(len(items)))) and not self.kwargs
        self.is_plain = is_as_inputs and rows == 1 and not embedding
        """Whether the module takes the inputs as they are, and nothing else."""

    @property
    def said(self) -> tuple[str, ...]:
        """Remarks for the reader of a row: the place of x, and which tensor counts."""
        words = (
            f"x is the output of {self.embedding} for token ids" if self.embedding else "",
            f"the output is the first tensor of {self.returned}" if self.returned else "",
        )
        return tuple(filter(None, words))

    @property
    def arguments(self) -> list[Tensor]:
        """The tensors that the wrapper holds and passes to the module as arguments."""
        return [*self._buffers.values()]  # type: ignore[list-item]  # each is held

    def zeros(self, **of: Any) -> tuple[Tensor, ...]:
        """Return inputs of zeros, with the batch of the arguments."""
        return tuple(torch.zeros(self.batch, *item, **of) for item in self.items)

    def __call__(self, *xs: Tensor) -> Tensor:
        """Call `forward` without torch's hooks, which would take microseconds."""
        return self.forward(*xs)

    def forward(self, *xs: Tensor) -> Tensor:
        """Return the first tensor of the module's output."""
        if self.is_plain and self.attend is None and self.context is contextlib.nullcontext:  # it saves microseconds
            output = self._modules["inner"](*xs)  # type: ignore[misc]  # it is there
            return output if isinstance(output, Tensor) else self._first(output)
        args, kwargs = changed((self.args, self.kwargs), functools.partial(self._filled, xs))
        with (
            self.context(),
            NOTHING if self.attend is None else _put_in(self.attend, self.names),
            self._embedded(xs[0]),
        ):
            output = self.inner(*args, **kwargs)
        y = output if isinstance(output, Tensor) else self._first(output)
        return y.unflatten(0, (len(xs[0]), self.rows)) if self.rows > 1 else y

    def __copy__(self) -> "Wrapper":
        """Return a copy with modules of its own that shares the weights."""
        own: Wrapper = copied(self, {id(tensor): tensor for tensor in chain(self.parameters(), self.buffers())})
        return own

    def _embedded(self, x: Tensor) -> AbstractContextManager[object]:
        """Return a context in which the module's embedding, if it has one, returns x."""
        return _in_place(self.inner.get_submodule(self.embedding), x) if self.embedding else NOTHING

    def _first(self, output: Any) -> Tensor:
        self.returned = type(output).__name__
        return first_tensor(output)

    def _hold(self, value: Any) -> Any:
        """Hold a tensor as a buffer and return its Held; return any other argument as it is."""
        if not isinstance(value, Tensor):
            return value
        has_rows = value.shape[:1] == (self.batch,)
        name = f"held_{len(self._buffers)}"
        self.register_buffer(name, value.detach().clone())
        return Held(name, has_rows and are_same(value, value[:1].expand_as(value)))

    def _filled(self, xs: tuple[Tensor, ...], value: Any) -> Any:
        if isinstance(value, Held):
            held, items = self.get_buffer(value.name), len(xs[0])
            return held[:1].expand(items, *held.shape[1:]) if value.of_items and items != len(held) else held
        if not isinstance(value, Given):
            return value
        return xs[value.number].flatten(0, 1) if self.rows > 1 else xs[value.number]


def _let_take_place(embedding: nn.Module) -> None:
    """Change an embedding so that it returns its attribute `x_in_place` if that has a row for each id.

    It returns a copy, because the module may change the result in place.
    """
    kind: Any = type(embedding)
    if getattr(embedding, "x_in_place", ...) is None:
        return

    def forward(self: Any, ids: Tensor, *args: Any, **kwargs: Any) -> Any:
        x = self.x_in_place
        return kind.forward(self, ids, *args, **kwargs) if x is None or x.shape[:-1] != ids.shape else x.clone()

    embedding.__class__ = type(kind.__name__, (kind,), {"forward": forward, "__module__": kind.__module__})
    embedding.x_in_place = None  # type: ignore[assignment]  # no submodule


@contextlib.contextmanager
def _in_place(embedding: Any, x: Tensor) -> Iterator[None]:
    """Make an embedding return x in place of its rows for token ids while the context lasts."""
    embedding.x_in_place = x
    try:
        yield
    finally:
        embedding.x_in_place = None


def inner_of(layer: nn.Module) -> nn.Module:
    """Return the module in a wrapper; any other layer is returned as it is."""
    return layer.inner if isinstance(layer, Wrapper) else layer


def copied(module: nn.Module, shared: Mapping[int, Tensor] | None = None) -> Any:
    """Return a deep copy of a module that shares the tensors in `shared`, which are keyed by id.

    Tensors that a call left in attributes are detached, because a graph can't be copied.
    """
    left = (each for of in module.modules() for each in tree_leaves([*vars(of).values()]) if isinstance(each, Tensor))
    known = {id(each): each.detach() for each in left if not each.is_leaf}
    return copy.deepcopy(module, {**known, **(shared or {})})


def changed(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return arguments with `change` applied to each value, also in tuples, lists and dictionaries."""
    if type(value) in (tuple, list):
        return type(value)(changed(each, change) for each in value)
    if type(value) is dict:
        return {key: changed(each, change) for key, each in value.items()}
    return change(value)


def first_tensor(output: Any) -> Tensor:
    """Return the first floating-point tensor of an output: itself, or one in a tuple, a mapping or an object."""
    if isinstance(output, Tensor):
        check_plain(output)
        return output
    values = output.values() if isinstance(output, Mapping) else output if isinstance(output, tuple | list) else ()
    for value in values or vars(output).values() if hasattr(output, "__dict__") else values:
        if isinstance(value, Tensor) and value.is_floating_point():
            return value
    raise Unresolved(
        "the module must return a floating-point tensor, or one in a tuple, mapping or object; "
        f"got {type(output).__name__}{' without one' * (output is not None)}"
    )


def check_plain(tensor: Tensor, what: str = "the module returns") -> None:
    """Raise `Unsupported` for a nested, complex or sparse tensor; the message begins with `what`."""
    kind = "nested" if tensor.is_nested else "complex" if tensor.is_complex() else ""
    kind = kind or ("" if tensor.layout == torch.strided else str(tensor.layout).removeprefix("torch."))
    if kind:
        raise Unsupported(f"{what} a {kind} tensor; inputs and outputs must be dense tensors of real numbers")


@functools.cache
def _put_in(attend: Attend, names: tuple[tuple[str, str], ...]) -> AbstractContextManager[None]:
    return SDPAReplaced(stand_in(any_dimensions(attend)), names)
