"""The picture of how a series grows."""

import functools
import math
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.axes import Axes

from bench.analyse.analysed_run import load
from bench.analyse.growth import Scaling
from bench.plan.case import Case, Point
from bench.show.charts.growth import picture, pictures
from bench.show.terminal import scaling
from tests.make.points import vit_s
from tests.make.results import quick, results, timed
from tests.show.charts.drawn import made, series

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


def axes_of(of: Scaling) -> list[Axes]:
    """Return the axes of the picture of a series."""
    (picture_of,) = made(iter([picture(of)]))
    return picture_of.figure.axes


@pytest.mark.parametrize("run", ["equal-shares-xeon-2core", "tokens-xeon-2core"])
def test_the_height_of_a_mark_is_its_value(run: str) -> None:
    """Every mark of every series stands at the latency of its row in results.csv, nearest to its own place."""
    for each in scaling.series(load(PUBLISHED / run)):
        for name, at in series(axes_of(each)[0]).items():
            rows = sorted(
                (row for row in each.rows if row["implementation"] == name), key=lambda row: row[each.axis.column]
            )
            assert [y for _, y in at] == [row["latency_s"] for row in rows]
            for (x, _), row in zip(at, rows, strict=True):
                assert min(each.choices, key=lambda place: abs(math.log(place / x))) == row[each.axis.column]


def test_names_are_stable_and_say_what_is_fixed() -> None:
    """A picture's name doesn't depend on what else was measured."""
    own = picture(changing()).name
    assert own == "scaling-tokens-vit-cpu-float32-inference-b8-c384-h6-t1"
    among = [each.name for each in pictures(quick())]
    assert own in among
    assert len(among) == len(set(among)) == 4


@pytest.mark.parametrize(("places", "processes"), [(2, 1), (3, 3)])
def test_little_can_be_drawn_too(places: int, processes: int) -> None:
    """Two places have no curve but lines, and what was measured once is a mark; without a peak no axes are empty."""
    cases = [Case(at, name) for at in TOKENS[:places] for name in ("eager", "sdpa")]
    table = results([*cases, Case(TOKENS[1], "flex")], processes=processes)
    (of,) = scaling.series(table)
    assert {*series(axes_of(of)[0])} == {"eager", "sdpa", "flex"}
    table["memory_bytes"] = table["memory_bytes"].where(table["memory_bytes"] < 0)
    assert len(axes_of(scaling.series(table)[0])) == 2
