"""The definition of a layer without torch: its columns, its work and its sizes."""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Any, NamedTuple

from bench.plan.case import Point, of_role
from bench.plan.columns import NONE, Role
from bench.plan.errors import WrongRequest
from bench.plan.lengths import ordered
from impls import catalogue
from impls.catalogue import CAUSAL, FIXED

Values = dict[str, Any]

CHOICES = of_role(Role.IMAGE, Role.CONTEXT, Role.CORE, Role.QUERIES, Role.FUNCTION)
"""The columns that only some layers use."""


class Projection(NamedTuple):
    """A product of each token with weights."""

    tokens: int
    width: int
    to: int
    bias: bool = True

    @property
    def weights(self) -> int:
        """The number of its weights and biases."""
        return (self.width + self.bias) * self.to


def all_tokens(point: Point) -> int:
    """Return the number of tokens of all items, without padding."""
    return sum(point.items) if point.is_padded else point.batch * point.num_tokens


def pairs(point: Point) -> int:
    """Return the number of pairs of a query and a key of the same item, regardless of masks."""
    return sum(each**2 for each in point.items) if point.is_padded else point.batch * point.num_tokens * point.keys


BACKWARD_PRODUCTS = 2
"""A matrix product's backward pass is two products of its size."""

PASSES = {"train": 1 + BACKWARD_PRODUCTS, "backward": BACKWARD_PRODUCTS}
"""A call's products per product of the forward pass, by mode."""


class Layer:
    """Everything about a layer that needs no torch; it belongs to the suite unless it `is_module`.

    A module `is_users` if its code isn't from a library in SOURCES. `module` is `module:attribute` of a layer's class
    in `impls`. `needs` are the columns that a sweep must give, `takes` others of CHOICES that the layer uses, and
    `fixed` the columns with only one value.
    """

    is_module = is_users = False
    name = module = meaning = ""
    needs: tuple[str, ...] = ("num_tokens",)
    takes: tuple[str, ...] = ()
    fixed: Mapping[str, Any] = MappingProxyType({})

    @property
    def path(self) -> str:
        """The `module:attribute` of its class."""
        return f"{catalogue.__package__}.{self.module}"

    @property
    def class_name(self) -> str:
        """The name of the layer's class."""
        return self.module.rpartition(":")[2]

    @property
    def without(self) -> tuple[str, ...]:
        """The columns that the layer doesn't use."""
        return tuple(name for name in CHOICES if name not in {*self.needs, *self.takes, *self.fixed, "mask"})

    def usable(self, usual: Mapping[str, Any]) -> Values:
        """Return the usual values without the columns that the layer fixes, derives or doesn't use."""
        derived = ("num_tokens", "token_len") if "image_size" in self.needs else ()
        none = (*self.without, *self.fixed, *derived)
        return {column: value for column, value in usual.items() if column not in none}

    def derive(self, values: Values) -> Values:
        """Return the columns that follow from the others; raises WrongRequest for values that the layer can't have."""
        return {"token_len": values["channels"]}

    def projections(self, point: Point) -> Sequence[Projection]:  # noqa: ARG002
        """Return its products of tokens with weights."""
        return ()

    def core_widths(self, point: Point) -> tuple[int, int]:
        """Return the widths of keys and of values, summed over all heads."""
        return point.channels, point.channels

    def further_weights(self, point: Point) -> int:  # noqa: ARG002
        """Return the number of weights outside projections."""
        return 0

    def inputs(self, point: Point) -> int:
        """Return the number of elements of its inputs: tokens, and a context if there is one."""
        context = point.batch * (point.num_kv_tokens or 0) * (point.context_dim or 0)
        return all_tokens(point) * point.token_len + context

    def output(self, point: Point) -> tuple[int, ...]:
        """Return the shape of its output, with padding."""
        return point.batch, point.num_tokens, point.channels

    def flops(self, point: Point) -> int | None:
        """Return the floating-point operations of its matrix products, 2·M·N·K each; None if they are unknown.

        In the mode `train` they include the gradients of both factors, as `torch.utils.flop_counter` counts them; in
        the mode `backward` they are only these gradients.
        """
        return 2 * self.multiplications(point) * PASSES.get(point.mode, 1)

    def multiplications(self, point: Point) -> int:
        """Return the multiplications in the matrix products of a forward pass; in the core only of visible pairs."""
        core = sum(int(pairs(point) * width * visible_share(point)) for width in self.core_widths(point))
        return core + sum(each.tokens * each.width * each.to for each in self.projections(point))

    def weights(self, point: Point) -> int:
        """Return the number of all weights."""
        return sum(each.weights for each in self.projections(point)) + self.further_weights(point) + _bias(point)


def _bias(point: Point) -> int:
    """Return the number of elements of a bias that is a weight or an input of the core."""
    if point.attn_bias == "relative":
        return (2 * math.isqrt(point.keys) - 1) ** 2 * point.num_heads
    return 0 if point.attn_bias in (NONE, "alibi") else point.num_heads * point.num_tokens * point.keys


def visible_share(point: Point) -> Fraction:
    """Return the share of the scores that a mask keeps.

    A causal mask keeps half of a square (Dao 2023, arXiv 2307.08691, section 4.1); it starts in the upper left corner.
    """
    if point.mask == CAUSAL:
        queries, keys = point.num_tokens, point.kv_tokens
        return Fraction(queries, 2 * keys) if queries <= keys else 1 - Fraction(keys, 2 * queries)
    return Fraction(1)


OF_ONE_LENGTH = ("num_kv_tokens", "window_size", "rope")
"""The columns for a context, windows or a rotary embedding, which need items of equal length."""


def check_lengths(values: Values) -> None:
    """Sort a list of lengths; raises WrongRequest for lengths that a layer can't have."""
    if values.get("lengths", FIXED) == FIXED:
        return
    for name in OF_ONE_LENGTH:
        if values.get(name) not in (None, NONE):
            raise WrongRequest(f"{name} = {values[name]} needs items of equal length; leave it or lengths out")
    values["lengths"] = ordered(values)


def check_core(values: Values, biases: tuple[str, ...]) -> None:
    """Raise WrongRequest for heads, keys, a mask or a bias that a core can't have."""
    check_lengths(values)
    if (bias := values.get("attn_bias", NONE)) not in (NONE, *biases):
        raise WrongRequest(f"attn_bias = {bias} must be {NONE} or {' or '.join(biases)} in the layer {values['layer']}")
    heads, groups = values["num_heads"], values.get("num_kv_heads")
    if groups is not None and heads % groups:
        raise WrongRequest(f"num_heads = {heads} must be divisible by num_kv_heads = {groups}")


def check_tokens(values: Values, tokens: int, origin: str) -> None:
    """Raise WrongRequest if a sweep gives another number of tokens than the image has."""
    given = values.get("num_tokens", tokens)
    if given != tokens:
        raise WrongRequest(f"num_tokens = {given} contradicts {origin} which makes {tokens}; leave num_tokens out")
