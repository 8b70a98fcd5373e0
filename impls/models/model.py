"""A whole model, or a layer in one, as a layer: one tensor in, one tensor out."""

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention
from torch import Tensor, nn

from impls.catalogue import CORE_KEYWORDS
from impls.contract import Attend, Unresolved, Unsupported, declared_options

SDPA = "scaled_dot_product_attention"
"""The function that libraries call, by its name in `torch.nn.functional`."""

ORIGINAL = F.scaled_dot_product_attention
"""torch's own function."""

CORE_DIMENSIONS = 4
"""The dimensions of queries, keys and values for an `attend`: `[B, H, N, D]`."""


class Place(Enum):
    """The place of x among the arguments of a model."""

    X = "x"


@dataclass(frozen=True)
class Held:
    """A tensor among the arguments, which the model holds under a name; it is expanded to the batch if `per_item`."""

    name: str
    per_item: bool


class Model(nn.Module):
    """A model that takes x `[B, *item]` and returns its first tensor.

    `inner` is the module of the library, `args` and `kwargs` are its arguments with Place.X in place of x.
    Other tensors among them are held, and have the same values for every item.
    `group` is the number of rows of the inner input for each item, such as the windows of an image.
    `forms` are the arguments for each attention of the library that needs its own, such as a mask for `eager`.
    `attend` computes each core in place of `F.scaled_dot_product_attention` if it isn't None, and calls run inside
    `context()`.
    """

    def __init__(
        self,
        inner: nn.Module,
        item: tuple[int, ...],
        args: tuple[Any, ...] = (Place.X,),
        kwargs: Mapping[str, Any] | None = None,
        *,
        batch: int = 0,
        group: int = 1,
        forms: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.inner = inner
        self.item = item
        self.group = group
        self.attend: Attend | None = None
        self.context: Callable[[], AbstractContextManager[object]] = contextlib.nullcontext
        hold = functools.partial(self._hold, batch)
        self.args, self.kwargs = changed((args, dict(kwargs or {})), hold)
        self.forms: dict[str, Any] = changed(dict(forms or {}), hold)

    @property
    def given(self) -> list[Tensor]:
        """The held tensors that have a row for each item: what they hold may be computed from the input."""
        held: list[Held] = []
        changed((self.args, self.kwargs), lambda each: held.append(each) if isinstance(each, Held) else None)
        return [self.get_buffer(each.name) for each in held if each.per_item]

    def input_shape(self, point: Any) -> tuple[int, ...]:
        """Return the shape of x at a point."""
        return (point.batch, *self.item)

    def forward(self, x: Tensor) -> Tensor:
        """Return the first tensor of the model's output."""
        with self.context(), sdpa_replaced(None if self.attend is None else bridge(self.attend)):
            inner = x.flatten(0, 1) if self.group > 1 else x
            args, kwargs = changed((self.args, self.kwargs), functools.partial(self._filled, inner))
            y = first_tensor(self.inner(*args, **kwargs))
        return y.unflatten(0, (x.shape[0], self.group)) if self.group > 1 else y

    def _hold(self, batch: int, value: Any) -> Any:
        """Return what stands in the place of an argument; a tensor becomes a buffer."""
        if not isinstance(value, Tensor):
            return value
        name, per_item = f"held_{len(self._buffers)}", bool(batch) and value.shape[:1] == (batch,)
        if per_item and not bool((value == value[:1]).all()):
            raise Unresolved("the model's other inputs must be the same for all items of the batch")
        self.register_buffer(name, (value[:1] if per_item else value).detach().clone())
        return Held(name, per_item)

    def _filled(self, x: Tensor, value: Any) -> Any:
        if isinstance(value, Held):
            held = self.get_buffer(value.name)
            return held.expand(x.shape[0], *held.shape[1:]) if value.per_item else held
        return x if value is Place.X else value


def changed(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return arguments with each value changed, also those in tuples, lists and dictionaries."""
    if type(value) in (tuple, list):
        return type(value)(changed(each, change) for each in value)
    if type(value) is dict:
        return {key: changed(each, change) for key, each in value.items()}
    return change(value)


def first_tensor(output: Any) -> Tensor:
    """Return the first tensor of a model's output, which may be a tensor, a tuple or a mapping of them."""
    if isinstance(output, Tensor):
        return output
    values = output.values() if hasattr(output, "values") else output if isinstance(output, tuple | list) else ()
    for value in values:
        if isinstance(value, Tensor):
            return value
    raise Unresolved(f"the model must return a tensor, or a tuple or mapping of tensors, got {type(output).__name__}")


@contextmanager
def sdpa_replaced(function: Callable[..., Tensor] | None) -> Iterator[None]:
    """Have a function called in place of `F.scaled_dot_product_attention` inside, if there is one."""
    around = F.scaled_dot_product_attention
    F.scaled_dot_product_attention = function or around
    try:
        yield
    finally:
        F.scaled_dot_product_attention = around


def stand_in(attend: Attend) -> Callable[..., Tensor]:
    """Return a function with the signature of `F.scaled_dot_product_attention` that calls an attend.

    The attend gets those of CORE_KEYWORDS that a call asks for.
    """

    def scaled_dot_product_attention(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        asked = (attn_mask, dropout_p or None, "causal" if is_causal else None, enable_gqa or None)
        options = {name: given for name, given in zip(CORE_KEYWORDS, asked, strict=True) if given is not None}
        around, F.scaled_dot_product_attention = F.scaled_dot_product_attention, ORIGINAL  # the attend may call it
        try:
            return attend(query, key, value, query.shape[-1] ** -0.5 if scale is None else scale, **options)
        finally:
            F.scaled_dot_product_attention = around

    return scaled_dot_product_attention


@functools.cache  # it reads a signature, which takes as long as a small core
def bridge(attend: Attend) -> Callable[..., Tensor]:
    """Return a stand-in for `F.scaled_dot_product_attention` that calls an attend.

    What the attend doesn't declare it can't do: a causal mask needs its keyword `mask`, another mask `attn_mask`,
    dropout `dropout_p`. Then the stand-in raises `Unsupported`.
    """
    declared = declared_options(attend)

    def checked(q: Tensor, k: Tensor, v: Tensor, scale: float, **options: Any) -> Tensor:
        for keyword in options:
            if keyword not in declared:
                raise Unsupported(
                    f"the model's attention has {CORE_KEYWORDS[keyword]}, and this attend declares no keyword "
                    f"{keyword}, as in attend(q, k, v, scale, *, {keyword}=None)"
                )
        if q.dim() != CORE_DIMENSIONS:
            raise Unsupported(f"an attend takes queries [B, H, N, D], and the model has {list(q.shape)}")
        return attend(q, k, v, scale, **options)

    return stand_in(checked)
