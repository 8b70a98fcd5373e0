"""The work of each step of a layer: floating-point operations, and bytes that must be moved."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bench.analyse.work import BACKWARD as BACKWARD_PRODUCTS
from bench.analyse.work import ITEM_BYTES
from bench.plan.case import Point
from bench.plan.layers import KEY_SHARE
from bench.store.profile import FORWARD


@dataclass(frozen=True)
class Step:
    """Elements that a step reads and writes, each tensor once, in the forward pass and in the backward pass.

    The backward pass reads the gradient of the output and what the forward pass had to keep, and writes the
    gradients of the inputs. A step that only looks at a tensor in another way moves nothing.
    `multiplications` are those of its matrix product, None where it has none.
    """

    forward: int
    backward: int
    multiplications: int | None = None


def flops(point: Point, stage: str, direction: str) -> int | None:
    """Return the floating-point operations of a stage's matrix products, None for a stage without any.

    A product's backward pass is two products of its size.
    """
    step = steps(point).get(stage)
    if step is None or step.multiplications is None:
        return None
    return 2 * step.multiplications * (1 if direction == FORWARD else BACKWARD_PRODUCTS)


def moved_bytes(point: Point, stage: str, direction: str) -> int | None:
    """Return the bytes that a stage can't do without, its inputs and outputs moved once.

    None for a stage that no formula knows. Adding up the gradients of a tensor that was used twice is no stage's.
    """
    step = steps(point).get(stage)
    if step is None:
        return None
    return (step.forward if direction == FORWARD else step.backward) * ITEM_BYTES[point.dtype]


def steps(point: Point) -> Mapping[str, Step]:
    """Return the steps of a point's layer, as `impls.whole.stepwise` names them."""
    return STEPS[point.layer](point)


def _vit(point: Point) -> dict[str, Step]:
    tokens, dim, chan = point.batch * point.num_tokens, point.token_len, point.channels
    values = tokens * chan
    return {
        "qkv projection": _projection(tokens, dim, 3 * chan, bias=point.qkv_bias),
        # a view; backward three gradients become one
        "split heads": Step(0, 6 * values),
        **_core(point, chan, chan),
        "merge heads": _merge(point),
        "output projection": _projection(tokens, chan, chan, bias=True),
        "skip": Step(3 * values, 0),
    }


def _self(point: Point) -> dict[str, Step]:
    tokens, keys, values = point.batch * point.num_tokens, point.key_channels, point.channels
    assert keys is not None  # a plan gives it to every point of this layer
    return {
        "qkv projection": _projection(tokens, point.token_len, 2 * keys + values, bias=False),
        "split heads": VIEW,
        **_core(point, keys, values),
        "merge heads": VIEW,
    }


def _patch(point: Point) -> dict[str, Step]:
    tokens, embedded = point.batch * point.num_tokens, point.channels
    return {
        "patch embedding": _projection(tokens, point.token_len, embedded, bias=True),
        "qkv projection": _projection(tokens, embedded, 3 * embedded, bias=True),
        "split heads": VIEW,
        **_core(point, embedded, embedded),
        "merge heads": _merge(point),
        "output projection": _projection(tokens, embedded, embedded, bias=True),
    }


def _conv(point: Point) -> dict[str, Step]:
    tokens, channels = point.batch * point.num_tokens, point.channels
    keys, values = channels // KEY_SHARE, tokens * channels
    return {
        "qkv projection": _projection(tokens, channels, 2 * keys + channels, bias=True),
        "split heads": VIEW,
        **_core(point, keys, channels),
        "merge heads": VIEW,
        # gamma, maps and x in; backward the gradients of gamma and maps, while that of x is the output's own
        "skip": Step(3 * values + 1, 3 * values + 2),
    }


def _core(point: Point, key_channels: int, value_channels: int) -> dict[str, Step]:
    """Return the steps between queries, keys and values and what is made of them; both widths are of all heads."""
    tokens = point.batch * point.num_tokens
    keys, values = tokens * key_channels, tokens * value_channels
    scores = tokens * point.num_tokens * point.num_heads
    return {
        "scale": Step(2 * keys, 2 * keys),
        "scores": Step(2 * keys + scores, scores + 4 * keys, keys * point.num_tokens),
        "softmax": Step(2 * scores, 3 * scores),
        "weighted values": Step(scores + 2 * values, 2 * scores + 3 * values, values * point.num_tokens),
    }


def _projection(tokens: int, width: int, to: int, *, bias: bool) -> Step:
    """Return the step that multiplies every token by weights; backward they get gradients, and so do the tokens."""
    x, weights, y = tokens * width, width * to, tokens * to
    biases = to if bias else 0
    return Step(x + weights + biases + y, y + 2 * (x + weights) + biases, tokens * weights)


def _merge(point: Point) -> Step:
    """Return the step that lays heads side by side: a copy, or a view where there is one head alone."""
    return VIEW if point.num_heads == 1 else Step(2 * point.batch * point.num_tokens * point.channels, 0)


VIEW = Step(0, 0)

STEPS: dict[str, Callable[[Point], dict[str, Step]]] = {"vit": _vit, "self": _self, "patch": _patch, "conv": _conv}
