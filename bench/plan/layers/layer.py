"""The definition of a layer without torch: its columns, the work of its steps, its sizes, its memory."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from bench.plan.case import Point, of_role
from bench.plan.columns import Role
from bench.plan.errors import WrongRequest
from bench.plan.lengths import as_list
from impls.catalogue import CAUSAL, FIXED, GIVEN, NO_MASK, PADDING

Values = dict[str, Any]

NONE = "none"
"""The value of a column that asks for nothing, such as `mask` and `attn_bias`."""

CHOICES = of_role(Role.IMAGE, Role.CONTEXT, Role.CORE, Role.QUERIES, Role.FUNCTION)
"""The columns that only some layers use."""


@dataclass(frozen=True)
class Step:
    """One step of a layer, as the implementation `stepwise` labels it.

    `forward` and `backward` are the numbers of elements that it must read and write, each tensor once; what it makes
    and uses itself counts nothing. The backward pass reads the output's gradient and the kept tensors, and writes the
    inputs' gradients.
    `multiplications` are those of its matrix product in the forward pass, None if it has no product. `weights` are the
    numbers that it holds beside its inputs.
    """

    forward: int
    backward: int
    multiplications: int | None = None
    weights: int = 0


VIEW = Step(0, 0)
"""A view moves nothing."""


def all_tokens(point: Point) -> int:
    """Return the tokens of all items, without padding."""
    return sum(point.items) if point.is_padded else point.batch * point.num_tokens


def pairs(point: Point) -> int:
    """Return the pairs of a query and a key of the same item, as if no mask hid any."""
    return sum(each**2 for each in point.items) if point.is_padded else point.batch * point.num_tokens * point.keys


def tokens(point: Point) -> int:
    """Return the elements of the inputs of a layer that takes tokens, and perhaps a context."""
    context = point.batch * (point.num_kv_tokens or 0) * (point.context_dim or 0)
    return all_tokens(point) * point.token_len + context


def of_tokens(point: Point) -> tuple[int, ...]:
    """Return the shape of an output that has the channels of each token."""
    return point.batch, point.num_tokens, point.channels


@dataclass(frozen=True)
class Layer:
    """Everything about a layer that needs no torch.

    `module` is `module:attribute` of its class in `impls`. `needs` are the columns that a sweep must give, `takes`
    further ones of CHOICES that it uses, `fixed` those that have only one value, `masks` the values of `mask`.
    `derive` returns the columns that follow from the others, or raises WrongRequest.
    `steps` are a function of a point, and so are `inputs`, the elements of its inputs, and `output`, the shape of its
    output with padding. `peaks` maps an implementation
    to a function of a point: the elements that one call holds at its peak beyond input and weights, in inference on a
    CPU, with one of `predicted_masks`.
    """

    name: str
    module: str
    meaning: str
    steps: Callable[[Point], Mapping[str, Step]]
    needs: tuple[str, ...] = ("num_tokens",)
    takes: tuple[str, ...] = ()
    fixed: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    derive: Callable[[Values], Values] = lambda values: {"token_len": values["channels"]}
    inputs: Callable[[Point], int] = tokens
    output: Callable[[Point], tuple[int, ...]] = of_tokens
    masks: tuple[str, ...] = (NO_MASK, CAUSAL)
    peaks: Mapping[str, Callable[[Point], int | Fraction]] = field(default_factory=lambda: MappingProxyType({}))
    predicted_masks: tuple[str, ...] = (NONE,)

    @property
    def class_name(self) -> str:
        """The name of the layer's class."""
        return self.module.rpartition(":")[2]

    @property
    def without(self) -> tuple[str, ...]:
        """The columns that the layer doesn't use."""
        return tuple(name for name in CHOICES if name not in {*self.needs, *self.takes, *self.fixed, "mask"})


def core(point: Point, key_channels: int, value_channels: int) -> dict[str, Step]:
    """Return the steps from queries, keys and values to the weighted values; both widths are sums over all heads."""
    queries = all_tokens(point)
    keys = queries if point.is_padded else point.batch * point.kv_tokens
    group, share = point.num_heads // point.kv_heads, visible_share(point)
    q, k = queries * key_channels, keys * key_channels
    o, v = queries * value_channels, keys * value_channels
    scores, copied = point.num_heads * pairs(point), k + v + (k + v) // group
    repeat = {"repeat heads": Step(copied, copied)} if group > 1 else {}
    biased = {"bias": _bias(point, scores)} if point.attn_bias != NONE else {}
    masking = {"mask": Step(2 * scores, 2 * scores)} if point.mask != NONE or point.is_padded else {}
    return {
        **repeat,
        "scale": Step(2 * q, 2 * q),
        "scores": Step(q + k + scores, scores + 2 * (q + k), int(pairs(point) * key_channels * share)),
        **biased,
        **masking,
        "softmax": Step(2 * scores, 3 * scores),
        "weighted values": Step(scores + v + o, 2 * scores + o + 2 * v, int(pairs(point) * value_channels * share)),
    }


