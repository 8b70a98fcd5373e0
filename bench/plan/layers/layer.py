"""The definition of a layer without torch: its columns, the work of its steps, its sizes, its memory."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from bench.plan.case import Point
from bench.plan.errors import WrongRequest

Values = dict[str, Any]


@dataclass(frozen=True)
class Step:
    """One step of a layer, as the implementation `stepwise` labels it.

    `forward` and `backward` are the numbers of elements that it must read and write, each tensor once. The backward
    pass reads the output's gradient and the kept tensors, and writes the inputs' gradients.
    `multiplications` are those of its matrix product in the forward pass, None if it has no product.
    """

    forward: int
    backward: int
    multiplications: int | None = None


VIEW = Step(0, 0)
"""A view moves nothing."""


@dataclass(frozen=True)
class Sizes:
    """The numbers of elements of a layer's input, output and weights."""

    x: int
    y: int
    weights: int


@dataclass(frozen=True)
class Layer:
    """Everything about a layer that needs no torch.

    `module` is `module:attribute` of its class in `impls`. `needs` are the columns that a sweep must give, `without`
    those that the layer doesn't use, `fixed` those that have only one value.
    `derive` returns the columns that follow from the others, or raises WrongRequest.
    `steps` and `sizes` are functions of a point. `peaks` maps an implementation to a function of a point: the elements
    that one call holds at its peak beyond input and weights, in inference on a CPU.
    """

    name: str
    module: str
    meaning: str
    needs: tuple[str, ...]
    without: tuple[str, ...]
    derive: Callable[[Values], Values]
    steps: Callable[[Point], Mapping[str, Step]]
    sizes: Callable[[Point], Sizes]
    fixed: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    peaks: Mapping[str, Callable[[Point], int]] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def class_name(self) -> str:
        """The name of the layer's class."""
        return self.module.rpartition(":")[2]


def core(point: Point, key_channels: int, value_channels: int) -> dict[str, Step]:
    """Return the steps from queries, keys and values to the weighted values; both widths are sums over all heads."""
    tokens = point.batch * point.num_tokens
    keys, values = tokens * key_channels, tokens * value_channels
    scores = tokens * point.num_tokens * point.num_heads
    # a causal mask needs half of the scores (Dao 2023, arXiv 2307.08691, section 4.1)
    halves = 2 if point.mask == "causal" else 1
    masking = {"mask": Step(2 * scores, 2 * scores)} if point.mask != "none" else {}
    return {
        "scale": Step(2 * keys, 2 * keys),
        "scores": Step(2 * keys + scores, scores + 4 * keys, keys * point.num_tokens // halves),
        **masking,
        "softmax": Step(2 * scores, 3 * scores),
        "weighted values": Step(scores + 2 * values, 2 * scores + 3 * values, values * point.num_tokens // halves),
    }


def projection(tokens: int, width: int, to: int, *, bias: bool) -> Step:
    """Return the step that multiplies every token by weights; its backward pass gives gradients of both."""
    x, weights, y = tokens * width, width * to, tokens * to
    biases = to if bias else 0
    return Step(x + weights + biases + y, y + 2 * (x + weights) + biases, tokens * weights)


def merge_heads(point: Point) -> Step:
    """Return the step that puts heads side by side: a copy, or a view if there is only one head."""
    return VIEW if point.num_heads == 1 else Step(2 * point.batch * point.num_tokens * point.channels, 0)


def check_tokens(values: Values, tokens: int, origin: str) -> None:
    """Raise WrongRequest if a sweep gives another number of tokens than the image has."""
    given = values.get("num_tokens", tokens)
    if given != tokens:
        raise WrongRequest(f"num_tokens = {given} contradicts {origin} which makes {tokens}; leave num_tokens out")
