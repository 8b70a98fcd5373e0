"""The roofline picture."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from matplotlib.lines import Line2D

from bench.analyse.summary import summarise
from bench.plan.case import Case
from bench.show.figures.roofline import figure, figures, settings
from bench.store.roofline import CEILING_BYTES, CEILING_FLOPS, work_of
from tests.examples import point
from tests.show.example_results import record, results
from tests.show.figures.legible import drawn

NAMES = ("eager", "sdpa")
POINTS = [point(num_tokens=number) for number in (50, 577)]


def table(*, others: bool = False) -> pd.DataFrame:
    """Return results with ceilings; those of another dtype too if that is asked for."""
    at = [*POINTS, point(dtype="bfloat16")] if others else POINTS
    made = [record(Case(each, name), 0) for each in at for name in NAMES]
    ceilings = {CEILING_FLOPS: 1e11, CEILING_BYTES: 1e9}
    return summarise([dataclasses.replace(each, metrics={**each.metrics, **ceilings}) for each in made], "eager")


def test_a_mark_stands_at_the_rate_of_its_case() -> None:
    """Each case is a mark at its operations per byte and its operations per second."""
    of = table()
    (rates,) = settings(of)
    rate = drawn(figure(rates), "rate", Line2D)["sdpa"]
    xs, ys = list(np.asarray(rate.get_xdata())), list(np.asarray(rate.get_ydata()))
    works = [work for each in POINTS if (work := work_of(each, {}))]
    assert xs == pytest.approx([work.intensity for work in works])
    latencies = of.loc[of["implementation"] == "sdpa", "latency_s"]
    assert ys == pytest.approx([(work.flops or 0) / time for work, time in zip(works, latencies, strict=True)])


def test_the_roof_is_the_lower_of_both_ceilings() -> None:
    """It rises with the bytes per second up to the ridge, and is flat beyond."""
    (rates,) = settings(table())
    (roof,) = [line for line in figure(rates).axes[0].lines if line.get_gid() == "roof"]
    xs, ys = list(np.asarray(roof.get_xdata())), list(np.asarray(roof.get_ydata()))
    assert ys == pytest.approx([min(1e11, 1e9 * x) for x in xs])
    assert xs[1] == 100


def test_a_setting_is_a_picture() -> None:
    """Points that differ in their shape stand in one picture, those of another dtype in their own."""
    assert sorted(name for name, _ in figures(table(others=True))) == [
        "roofline-vit-cpu-bfloat16-inference-t1",
        "roofline-vit-cpu-float32-inference-t1",
    ]


def test_without_ceilings_nothing_is_drawn() -> None:
    """Results from before there were ceilings, or of cases that failed, have no roof."""
    old = results([Case(each, name) for each in POINTS for name in NAMES])
    assert old["flops_per_s"].notna().all()
    assert old["roofline_share"].isna().all()
    assert list(figures(old)) == []
