"""The spans of one call as boxes."""

import dataclasses
from typing import Any

import pytest

from bench.show.charts import call
from bench.show.palette import CATEGORY_COLOURS, page_variable, stage_colour
from bench.store.profile import KERNEL, OPERATOR, STAGE, Block, Span
from tests.make.profiles import profile

SCORES = Span("scores", STAGE, "host", 0, 0.0, 6.0)
MATMUL = Span("aten::matmul", OPERATOR, "host", 1, 0.5, 5.0)
BMM = Span("aten::bmm", OPERATOR, "host", 2, 1.0, 4.0)
ADD = Span("aten::add", OPERATOR, "host", 0, 7.0, 3.0)
GEMM = Span("sgemm_tn", KERNEL, "stream 7", 0, 2.0, 6.0)
SPANS = [SCORES, MATMUL, BMM, ADD, GEMM]

LINEAR = Span("aten::linear", OPERATOR, "host", 0, 0.0, 10.0)
CALLER = Span("aten::matmul", OPERATOR, "host", 1, 0.1, 9.8)
MM = Span("aten::mm", OPERATOR, "host", 2, 0.2, 9.6)
VIEW = Span("aten::view", OPERATOR, "host", 2, 9.85, 0.01)
ELSEWHERE = Span("aten::bmm", OPERATOR, "thread 2", 3, 1.0, 8.0)
LATER = Span("aten::add", OPERATOR, "host", 1, 11.0, 9.0)


FIRST = Block(60, "aten::mm", "qkv projection", 0.0, 5.0)
SECOND = Block(40, "aten::bmm", "scores", 2.0, None)
LATE = Block(10, "aten::add", "", 6.0, None)


def rows(drawn: call.Timeline) -> dict[str, dict[str, Any]]:
    """Return the rows of a timeline by their names."""
    return {row["name"]: row for row in drawn.rows}


def test_stages_stand_on_top_and_lanes_below() -> None:
    """A stage has the first row, one of another thread the second; what lies in it moves up. Lanes have a name once."""
    drawn = call.timeline(SPANS, 99)
    assert {name: row["row"] for name, row in rows(drawn).items()} == {
        "scores": "000|stages",
        "aten::matmul": "001|host",
        "aten::bmm": "002|",
        "aten::add": "001|host",
        "sgemm_tn": "003|stream 7",
    }
    assert drawn.lanes == ("stages", "host", "stream 7")
    backward = Span("softmax", STAGE, "thread 2", 0, 3.0, 6.0)
    assert call.timeline([SCORES, backward], 99).lanes == ("stages, host", "stages, thread 2")


def test_a_box_is_as_long_as_its_span_and_says_what_it_is() -> None:
    """In words its time, its share and its stage, whose colour it has; a legend names what stands outside stages."""
    boxes = rows(call.timeline(SPANS, 99))
    box = boxes["aten::bmm"]
    assert (box["start"], box["end"]) == (1.0, 5.0)
    assert box["text"] == "aten::bmm · 4.00 s · 40% · scores"
    of_stage = page_variable(stage_colour("scores"))
    assert {boxes[name]["fill"] for name in ("scores", "aten::matmul", "aten::bmm")} == {of_stage}
    assert boxes["sgemm_tn"]["fill"] == page_variable(CATEGORY_COLOURS["matrix product"])
    assert list(call.timeline(SPANS, 99).legend) == ["matrix product", "element by element"]
    product = dataclasses.replace(BMM, name="aten::mm")
    assert list(call.timeline([MATMUL, product], 99).legend) == ["matrix product"]


def test_what_no_screen_shows_is_counted() -> None:
    """Spans narrower than a dot are left out, and so are the shortest of too many; stages never are."""
    dots = [Span("aten::view", OPERATOR, "host", 0, 6.5, 1e-4)] * 5
    chart = call.timeline([*SPANS, *dots], 2)
    assert [row["name"] for row in chart.rows] == ["scores", "aten::matmul", "sgemm_tn"]
    assert chart.left_out == 7
    empty = call.timeline([], 99)
    assert (empty.rows, empty.lanes, empty.left_out) == ((), (), 0)


@pytest.mark.parametrize("span", [LINEAR, CALLER, MM])
def test_who_calls_does_what_the_called_does(span: Span) -> None:
    """The product fills the operators that called it; what is short, on another thread or later doesn't.

    Half of a span is needed.
    """
    assert call.dominant_child(span, [LINEAR, CALLER, MM, VIEW, ELSEWHERE, LATER]) == MM
    third, half = (Span("aten::mm", OPERATOR, "host", 1, 0.0, duration_s) for duration_s in (3.3, 5.0))
    assert call.dominant_child(LINEAR, [third]) == LINEAR
    assert call.dominant_child(LINEAR, [half]) == half


def drawn(*blocks: Block) -> call.MemoryChart:
    """Return the chart of these blocks in a call of ten seconds."""
    chart = call.memory_chart(dataclasses.replace(profile(), blocks=blocks), 10.0)
    assert chart is not None
    return chart


def test_the_curve_is_what_was_alive_when() -> None:
    """The curve ends with the call, and the peak has its mark.

    Thousands of blocks make a short curve with the same peak.
    """
    chart = drawn(FIRST, SECOND, LATE)
    assert chart.peak.bytes == 100
    assert chart.curve == ((0.0, 60), (2.0, 100), (5.0, 40), (6.0, 50))
    live = [(row["at"], row["high"]) for row in call.memory_rows(chart) if row["kind"] == "live"]
    assert live == [*chart.curve, (10.0, 50)]
    assert [(row["at"], row["high"]) for row in call.memory_rows(chart) if row["kind"] == "peak"] == [(2.0, 100)]
    many = [Block(1, "aten::mul", "", i * 1e-3, i * 1e-3 + 1.0) for i in range(9000)]
    chart = drawn(*many, Block(5000, "aten::mm", "", 4.0005, 4.0006))
    assert len(chart.curve) <= 2 * call.COLUMNS + 2
    assert max(size for _, size in chart.curve) == chart.peak.bytes


def test_a_band_sinks_when_what_it_lies_on_is_freed() -> None:
    """The second block lies on the first until the first is freed, then on the ground, also if both are equal."""
    chart = drawn(FIRST, SECOND)
    band = [row for row in call.memory_rows(chart) if row["kind"] == "band" and row["letter"] == "B"]
    assert [(row["at"], row["low"], row["high"]) for row in band] == [(2.0, 60, 100), (5.0, 0, 40), (10.0, 0, 40)]
    assert band[0]["words"] == "B 40 B by aten::bmm in scores"
    first, second = drawn(SECOND, SECOND).bands
    assert (first.steps[0][1], second.steps[0][1]) == (0, 40)


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
    assert len(chart.bands) == call.MOST_NAMED
    assert FIRST in [band.block for band in chart.bands]
    assert [band.block for band in drawn(FIRST, Block(1, "aten::view", "", 0.0, None)).bands] == [FIRST]
    assert call.memory_chart(dataclasses.replace(profile(), blocks=()), 10.0) is None