def _bias(point: Point, scores: int) -> Step:
    """Return the step that adds a bias to the scores; its gradient is that of the scores, summed into a table."""
    if point.attn_bias == "alibi":
        return Step(2 * scores + point.num_heads * point.keys**2, 0)
    if point.attn_bias == "relative":
        bias = (2 * math.isqrt(point.keys) - 1) ** 2 * point.num_heads
    else:
        bias = point.num_heads * point.num_tokens * point.keys
    return Step(2 * scores + bias, 0 if point.attn_bias == GIVEN else scores + bias, weights=bias)


def visible_share(point: Point) -> Fraction:
    """Return the share of the scores that a mask leaves, on the average over the items.

    A causal mask leaves half of a square (Dao 2023, arXiv 2307.08691, section 4.1); it begins in the upper left corner.
    """
    if point.mask == CAUSAL:
        queries, keys = point.num_tokens, point.kv_tokens
        return Fraction(queries, 2 * keys) if queries <= keys else 1 - Fraction(keys, 2 * queries)
    if point.mask == PADDING:
        lengths = key_lengths(point.batch, point.kv_tokens)
        return Fraction(sum(lengths), point.batch * point.kv_tokens)
    return Fraction(1)


def key_lengths(batch: int, keys: int) -> list[int]:
    """Return the keys of each item that are no padding, the longest first: from all of them to half, in equal steps."""
    return [keys - keys * item // (2 * (batch - 1)) if batch > 1 else keys for item in range(batch)]


GRIDS = ("num_kv_tokens", "window_size", "rope", "attn_bias")
"""The columns that ask for a context, or for places of tokens, which items of other lengths don't have."""


def check_lengths(values: Values) -> None:
    """Give the values the list of a file's lengths; raises WrongRequest for lengths that a layer can't have."""
    if values.get("lengths", FIXED) == FIXED:
        return
    if values.get("mask") == PADDING:
        raise WrongRequest(f"mask = padding and lengths = {values['lengths']} both say what is padding; leave one out")
    for name in GRIDS:
        if values.get(name) not in (None, NONE):
            raise WrongRequest(f"{name} = {values[name]} needs items of one length; leave it or lengths out")
    values["lengths"] = as_list(values)


def check_core(values: Values, biases: tuple[str, ...]) -> None:
    """Raise WrongRequest for heads, keys, a mask or a bias that a core can't have."""
    check_lengths(values)
    if (bias := values.get("attn_bias", NONE)) not in (NONE, *biases):
        raise WrongRequest(f"attn_bias = {bias} must be {NONE} or {' or '.join(biases)} in the layer {values['layer']}")
    heads, groups = values["num_heads"], values.get("num_kv_heads")
    if groups is not None and heads % groups:
        raise WrongRequest(f"num_heads = {heads} must be divisible by num_kv_heads = {groups}")
    if values.get("mask") == PADDING and values.get("batch") == 1:
        raise WrongRequest("mask = padding needs a batch of at least 2: an item is padded to the length of another")
    if values.get("mask") == PADDING and (values.get("num_kv_tokens") or values.get("num_tokens")) == 1:
        raise WrongRequest("mask = padding needs at least 2 keys: half of them are padding in the shortest item")


def projection(tokens: int, width: int, to: int, *, bias: bool) -> Step:
    """Return the step that multiplies every token by weights; its backward pass gives gradients of both."""
    x, weights, y = tokens * width, width * to, tokens * to
    biases = to if bias else 0
    return Step(x + weights + biases + y, y + 2 * (x + weights) + biases, tokens * weights, weights + biases)


def merge_heads(point: Point) -> Step:
    """Return the step that puts heads side by side: a copy, or a view if there is only one head or one token."""
    is_view = 1 in (point.num_heads, point.num_tokens)
    return VIEW if is_view else Step(2 * all_tokens(point) * point.channels, 0)


def check_tokens(values: Values, tokens: int, origin: str) -> None:
    """Raise WrongRequest if a sweep gives another number of tokens than the image has."""
    given = values.get("num_tokens", tokens)
    if given != tokens:
        raise WrongRequest(f"num_tokens = {given} contradicts {origin} which makes {tokens}; leave num_tokens out")
