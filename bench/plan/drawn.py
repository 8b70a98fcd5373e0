"""Shapes drawn between measured ones: there a table of choices is checked."""

import dataclasses
import random
from collections.abc import Sequence

from bench.plan.case import Point
from bench.plan.grid import expand
from impls.table import is_near

Sizes = tuple[int, int, int, int]
"""The items of the batch, the tokens, the heads, and the width of a head."""

WIDTH_STEP = 8
"""Widths of heads are drawn in steps of so many numbers, as models have them."""

TRIES = 200
"""The draws for each shape that is asked for; where few whole numbers lie between the measured ones, most repeat."""


def between(points: Sequence[Point], number: int, chance: random.Random) -> tuple[Point, ...]:
    """Return points of new sizes between measured ones, of each kind in turns; none if no kind has two sizes.

    Points are of a kind if they differ in batch, tokens, heads and the width of a head alone. Sizes are drawn evenly in
    their logarithms, within a factor of 2 of a measured point. Points of images, whose tokens follow from the image,
    and of keys of another width are left out. There are fewer than asked for if few sizes lie between.
    """
    kinds: dict[Point, set[Sizes]] = {}
    for point in points:
        if point.image_size is None and point.key_channels is None:
            kinds.setdefault(_kind(point), set()).add(_sizes(point))
    wide = [(kind, sizes) for kind, sizes in kinds.items() if len(sizes) > 1]
    drawn: dict[Point, None] = {}
    for turn in range(TRIES * number if wide else 0):
        kind, measured = wide[turn % len(wide)]
        if len(drawn) < number and (sizes := _drawn(measured, chance)):
            drawn[_at(kind, sizes)] = None
    return tuple(drawn)


def _kind(point: Point) -> Point:
    token_len = 0 if point.token_len == point.channels else point.token_len
    return dataclasses.replace(point, batch=0, num_tokens=0, num_heads=0, channels=0, token_len=token_len)


def _sizes(point: Point) -> Sizes:
    return point.batch, point.num_tokens, point.num_heads, point.channels // point.num_heads


def _drawn(measured: set[Sizes], chance: random.Random) -> Sizes | None:
    """Return sizes between measured ones, None if they are none of these or none is near."""
    steps = (1, 1, 1, WIDTH_STEP)
    ends = [(min(of), max(of)) for of in zip(*measured, strict=True)]
    batch, tokens, heads, width = (
        low if low == high else min(high, max(low, step * round(low * (high / low) ** chance.random() / step)))
        for (low, high), step in zip(ends, steps, strict=True)
    )
    sizes = batch, tokens, heads, width
    own, *places = [(tokens, width, batch * heads) for batch, tokens, heads, width in (sizes, *measured)]
    is_new = sizes not in measured and any(is_near(own, at) for at in places)
    return sizes if is_new else None


def _at(kind: Point, sizes: Sizes) -> Point:
    batch, tokens, heads, width = sizes
    channels = heads * width
    named = {"batch": batch, "num_tokens": tokens, "num_heads": heads, "channels": channels}
    values = {**vars(kind), **named, "token_len": kind.token_len or channels}
    (point,) = expand({name: value for name, value in values.items() if value is not None})
    return point
