"""The roofline picture."""

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from bench.analyse.summary import summarise
from bench.plan.case import Case
from bench.show.figures import catalogue
from bench.show.figures.roofline import figure, settings
from bench.store.roofline import CEILING_BYTES, CEILING_FLOPS, work_of
from tests.examples import point
from tests.show.example_results import record, results

NAMES = ("eager", "sdpa")
POINTS = [point(num_tokens=number) for number in (50, 577)]


def table(*, others: bool = False) -> pd.DataFrame:
    """Return results with ceilings; those of another dtype too if that is asked for."""
    at = [*POINTS, point(dtype="bfloat16")] if others else POINTS
    made = [record(Case(each, name), 0) for each in at for name in NAMES]
    ceilings = {CEILING_FLOPS: 1e11, CEILING_BYTES: 1e9}
    return summarise([dataclasses.replace(each, metrics={**each.metrics, **ceilings}) for each in made], "eager")


def draw(table: pd.DataFrame, folder: Path) -> list[Path]:
    """Write the pictures of this kind, and return the files."""
    return catalogue.draw(folder, ["roofline"], results=table)


def line(made: Figure, gid: str) -> tuple[list[float], list[float]]:
    """Return the places and values of what is drawn under a name."""
    (found,) = [each for axes in made.axes for each in axes.lines if each.get_gid() == gid]
    return list(np.asarray(found.get_xdata())), list(np.asarray(found.get_ydata()))


def test_a_mark_stands_at_the_rate_of_its_case() -> None:
    """Each case is a mark at its operations per byte and its operations per second."""
    of = table()
    (rates,) = settings(of)
    xs, ys = line(figure(rates), "rate sdpa")
    works = [work for each in POINTS if (work := work_of(each, {}))]
    assert xs == pytest.approx([work.intensity for work in works])
    latencies = of.loc[of["implementation"] == "sdpa", "latency_s"]
    assert ys == pytest.approx([(work.flops or 0) / time for work, time in zip(works, latencies, strict=True)])


def test_the_roof_is_the_lower_of_both_ceilings() -> None:
    """It rises with the bytes per second up to the ridge, and is flat beyond."""
    (rates,) = settings(table())
    xs, ys = line(figure(rates), "roof")
    assert ys == pytest.approx([min(1e11, 1e9 * x) for x in xs])
    assert xs[1] == 100


def test_a_setting_is_a_picture(tmp_path: Path) -> None:
    """Points that differ in their shape stand in one picture, those of another dtype in their own."""
    files = draw(table(others=True), tmp_path)
    assert sorted({path.stem for path in files}) == [
        "roofline-vit-cpu-bfloat16-inference-t1",
        "roofline-vit-cpu-float32-inference-t1",
    ]
    assert all(path.exists() for path in files)


def test_without_ceilings_nothing_is_drawn(tmp_path: Path) -> None:
    """Results from before there were ceilings, or of cases that failed, have no roof."""
    old = results([Case(each, name) for each in POINTS for name in NAMES])
    assert old["flops_per_s"].notna().all()
    assert old["roofline_share"].isna().all()
    assert draw(old, tmp_path / "plots") == []
    assert not (tmp_path / "plots").exists()
