"""The spans of one call as boxes."""

import dataclasses
from typing import Any

import pytest

from bench.show.charts.timeline import Timeline, dominant_child, timeline
from bench.show.palette import CATEGORY_COLOURS, page_variable, stage_colour
from bench.store.profile import KERNEL, OPERATOR, STAGE, Span

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


def rows(drawn: Timeline) -> dict[str, dict[str, Any]]:
    """Return the rows of a timeline by their names."""
    return {row["name"]: row for row in drawn.rows}


def test_stages_stand_on_top_and_lanes_below() -> None:
    """The stage has the first row; what lies in it moves up by the row that it left. A lane has its name once."""
    drawn = timeline(SPANS, 99)
    assert {name: row["row"] for name, row in rows(drawn).items()} == {
        "scores": "000|stages",
        "aten::matmul": "001|host",
        "aten::bmm": "002|",
        "aten::add": "001|host",
        "sgemm_tn": "003|stream 7",
    }
    assert drawn.lanes == ("stages", "host", "stream 7")


def test_a_box_is_as_long_as_its_span_and_says_what_it_is() -> None:
    """From its start to its end in seconds; in words its time, its share of the call, and the stage that it lies in."""
    box = rows(timeline(SPANS, 99))["aten::bmm"]
    assert (box["start"], box["end"]) == (1.0, 5.0)
    assert box["text"] == "aten::bmm · 4.00 s · 40% · scores"


def test_a_box_has_the_colour_of_its_stage_or_else_of_what_it_does() -> None:
    """Within a stage all have its colour; a kernel on a stream without stages has that of its category."""
    boxes = rows(timeline(SPANS, 99))
    of_stage = page_variable(stage_colour("scores"))
    assert {boxes[name]["fill"] for name in ("scores", "aten::matmul", "aten::bmm")} == {of_stage}
    assert boxes["sgemm_tn"]["fill"] == page_variable(CATEGORY_COLOURS["matrix product"])


def test_a_legend_names_what_stands_outside_stages() -> None:
    """What a stage explains needs no other word; who calls has the colour of what it calls."""
    assert list(timeline(SPANS, 99).legend) == ["matrix product", "element by element"]
    product = dataclasses.replace(BMM, name="aten::mm")
    assert list(timeline([MATMUL, product], 99).legend) == ["matrix product"]


def test_what_no_screen_shows_is_counted() -> None:
    """Spans narrower than a dot are left out, and so are the shortest of too many; stages never are."""
    dots = [Span("aten::view", OPERATOR, "host", 0, 6.5, 1e-4)] * 5
    chart = timeline([*SPANS, *dots], 2)
    assert [row["name"] for row in chart.rows] == ["scores", "aten::matmul", "sgemm_tn"]
    assert chart.left_out == 7
    empty = timeline([], 99)
    assert (empty.rows, empty.lanes, empty.left_out) == ((), (), 0)


def test_stages_of_two_threads_have_two_rows() -> None:
    """The backward runs on a thread of its own; its stages don't lie over those of the forward."""
    backward = Span("softmax", STAGE, "thread 2", 0, 3.0, 6.0)
    assert timeline([SCORES, backward], 99).lanes == ("stages, host", "stages, thread 2")


@pytest.mark.parametrize("span", [LINEAR, CALLER, MM])
def test_who_calls_does_what_the_called_does(span: Span) -> None:
    """The product fills the operators that called it; what is short, on another thread or later doesn't.

    Half of a span is needed.
    """
    assert dominant_child(span, [LINEAR, CALLER, MM, VIEW, ELSEWHERE, LATER]) == MM
    third, half = (Span("aten::mm", OPERATOR, "host", 1, 0.0, duration_s) for duration_s in (3.3, 5.0))
    assert dominant_child(LINEAR, [third]) == LINEAR
    assert dominant_child(LINEAR, [half]) == half
