"""The spans of one call as boxes."""

import dataclasses

import pytest

from bench.show.charts.timeline import Lane, dominant_child, rows, timeline
from bench.show.operators import CATEGORY_COLOURS
from bench.show.palette import stage_colour
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


def test_stages_stand_on_top_and_lanes_below() -> None:
    """The stage has the first row; what lies in it moves up by the row that it left."""
    drawn = timeline(SPANS, 99)
    assert {box.name: box.row for box in drawn.boxes} == {
        "scores": 0,
        "aten::matmul": 1,
        "aten::bmm": 2,
        "aten::add": 1,
        "sgemm_tn": 3,
    }
    assert drawn.lanes == (Lane("stages", 0, 1), Lane("host", 1, 2), Lane("stream 7", 3, 1))
    assert drawn.rows == 4


def test_boxes_are_shares_of_the_call() -> None:
    """The call ends with its last span, and everything is measured against it."""
    drawn = timeline(SPANS, 99)
    assert drawn.whole_s == 10.0
    assert {box.name: (box.left, box.width) for box in drawn.boxes}["aten::add"] == (0.7, 0.3)


def test_a_box_has_the_colour_of_its_stage_or_else_of_what_it_does() -> None:
    """Within a stage all have its colour; a kernel on a stream without stages has that of its category."""
    boxes = {box.name: box for box in timeline(SPANS, 99).boxes}
    assert {boxes[name].colour for name in ("scores", "aten::matmul", "aten::bmm")} == {stage_colour("scores")}
    assert boxes["sgemm_tn"].colour == CATEGORY_COLOURS["matrix product"]
    assert (boxes["aten::bmm"].stage, boxes["sgemm_tn"].stage) == ("scores", "")


def test_who_calls_has_the_colour_of_what_it_calls() -> None:
    """Outside of stages an operator does what the one does that fills it: a product with weights is not batched."""
    product = dataclasses.replace(BMM, name="aten::mm")
    assert {box.category for box in timeline([MATMUL, product], 99).boxes} == {"matrix product"}


def test_rows_are_in_seconds_and_the_first_of_a_lane_has_its_name() -> None:
    """They say name, time and share, and the stage that they lie in."""
    drawn = {row["name"]: row for row in rows(timeline(SPANS, 99))}
    assert (drawn["aten::bmm"]["start"], drawn["aten::bmm"]["end"]) == (1.0, 5.0)
    assert drawn["aten::bmm"]["text"] == "aten::bmm · 4.00 s · 40% · scores"
    assert {row["row"] for row in drawn.values()} == {"000|stages", "001|host", "002|", "003|stream 7"}


def test_a_legend_names_what_stands_outside_stages() -> None:
    """What a stage explains needs no other word."""
    assert list(timeline(SPANS, 99).legend) == ["matrix product", "element by element"]


def test_what_no_screen_shows_is_counted() -> None:
    """Spans narrower than a dot are left out, and so are the shortest of too many; stages never are."""
    dots = [Span("aten::view", OPERATOR, "host", 0, 6.5, 1e-4)] * 5
    chart = timeline([*SPANS, *dots], 2)
    assert [box.name for box in chart.boxes] == ["scores", "aten::matmul", "sgemm_tn"]
    assert chart.left_out == 7
    empty = timeline([], 99)
    assert (empty.boxes, empty.rows, empty.left_out) == ((), 0, 0)


def test_stages_of_two_threads_have_two_rows() -> None:
    """The backward runs on a thread of its own; its stages don't lie over those of the forward."""
    backward = Span("softmax", STAGE, "thread 2", 0, 3.0, 6.0)
    assert [lane.name for lane in timeline([SCORES, backward], 99).lanes] == ["stages, host", "stages, thread 2"]


@pytest.mark.parametrize("span", [LINEAR, CALLER, MM])
def test_who_calls_does_what_the_called_does(span: Span) -> None:
    """The product fills the operators that called it; what is short, on another thread or later doesn't.

    Half of a span is needed.
    """
    assert dominant_child(span, [LINEAR, CALLER, MM, VIEW, ELSEWHERE, LATER]) == MM
    third, half = (Span("aten::mm", OPERATOR, "host", 1, 0.0, duration_s) for duration_s in (3.3, 5.0))
    assert dominant_child(LINEAR, [third]) == LINEAR
    assert dominant_child(LINEAR, [half]) == half
