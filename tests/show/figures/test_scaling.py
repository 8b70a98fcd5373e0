"""The picture of how a series grows."""

import functools
import itertools
import math
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bench.analyse.analysed_run import load
from bench.analyse.growth import Exponent, Scaling
from bench.plan.case import Case, Point
from bench.show.figures.page import new_figure, set_places
from bench.show.figures.scaling import MARKER_SIZE, exponents, figure, name
from bench.show.terminal import scaling
from bench.stats.estimates import Interval
from tests.make.points import vit_s
from tests.make.results import quick, results, timed
from tests.show.figures.legible import assert_legible, drawn

PUBLISHED = Path(__file__).parents[3] / "results" / "published"
TOKENS = [vit_s(num_tokens=number) for number in (50, 197, 577, 1024)]
SECONDS = {"eager": (1e-3, 1e-4, 4e-7), "sdpa": (9e-3, 1e-4, 2e-7), "online": (60e-3, 1e-4, 1e-7)}
"""The coefficients of three that lead one after the other: at 200 and at 714 tokens their curves meet."""

PLACES = (100, 400, 1600)
NO_INTERVAL = (math.nan, math.nan)


@functools.cache
def changing(processes: int = 3) -> Scaling:
    """Return a series of tokens along which the winner changes twice."""
    return scaling.series(table(processes))[0]


def table(processes: int = 3) -> pd.DataFrame:
    """Return the results of that series."""
    return timed(TOKENS, {name: partial(_parabola, of) for name, of in SECONDS.items()}, processes)


def _parabola(of: tuple[float, float, float], at: Point) -> float:
    return of[0] + of[1] * at.num_tokens + of[2] * at.num_tokens**2


@functools.cache
def sheets() -> list[Figure]:
    """Return the pictures of `quick`, and those of a series whose curves cross."""
    return [figure(each) for each in (*scaling.series(quick()), changing(), changing(1))]


def test_latencies_curves_and_exponents_are_drawn() -> None:
    """Every implementation has its marks, its curve, and marks of both exponents."""
    sheet = figure(changing())
    for kind in ("latency", "curve", "exponent of latency", "exponent of peak memory"):
        assert ids(sheet, kind) == set(SECONDS)


def times(sheet: Figure) -> Axes:
    """Return the panel of latencies."""
    return next(axes for axes in sheet.axes if axes.get_ylabel() == "time per call")


def ids(sheet: Figure, kind: str) -> set[str]:
    """Return what is drawn of a kind, by the name of what it shows."""
    return set(drawn(sheet, kind, Line2D))


def marks(sheet: Figure) -> dict[str, tuple[list[float], list[float]]]:
    """Return where the marks of latencies stand, by implementation: their places and their values."""
    return {
        name: (list(np.asarray(line.get_xdata())), list(np.asarray(line.get_ydata())))
        for name, line in drawn(sheet, "latency", Line2D).items()
    }


@pytest.mark.parametrize("run", ["equal-shares-xeon-2core", "tokens-xeon-2core"])
def test_the_height_of_a_mark_is_its_value(run: str) -> None:
    """Read back from the picture, every mark of every series stands at the latency of its row in results.csv."""
    for series in scaling.series(load(PUBLISHED / run)):
        drawn_marks = marks(figure(series))
        rows = {(row["implementation"], row[series.axis.column]): row["latency_s"] for row in series.rows}
        for implementation, (xs, ys) in drawn_marks.items():
            places = sorted(place for which, place in rows if which == implementation)
            assert ys == [rows[implementation, place] for place in places]
            nearest = [min(series.choices, key=lambda place: abs(math.log(place / x))) for x in xs]
            assert nearest == places
        assert sum(len(ys) for _, ys in drawn_marks.values()) == len(rows)


