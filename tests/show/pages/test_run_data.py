"""A metric that is declared is on the page of a run."""

from pathlib import Path

import pytest

from bench.analyse.analysed_run import AnalysedRun
from bench.show import columns
from bench.show.answer import points_of
from bench.show.blocks import Cell
from bench.show.charts import quantity
from bench.show.charts.quantity import on_page
from bench.show.pages.run_data import Shown, View
from bench.store.metrics import METRICS, Heading, Metric, Unit, VerticalAxis
from tests.make import runs

HEAT = Metric("heat_j", unit=Unit.JOULES, meaning="the heat of a call", heading=Heading("heat", place=55, rank=3),
    axis=VerticalAxis("heat", "Heat", "heat of a call", ("tokens",)))  # fmt: skip


def test_a_metric_is_a_column_and_a_chart_without_other_edits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The metric's heading is that of the column, its unit writes the cells and the ticks, its axis gives the chart.

    A column that no row has is left out: a CPU has no counter of a GPU's board.
    """
    for module in (columns, quantity):
        monkeypatch.setattr(module, "METRICS", {**METRICS, HEAT.name: HEAT})
    run = AnalysedRun(runs.quick(tmp_path / "run"))
    points = points_of(run.whole.assign(heat_j=0.012))
    view = View({"here": run}, {"here": points}, [Shown(0, at, at.label) for at in points], frozenset(), ())
    shown = columns.of_page(view.rows, "eager")
    headings = [column.heading or column.key for column in shown]
    assert headings[:4] == ["point", "implementation", "status", "latency"]
    assert "energy" not in headings
    assert shown[headings.index("heat")].cell(view.rows[0]) == Cell("12.0 mJ", 0.012)
    (heat,) = [each for each in view.quantities if each.name == "heat"]
    assert "20 mJ" in heat.scale([{"heat_j": 0.01}, {"heat_j": 0.1}]).labels
    panels = on_page(heat, view.axes, 12, 7)
    assert set(panels) == {"tokens", "heads", "channels", "points"}
    assert panels["points"].x.title == "heat of a call"
