"""Live memory over one call, as it is drawn."""

import dataclasses

from bench.show.charts.memory import COLUMNS, NAMED, MemoryChart, memory_chart, rows
from bench.show.palette import CATEGORY_COLOURS, stage_colour
from bench.store.profile import Block
from tests.profiles import profile

FIRST = Block(60, "aten::mm", "qkv projection", 0.0, 5.0)
SECOND = Block(40, "aten::bmm", "scores", 2.0, None)
LATE = Block(10, "aten::add", "", 6.0, None)


def drawn(*blocks: Block) -> MemoryChart:
    """Return the chart of these blocks in a call of ten seconds."""
    chart = memory_chart(dataclasses.replace(profile(), blocks=blocks), 10.0)
    assert chart is not None
    return chart


def test_the_curve_is_what_was_alive_when() -> None:
    """From each moment on; it ends with the call, and the peak has its mark."""
    chart = drawn(FIRST, SECOND, LATE)
    assert chart.peak.bytes == 100
    assert chart.curve == ((0.0, 60), (2.0, 100), (5.0, 40), (6.0, 50))
    live = [(row["at"], row["high"]) for row in rows(chart) if row["kind"] == "live"]
    assert live == [*chart.curve, (10.0, 50)]
    assert [(row["at"], row["high"]) for row in rows(chart) if row["kind"] == "peak"] == [(2.0, 100)]


def test_a_band_sinks_when_what_it_lies_on_is_freed() -> None:
    """The second block lies on the first until the first is freed, then on the ground."""
    chart = drawn(FIRST, SECOND)
    band = [row for row in rows(chart) if row["kind"] == "band" and row["letter"] == "B"]
    assert [(row["at"], row["low"], row["high"]) for row in band] == [(2.0, 60, 100), (5.0, 0, 40), (10.0, 0, 40)]
    assert band[0]["words"] == "B 40 B by aten::bmm in scores"


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
    assert (first.steps[0][1], second.steps[0][1]) == (0, 40)


def test_thousands_of_blocks_make_a_short_curve_with_the_same_peak() -> None:
    """What falls into one column of the screen is drawn once, its highest point kept."""
    many = [Block(1, "aten::mul", "", i * 1e-3, i * 1e-3 + 1.0) for i in range(9000)]
    chart = drawn(*many, Block(5000, "aten::mm", "", 4.0005, 4.0006))
    assert len(chart.curve) <= 2 * COLUMNS + 2
    assert max(size for _, size in chart.curve) == chart.peak.bytes