def test_bars_end_where_intervals_do_and_no_mark_hides_another() -> None:
    """The bars are the intervals of the rows; marks of one place are most of their size from each other at least."""
    series = scaling.series(load(PUBLISHED / "equal-shares-xeon-2core"))[0]
    bars = [bar for bars in times(figure(series)).collections for bar in bars.get_segments()]  # type: ignore[attr-defined]
    assert sorted((low, high) for (_, low), (_, high) in bars) == pytest.approx(
        np.array(sorted((row["latency_low_s"], row["latency_high_s"]) for row in series.rows))
    )
    sheet = figure(series)
    panel = times(sheet)
    places = [panel.transData.transform(at) for xs, ys in marks(sheet).values() for at in zip(xs, ys, strict=True)]
    least = 0.8 * MARKER_SIZE / 72 * sheet.dpi
    assert all(math.dist(one, other) >= least for one, other in itertools.combinations(places, 2))


def test_marks_that_overlap_none_stand_at_their_place() -> None:
    """Three at a place with long distances are not moved, and nothing is shaded."""
    far = timed(TOKENS, {"eager": lambda at: 1e-4 * at.num_tokens, "sdpa": lambda at: 1e-5 * at.num_tokens})
    sheet = figure(scaling.series(far)[0])
    assert all(xs == [at.num_tokens for at in TOKENS] for xs, _ in marks(sheet).values())
    assert not times(sheet).patches


def test_all_words_are_on_the_page_and_none_overlap() -> None:
    """With curves that cross and without, with one process and three, along tokens, heads and channels."""
    for sheet in sheets():
        assert_legible(sheet)


def test_names_are_stable_and_say_what_is_fixed() -> None:
    """A picture's name doesn't depend on what else was measured."""
    own = name(changing())
    assert own == "scaling-tokens-vit-cpu-float32-inference-b8-c384-h6-t1"
    among = [name(each) for each in scaling.series(quick())]
    assert own in among
    assert len(among) == len(set(among)) == 4


@pytest.mark.parametrize(("places", "processes"), [(2, 1), (3, 3)])
def test_little_can_be_drawn_too(places: int, processes: int) -> None:
    """Two places have no curve but lines, one process marks without bars, and what was measured once is a mark."""
    cases = [Case(at, name) for at in TOKENS[:places] for name in ("eager", "sdpa")]
    (series,) = scaling.series(results([*cases, Case(TOKENS[1], "flex")], processes=processes))
    sheet = figure(series)
    assert ids(sheet, "curve") >= {"eager", "sdpa"}
    assert ids(sheet, "latency") == {"eager", "sdpa", "flex"}


def test_results_without_memory_have_no_panel_for_it() -> None:
    """Where no peak was counted, there is no empty panel."""
    table = results([Case(at, "eager") for at in TOKENS])
    table["memory_bytes"] = table["memory_bytes"].where(table["memory_bytes"] < 0)
    (series,) = scaling.series(table)
    assert ids(figure(series), "exponent of latency") == {"eager"}
    assert ids(figure(series), "exponent of peak memory") == set()


def axes() -> Axes:
    """Return axes with the scale that panels share."""
    figure = new_figure("Growth", [], [], [1.0])
    set_places(figure, PLACES, "tokens")
    return figure.axes[0]


def test_exponents_stand_side_by_side_with_their_intervals() -> None:
    """Two are at a third and two thirds of the way in logarithms; an axis ends beyond values; memory has no bars."""
    sheet = axes()
    exponents(sheet, "exponent", {"eager": [Exponent(100, 400, Interval(1.0, -40, 42))]})
    low, high = sheet.get_ylim()
    assert -1 < low < 0
    assert 2 < high < 3
    assert len(sheet.collections) == 1
    exact = axes()
    exponents(exact, "exponent", {"eager": [Exponent(100, 400, Interval(2.0, *NO_INTERVAL))]})
    assert len(exact.collections) == 0
    beside = axes()
    gaps = [Exponent(100, 400, Interval(1.0, 0.8, 1.2)), Exponent(400, 1600, Interval(2.0, 1.8, 2.2))]
    exponents(beside, "exponent", {"eager": gaps, "sdpa": gaps})
    places = {str(line.get_gid()): np.asarray(line.get_xdata()) for line in beside.lines}
    assert places["exponent eager"] == pytest.approx([100 * 4 ** (1 / 3), 400 * 4 ** (1 / 3)])
    assert places["exponent sdpa"] == pytest.approx([100 * 4 ** (2 / 3), 400 * 4 ** (2 / 3)])
