"""The vision-transformer attention layer (`impls.layers.vit`)."""

from fractions import Fraction

from bench.plan.case import Point
from bench.plan.layers.layer import Layer, Step, Values, all_tokens, check_lengths, core, merge_heads, projection
from bench.plan.layers.peaks import attention_eager, flash
from impls.catalogue import BLOCK_TOKENS


def _derive(values: Values) -> Values:
    check_lengths(values)
    return {"token_len": values["channels"]}


def _steps(point: Point) -> dict[str, Step]:
    tokens, dim, chan = all_tokens(point), point.token_len, point.channels
    values = tokens * chan
    return {
        "qkv projection": projection(tokens, dim, 3 * chan, bias=point.qkv_bias),
        # a view; the backward pass copies three gradients into one
        "split heads": Step(0, 6 * values),
        **core(point, chan, chan),
        "merge heads": merge_heads(point),
        "output projection": projection(tokens, chan, chan, bias=True),
        "skip": Step(3 * values, 0),
    }


# The peaks count tensors. X = B·N·chan elements is the size of each of q, k and v, which are one projection of 3·X
# during the whole call. S = B·H·N² elements is the size of all scores.


def _eager(point: Point) -> int | Fraction:
    """The peak is that of the layer `attention`, or at the skip."""
    return max(attention_eager(point), _end(point))


def _sdpa(point: Point) -> int:
    """The flash kernel holds a sum for each query and scratch for each thread, besides projection and output."""
    return max(4 * _projected(point) + flash(point), _end(point))


def _stepwise(point: Point) -> int:
    """The scaled queries and both score tensors live until the values are weighted, which takes a copy of v."""
    x, s = _projected(point), _scores(point)
    return max((6 if _is_split(point) else 5) * x + 2 * s, _end(point))


def _manual(point: Point) -> int:
    """The peak is at the last head's division: raw, shifted and normalised scores, a sum, and the earlier outputs."""
    x, head = _projected(point), _scores(point) // point.num_heads
    earlier = x - x // point.num_heads
    return max(3 * x + earlier + 3 * head + point.batch * point.num_tokens, _end(point))


def _online(point: Point) -> int:
    """The peak is at `exp` (3 blocks of scores and the previous weights) or when the output is rescaled.

    At the rescaling 2 blocks of scores and 3 tensors of the output's size live, besides the projection and the scaled
    queries.
    """
    x, lines = _projected(point), point.batch * point.num_heads * point.num_tokens
    most, before = 0, 0
    for first in range(0, point.num_tokens, BLOCK_TOKENS):
        block = lines * min(BLOCK_TOKENS, point.num_tokens - first)
        at_exponential = 5 * x + 3 * block + before + (4 if before else 3) * lines
        at_output = 8 * x + 2 * block + 4 * lines
        most, before = max(most, at_exponential, at_output), block
    return most


def _mha(point: Point) -> int:
    """The fast path, which needs an even number of heads, holds all scores once; otherwise flash holds its scratch."""
    x = _projected(point)
    return max(7 * x, 4 * x + _scores(point) if point.num_heads % 2 == 0 else 5 * x + flash(point))


def _is_split(point: Point) -> bool:
    """Return whether batch and heads have separate strides in q, k and v, so that a product must copy them."""
    return point.batch > 1 and point.num_heads > 1


def _end(point: Point) -> int:
    """Return the peak at output projection and skip: QKV, o, its merged copy or the product, and the sum."""
    return 6 * _projected(point)


def _projected(point: Point) -> int:
    return point.batch * point.num_tokens * point.channels


def _scores(point: Point) -> int:
    return point.batch * point.num_heads * point.num_tokens**2


LAYER = Layer(
    name="vit",
    module="layers.vit:ViTAttention",
    meaning="multi-head self-attention with output projection and a skip that adds the values (T2T-ViT)",
    steps=_steps,
    takes=("qkv_bias", "qk_scale", "lengths"),
    derive=_derive,
    peaks={
        "eager": _eager,
        "stepwise": _stepwise,
        "manual": _manual,
        "online": _online,
        "sdpa": _sdpa,
        "sdpa_flash": _sdpa,
        "mha": _mha,
    },
)
