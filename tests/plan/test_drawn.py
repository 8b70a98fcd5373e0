"""Shapes that are drawn between measured ones."""

import random
from collections.abc import Sequence

import pytest

from bench.plan.case import Point
from bench.plan.drawn import WIDTH_STEP, between
from impls.table import is_near
from tests.make.points import of_layer, vit_s

GRID = [vit_s(num_tokens=tokens, batch=batch) for tokens in (64, 128, 256, 512) for batch in (1, 2, 4)]


def drawn(points: Sequence[Point], number: int = 20) -> tuple[Point, ...]:
    """Return points that are drawn with the same chance at each call."""
    return between(points, number, random.Random(3))


def test_drawn_points_lie_between_the_measured_ones_and_are_none_of_these() -> None:
    """Only what differs in the measured points differs in them, and each is near to one."""
    points = drawn(GRID)
    assert len(points) == len({*points}) == 20
    assert not {*points} & {*GRID}
    for each in points:
        assert 64 <= each.num_tokens <= 512
        assert 1 <= each.batch <= 4
        assert vit_s(num_tokens=each.num_tokens, batch=each.batch) == each
        sizes = each.num_tokens, 64, each.batch * each.num_heads
        assert any(is_near(sizes, (at.num_tokens, 64, at.batch * at.num_heads)) for at in GRID)


def test_draws_are_even_in_logarithms() -> None:
    """As many lie below the middle of the logarithms as above."""
    tokens = [each.num_tokens for each in drawn([vit_s(num_tokens=2**power) for power in range(6, 13)], 400)]
    assert 160 < sum(each < 512 for each in tokens) < 240


def test_each_kind_has_its_turn() -> None:
    """Points of another dtype or mask are of another kind; a kind of one point has no shapes between."""
    points = [vit_s(num_tokens=tokens, dtype=dtype) for tokens in (64, 256) for dtype in ("float32", "bfloat16")]
    kinds = [each.dtype for each in drawn([*points, vit_s(num_tokens=99, mask="causal")], 6)]
    assert sorted(kinds) == ["bfloat16"] * 3 + ["float32"] * 3


def test_the_width_of_a_head_and_the_heads_give_the_channels() -> None:
    """Widths are drawn in steps; a token is as wide as the channels if it was."""
    points = [
        of_layer("core", num_heads=heads, channels=heads * width, token_len=heads * width)
        for heads in (2, 4)
        for width in (32, 128)
    ]
    for each in drawn(points):
        width = each.channels // each.num_heads
        assert width * each.num_heads == each.channels == each.token_len
        assert width % WIDTH_STEP == 0
        assert 32 <= width <= 128


@pytest.mark.parametrize(
    "points",
    [
        [],
        GRID[:1],
        [vit_s(num_tokens=7), vit_s(num_tokens=8)],
        [vit_s(num_tokens=64), vit_s(num_tokens=64, mask="causal")],
        [of_layer("conv", num_tokens=side**2, image_size=side) for side in (4, 8)],
    ],
    ids=["none", "one", "no number between", "two kinds", "images"],
)
def test_where_nothing_lies_between_nothing_is_drawn(points: list[Point]) -> None:
    """One point, neighbours, points of different kinds, and images, whose tokens follow from them."""
    assert drawn(points) == ()


def test_far_from_all_measured_points_nothing_is_drawn() -> None:
    """A cross of tokens and batch has corners where a table knows nothing."""
    cross = [vit_s(num_tokens=16, batch=1), vit_s(num_tokens=4096, batch=1), vit_s(num_tokens=16, batch=256)]
    for each in drawn(cross):
        assert any(is_near((each.num_tokens, 64, each.batch), (at.num_tokens, 64, at.batch)) for at in cross)
