"""The picture of points that no line joins."""

import numpy as np
import pandas as pd
import pytest

from bench.analyse.rows import grouped, point_of
from bench.plan.case import Point
from bench.plan.grid import MODELS, expand
from bench.show.figures.rows import MOST, figure, figures, labels
from bench.show.rows import plain
from tests.make.points import of_layer, vit_s
from tests.make.results import timed

POINTS = [vit_s(), vit_s(batch=1, mask="causal"), vit_s(num_heads=12, batch=2)]
SECONDS = {"eager": 0.04, "sdpa": 0.02, "online": 0.08}


def of_models(*names: str) -> list[Point]:
    """Return the points of models."""
    usual = {"device": "cpu", "dtype": "float32", "mode": "inference", "batch": 1, "threads": 1}
    return [next(expand({"mask": "none", **usual, **MODELS[name]})) for name in names]


def test_a_point_is_a_row_with_a_mark_for_each_implementation() -> None:
    """At its speed-up, with its interval; the baseline has none. Where the first one is fastest is on top."""
    table = timed(POINTS, SECONDS)
    ((name, drawn),) = figures(table)
    (axes,) = drawn.axes
    assert name.startswith("rows-vit-cpu-float32-inference-")
    marks = {
        gid: [line for line in axes.lines if line.get_gid() == f"mark {gid}"] for gid in ("sdpa", "online", "eager")
    }
    assert [len(own) for own in marks.values()] == [3, 3, 0]
    places = {gid: np.array([np.asarray(mark.get_xydata())[0] for mark in own]) for gid, own in marks.items() if own}
    assert places["sdpa"][:, 0] == pytest.approx([2.0] * 3, rel=0.01)
    assert places["online"][:, 0] == pytest.approx([0.5] * 3, rel=0.01)
    assert places["sdpa"][:, 1].round().tolist() == [0, 1, 2]
    slower = timed(POINTS[:1], {**SECONDS, "sdpa": 0.03})
    ((_, mixed),) = figures(pd.concat([slower, timed(POINTS[1:], SECONDS)]))
    ends = [np.asarray(line.get_xydata())[0] for line in mixed.axes[0].lines if line.get_gid() == "mark sdpa"]
    assert max(ends, key=lambda end: end[1])[0] == pytest.approx(1.33, rel=0.01)
    assert axes.get_ylim()[0] > axes.get_ylim()[1]
    assert {"sdpa", "online"} <= {text.get_text() for text in axes.texts}


def test_points_of_models_have_their_names() -> None:
    """If all are of models; else all are named by what they differ in."""
    names = ["swin_tiny_1", "sd15_cross", "vit_b_16_224"]
    assert labels(dict.fromkeys(of_models(*names))) == names
    mixed = labels(dict.fromkeys([*of_models(*names), of_layer("attention", batch=3)]))
    assert not {*mixed} & {*names}


@pytest.mark.parametrize(
    "table",
    [
        timed(POINTS[:1], SECONDS),
        timed([vit_s(num_tokens=tokens) for tokens in (50, 197, 577)], SECONDS),
        timed(POINTS, {"eager": 0.04}),
        timed([vit_s(batch=batch) for batch in range(1, MOST + 2)], SECONDS),
    ],
    ids=["one point", "a series", "the baseline alone", "too many"],
)
def test_what_lines_or_tables_show_better_has_no_such_picture(table: pd.DataFrame) -> None:
    """One point is a line of text, a series a line, and more than a screen of rows is no picture."""
    assert [*figures(table)] == []


def test_a_row_without_a_time_has_no_mark() -> None:
    """The others of its point stay where they are."""
    table = timed(POINTS, SECONDS)
    table.loc[(table["implementation"] == "sdpa") & (table["batch"] == 1), ["status", "speedup"]] = ["oom", None]
    drawn = figure(grouped(plain(table), point_of), "eager")
    assert sum(line.get_gid() == "mark sdpa" for line in drawn.axes[0].lines) == 2
