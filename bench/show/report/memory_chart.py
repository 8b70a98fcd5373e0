"""Live memory over one call: the curve of all blocks, and the largest ones as bands under it, each with a letter."""

import string
from collections.abc import Sequence
from dataclasses import dataclass

from bench.analyse.profile import Peak, live_bytes, peak
from bench.show.operators import CATEGORY_COLOURS, category
from bench.show.palette import stage_colour
from bench.store.profile import Block, Profile

NAMED, LEAST_NAMED = 8, 0.02
"""The largest number of blocks with a band of their own, and the least share of the peak that such a block has."""

WIDTH, HEIGHT = 1000, 150
"""The size of the chart in its own units."""

COLUMN = 2
"""Points within this number of units look the same."""

Vertex = tuple[float, float]


@dataclass(frozen=True)
class Band:
    """A block in the chart by its letter; `left`, `right`, `height` and the `bottom` at its start are shares."""

    letter: str
    block: Block
    colour: str
    path: str
    left: float
    right: float
    bottom: float
    height: float


@dataclass(frozen=True)
class MemoryChart:
    """The memory chart of a call; `path` is the outline of all live blocks."""

    peak: Peak
    whole_s: float
    path: str
    bands: tuple[Band, ...]


def memory_chart(profile: Profile, whole_s: float) -> MemoryChart | None:
    """Return the chart of the recorded call, which took `whole_s`; None if nothing was allocated."""
    blocks, top = profile.blocks, peak(profile)
    if top is None:
        return None
    end_s = max([whole_s, *(block.end_s or block.start_s for block in blocks)])
    large = [block for block in blocks if block.bytes >= LEAST_NAMED * top.bytes]
    # among equal ones, those alive at the peak come first
    large.sort(key=lambda block: (-block.bytes, block not in top.blocks))
    largest = sorted(large[:NAMED], key=lambda block: block.start_s)
    scale = _Scale(end_s or 1.0, top.bytes or 1)
    vertices = _thinned([(scale.x(at_s), scale.y(size)) for at_s, size in live_bytes(blocks)])
    letters = string.ascii_uppercase
    bands = [_band(letters[number], block, largest[:number], scale) for number, block in enumerate(largest)]
    outline = f"M{_number(vertices[0][0])} {HEIGHT}{_stairs(vertices)}H{WIDTH}V{HEIGHT}Z"
    return MemoryChart(top, end_s, outline, tuple(bands))


@dataclass(frozen=True)
class _Scale:
    end_s: float
    most_bytes: int

    def x(self, at_s: float) -> float:
        return WIDTH * at_s / self.end_s

    def y(self, size: float) -> float:
        return HEIGHT * (1 - size / self.most_bytes)


def _band(letter: str, block: Block, before: Sequence[Block], scale: _Scale) -> Band:
    """Return the band of a block: it lies on the blocks before it and sinks when they are freed."""
    end_s = scale.end_s if block.end_s is None else block.end_s
    moments = [block.start_s, *sorted({b.end_s for b in before if b.end_s and block.start_s < b.end_s < end_s})]
    below = [sum(each.bytes for each in before if each.end_s is None or each.end_s > moment_s) for moment_s in moments]
    xs = [scale.x(at_s) for at_s in moments]
    lower = [(x, scale.y(size)) for x, size in zip(xs, below, strict=True)]
    upper = [(x, scale.y(size + block.bytes)) for x, size in zip(xs, below, strict=True)]
    return Band(
        letter,
        block,
        stage_colour(block.stage) if block.stage else CATEGORY_COLOURS[category(block.operator)],
        _ribbon(upper, lower, scale.x(end_s)),
        block.start_s / scale.end_s,
        end_s / scale.end_s,
        below[0] / scale.most_bytes,
        block.bytes / scale.most_bytes,
    )


def _thinned(vertices: Sequence[Vertex]) -> list[Vertex]:
    """Return the highest and the last vertex of each of the chart's columns."""
    columns: dict[int, list[Vertex]] = {}
    for vertex in vertices:
        columns.setdefault(int(vertex[0] / COLUMN), []).append(vertex)
    return [
        vertex
        for column in columns.values()
        for vertex in dict.fromkeys((min(column, key=lambda vertex: vertex[1]), column[-1]))
    ]


def _ribbon(upper: Sequence[Vertex], lower: Sequence[Vertex], right: float) -> str:
    """Return the outline between two step lines: along the upper one to the right, and back along the lower one."""
    ends = [*(x for x, _ in lower[1:]), right]
    back = "".join(f"H{_number(end)}V{_number(y)}" for end, (_, y) in zip(reversed(ends), reversed(lower), strict=True))
    x, y = upper[0]
    return f"M{_number(x)} {_number(y)}{_stairs(upper[1:])}{back}H{_number(x)}Z"


def _stairs(vertices: Sequence[Vertex]) -> str:
    return "".join(f"H{_number(x)}V{_number(y)}" for x, y in vertices)


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
