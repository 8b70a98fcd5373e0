"""A metric that is declared is on the page of a run."""

import pytest

from bench.show import columns
from bench.show.blocks import Cell
from bench.show.charts import interactive
from bench.show.pages import run_data
from bench.show.rows import plain
from bench.store.metrics import METRICS, Axis, Heading, Metric, Unit
from tests.show.example_results import quick

HEAT = Metric("heat_j", unit=Unit.JOULES, meaning="the heat of a call", heading=Heading("heat", place=55, rank=3),
    axis=Axis("heat", "Heat", "heat of a call", ("tokens",)))  # fmt: skip


def test_a_metric_is_a_column_and_a_chart_without_other_edits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its heading is that of the column, its unit writes the cells and the ticks, its axis gives the chart."""
    monkeypatch.setattr(columns, "METRICS", {**METRICS, HEAT.name: HEAT})
    monkeypatch.setattr(interactive, "METRICS", {**METRICS, HEAT.name: HEAT})
    rows = [{**row, "heat_j": 0.012} for row in plain(quick())]
    columns.complete(rows, "eager")
    (column,) = [each for each in columns.of_page(rows, "eager") if each.key == "heat_j"]
    assert column.heading == "heat"
    assert column.cell(rows[0]) == Cell("12.0 mJ", 0.012)
    (found,) = [each for each in run_data.quantities_of(rows, "eager") if each.name == "heat"]
    assert "20 mJ" in [found.tick_label(tick) for tick in found.ticks([0.01, 0.1])]
    specs = interactive.charts(found, ["eager"], 12, interactive.tooltips([found]))
    assert set(specs) == {"tokens", "heads", "channels", "points"}
    assert "heat of a call" in str(specs["points"])


def test_a_column_that_no_row_has_is_left_out() -> None:
    """A CPU has no counter of a GPU's board."""
    rows = plain(quick())
    columns.complete(rows, "eager")
    headings = [column.heading or column.key for column in columns.of_page(rows, "eager")]
    assert "energy" not in headings
    assert headings[:4] == ["point", "implementation", "status", "latency"]
