"""Live memory over one call, as it is drawn."""

import dataclasses
import re

import pytest

from bench.show.operators import CATEGORY_COLOURS
from bench.show.palette import stage_colour
from bench.show.report.memory_chart import HEIGHT, NAMED, WIDTH, MemoryChart, memory_chart
from bench.store.profile import Block
from tests.profiles import profile

FIRST = Block(60, "aten::mm", "qkv projection", 0.0, 5.0)
SECOND = Block(40, "aten::bmm", "scores", 2.0, None)
LATE = Block(10, "aten::add", "", 6.0, None)


def corners(path: str) -> list[tuple[float, float]]:
    """Return the corners of an outline made of level and upright strokes."""
    first, *strokes = re.findall(r"([MHV])([\d. ]+)", path)
    x, y = map(float, first[1].split())
    found = [(x, y)]
    for letter, number in strokes:
        x, y = (float(number), y) if letter == "H" else (x, float(number))
        found.append((x, y))
    return found


def area(path: str) -> float:
    """Return how much an outline encloses, in shares of the chart."""
    points = corners(path)
    pairs = zip(points, [*points[1:], points[0]], strict=True)
    return abs(sum(x * next_y - next_x * y for (x, y), (next_x, next_y) in pairs)) / 2 / WIDTH / HEIGHT


def drawn(*blocks: Block) -> MemoryChart:
    """Return the chart of these blocks in a call of ten seconds."""
    chart = memory_chart(dataclasses.replace(profile(), blocks=blocks), 10.0)
    assert chart is not None
    return chart


def test_an_outline_encloses_what_was_alive_when() -> None:
    """Bytes times seconds are the area under the curve, and those of a block the area of its band."""
    chart = drawn(FIRST, SECOND, LATE)
    assert chart.peak.bytes == 100
    assert area(chart.path) == pytest.approx((60 * 5 + 40 * 8 + 10 * 4) / 1000)
    assert [area(band.path) for band in chart.bands] == pytest.approx([0.3, 0.32, 0.04])


def test_a_band_sinks_when_what_it_lies_on_is_freed() -> None:
    """The second block lies on the first until the first is freed, then on the ground."""
    band = drawn(FIRST, SECOND).bands[1]
    assert (200, 0) in corners(band.path)
    assert (500, HEIGHT) in corners(band.path)
    assert (band.left, band.right, band.bottom, band.height) == (0.2, 1.0, 0.6, 0.4)


def test_bands_have_letters_in_order_of_time_and_the_colour_of_their_stage() -> None:
    """Letters follow time; a block of no stage has the colour of what its operator does."""
    chart = drawn(LATE, SECOND, FIRST)
    assert [(band.letter, band.block) for band in chart.bands] == [("A", FIRST), ("B", SECOND), ("C", LATE)]
    assert chart.bands[1].colour == stage_colour("scores")
    assert chart.bands[2].colour == CATEGORY_COLOURS["element by element"]


def test_only_the_largest_have_bands() -> None:
    """The small ones are seen in the curve alone; less than a fiftieth of the peak is too thin to be seen or named."""
    middling = [Block(10, "aten::add", "", float(start), None) for start in range(9)]
    chart = drawn(*middling, FIRST)
    assert len(chart.bands) == NAMED
    assert FIRST in [band.block for band in chart.bands]
    assert [band.block for band in drawn(FIRST, Block(1, "aten::view", "", 0.0, None)).bands] == [FIRST]
    assert memory_chart(dataclasses.replace(profile(), blocks=()), 10.0) is None


def test_two_equal_blocks_lie_on_each_other() -> None:
    """Blocks that differ in nothing have a band each, one on the other."""
    first, second = drawn(SECOND, SECOND).bands
    assert (first.bottom, second.bottom) == (0.0, 0.5)


def test_thousands_of_blocks_make_a_short_path_with_the_same_peak() -> None:
    """What falls into one column of the screen is drawn once, its highest point kept."""
    many = [Block(1, "aten::mul", "", i * 1e-3, i * 1e-3 + 1.0) for i in range(9000)]
    chart = drawn(*many, Block(5000, "aten::mm", "", 4.0005, 4.0006))
    assert len(chart.path) < 30_000
    assert min(y for _, y in corners(chart.path)) == 0
