"""The picture of how a series grows."""

import dataclasses
import functools
import itertools
import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bench.analyse.analysed_run import load
from bench.analyse.growth import Exponent, Growth, Scaling
from bench.plan.case import Case, Point
from bench.show.charts.growth import MARKER_SIZE, picture, pictures
from bench.show.figures.page import figure
from bench.show.picture import Picture, Shape
from bench.show.terminal import scaling
from bench.stats.estimates import Interval
from tests.make.points import vit_s
from tests.make.results import quick, results, timed
from tests.show.figures.legible import assert_legible

PUBLISHED = Path(__file__).parents[3] / "results" / "published"
TOKENS = [vit_s(num_tokens=number) for number in (50, 197, 577, 1024)]
SECONDS = {"eager": (1e-3, 1e-4, 4e-7), "sdpa": (9e-3, 1e-4, 2e-7), "online": (60e-3, 1e-4, 1e-7)}
"""The coefficients of three that lead one after the other: at 200 and at 714 tokens their curves meet."""


@functools.cache
def changing(processes: int = 3) -> Scaling:
    """Return a series of tokens along which the winner changes twice."""
    return scaling.series(table(processes))[0]


def table(processes: int = 3) -> pd.DataFrame:
    """Return the results of that series."""
    return timed(TOKENS, {name: partial(_parabola, of) for name, of in SECONDS.items()}, processes)


def _parabola(of: tuple[float, float, float], at: Point) -> float:
    return of[0] + of[1] * at.num_tokens + of[2] * at.num_tokens**2


def rows(of: Scaling, shape: Shape, number: int = 0) -> list[dict[str, Any]]:
    """Return the rows of the marks of a shape in a panel of the picture of a series."""
    panel = picture(of).stacks[0][number]
    return [dict(row) for each in panel.marks if each.shape is shape for row in each.drawn(panel.rows)]


def test_latencies_curves_and_exponents_are_drawn() -> None:
    """Every implementation has its marks, its curve, and marks of both exponents."""
    panels = [(Shape.POINT, 0), (Shape.LINE, 0), (Shape.POINT, 1), (Shape.POINT, 2)]
    for shape, number in panels:
        assert {row["implementation"] for row in rows(changing(), shape, number)} == set(SECONDS)


@pytest.mark.parametrize("run", ["equal-shares-xeon-2core", "tokens-xeon-2core"])
def test_the_height_of_a_mark_is_its_value(run: str) -> None:
    """Every mark of every series stands at the latency of its row in results.csv, nearest to its own place."""
    for series in scaling.series(load(PUBLISHED / run)):
        drawn = rows(series, Shape.POINT)
        at = series.axis.column
        assert sorted((row["implementation"], row[at], row["latency_s"]) for row in drawn) == sorted(
            (row["implementation"], row[at], row["latency_s"]) for row in series.rows
        )
        for row in drawn:
            assert min(series.choices, key=lambda place: abs(math.log(place / row["beside"]))) == row[at]


def test_no_mark_hides_another() -> None:
    """Marks of one place are most of their size from each other at least."""
    ((main, *_),) = picture(scaling.series(load(PUBLISHED / "equal-shares-xeon-2core"))[0]).stacks
    axes = figure(Picture(name="", heading="", facts=(), notes=(), stacks=[[main]])).axes[0]
    points = [line for line in axes.lines if str(line.get_gid()).startswith("point ")]
    places = [axes.transData.transform(at) for line in points for at in np.asarray(line.get_xydata())]
    least = 0.8 * MARKER_SIZE / 72 * 100
    assert all(math.dist(one, other) >= least for one, other in itertools.combinations(places, 2))


def test_all_words_are_on_the_page_and_none_overlap() -> None:
    """With curves that cross and without, with one process and three, along tokens, heads and channels."""
    for each in (*scaling.series(quick()), changing(), changing(1)):
        assert_legible(figure(picture(each)))


def test_names_are_stable_and_say_what_is_fixed() -> None:
    """A picture's name doesn't depend on what else was measured."""
    own = picture(changing()).name
    assert own == "scaling-tokens-vit-cpu-float32-inference-b8-c384-h6-t1"
    among = [each.name for each in pictures(quick())]
    assert own in among
    assert len(among) == len(set(among)) == 4


@pytest.mark.parametrize(("places", "processes"), [(2, 1), (3, 3)])
def test_little_can_be_drawn_too(places: int, processes: int) -> None:
    """Two places have no curve but lines, one process marks without bars, and what was measured once is a mark."""
    cases = [Case(at, name) for at in TOKENS[:places] for name in ("eager", "sdpa")]
    (series,) = scaling.series(results([*cases, Case(TOKENS[1], "flex")], processes=processes))
    assert {row["implementation"] for row in rows(series, Shape.LINE)} >= {"eager", "sdpa"}
    assert {row["implementation"] for row in rows(series, Shape.POINT)} == {"eager", "sdpa", "flex"}
    assert bool(rows(series, Shape.RULE)) == (processes > 1)


def test_results_without_memory_have_no_panel_for_it() -> None:
    """Where no peak was counted, there is no empty panel."""
    table = results([Case(at, "eager") for at in TOKENS])
    table["memory_bytes"] = table["memory_bytes"].where(table["memory_bytes"] < 0)
    (series,) = scaling.series(table)
    assert len(picture(series).stacks[0]) == 2


def test_exponents_stand_side_by_side_with_their_intervals() -> None:
    """Of three they are at quarters of the way in logarithms; an axis ends beyond values; memory has no bars."""
    latency, memory = picture(changing()).stacks[0][1:]
    first = sorted(row["at"] for row in latency.rows)[:3]
    assert first == pytest.approx([50 * (197 / 50) ** (number / 4) for number in (1, 2, 3)])
    assert rows(changing(), Shape.RULE, 1)
    assert rows(changing(), Shape.RULE, 2) == []
    for panel in (latency, memory):
        low, high = panel.y.ends or (0, 0)
        assert low < 0 < 2 < high
    rows_of_one = tuple(row for row in changing().rows if row["implementation"] == "eager")
    far = Growth("eager", None, (Exponent(100, 400, Interval(1.0, -40, 42)),), ())
    wild = dataclasses.replace(changing(), rows=rows_of_one, growths=(far,))
    low, high = picture(wild).stacks[0][1].y.ends or (0, 0)
    assert -1 < low < 0
    assert 2 < high < 3
