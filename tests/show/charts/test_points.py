"""The picture of points that no line joins."""

import pandas as pd
import pytest

from bench.analyse.rows import grouped, point_of
from bench.plan.case import Point
from bench.plan.grid import DEFAULTS, MODELS, expand
from bench.show.charts.points import MOST, labels, picture, pictures
from bench.show.rows import plain
from tests.make.points import of_layer, vit_s
from tests.make.results import timed
from tests.show.charts.drawn import made, series

POINTS = [vit_s(), vit_s(batch=1, mask="causal"), vit_s(num_heads=12, batch=2)]
SECONDS = {"eager": 0.04, "sdpa": 0.02, "online": 0.08}


def of_models(*names: str) -> list[Point]:
    """Return the points of models."""
    return [next(expand({**DEFAULTS, "batch": 1, "threads": 1, **MODELS[name]})) for name in names]


def test_a_point_is_a_row_with_a_mark_for_each_implementation() -> None:
    """At its speed-up; the baseline has none. Where the first one is fastest is on top."""
    (drawn,) = made(pictures(timed(POINTS, SECONDS)))
    assert drawn.name.startswith("rows-vit-cpu-float32-inference-")
    marks = series(drawn.figure.axes[0])
    for name, speedup in (("sdpa", 2.0), ("online", 0.5)):
        assert [x for x, _ in marks[name]] == pytest.approx([speedup] * 3, rel=0.01)
    slower = timed(POINTS[:1], {**SECONDS, "sdpa": 0.03})
    (mixed,) = made(pictures(pd.concat([slower, timed(POINTS[1:], SECONDS)])))
    x, _ = max(series(mixed.figure.axes[0])["sdpa"], key=lambda at: at[1])
    assert x == pytest.approx(1.33, rel=0.01)


def test_points_of_models_have_their_names() -> None:
    """If all are of models; else all are named by what they differ in."""
    names = ["swin_tiny_1", "sd15_cross", "vit_b_16_224"]
    assert [*labels(dict.fromkeys(of_models(*names))).values()] == names
    mixed = labels(dict.fromkeys([*of_models(*names), of_layer("attention", batch=3)]))
    assert not {*mixed.values()} & {*names}


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
    assert [*pictures(table)] == []


def test_a_row_without_a_time_has_no_mark() -> None:
    """The others of its point stay where they are."""
    table = timed(POINTS, SECONDS)
    table.loc[(table["implementation"] == "sdpa") & (table["batch"] == 1), ["status", "speedup"]] = ["oom", None]
    (of,) = made(iter([picture(grouped(plain(table), point_of), "eager")]))
    marks = series(of.figure.axes[0])
    assert [len(marks[name]) for name in ("sdpa", "online")] == [2, 3]
