"""The columns of rows of results."""

from collections import Counter

import pytest

from bench.show import columns, documented
from bench.show.rows import by_point
from bench.show.terminal.console import rendered
from bench.show.terminal.results import results as table_of
from bench.store.metrics import COLUMNS, Heading, Metric, Unit
from tests.examples import point
from tests.show.example_results import timed


def test_a_metric_is_shown_everywhere_by_its_entry_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the terminal, in the table of a page, where it sorts as a number, and in the documents."""
    new = Metric("rounds", meaning="what it means", unit=Unit.COUNT, kind=int, heading=Heading("new", 21, 0))
    monkeypatch.setattr(columns, "METRICS", {**COLUMNS, "rounds": new})
    table = timed([point()], {"eager": 0.02, "sdpa": 0.01})
    assert "  new " in rendered(table_of(table, "eager"))
    assert "| new | what it means |" in documented.shown()
    (rows,) = by_point(table).values()
    columns.complete(rows, "eager")
    (column,) = [each for each in columns.of_page(rows, "eager") if each.heading == "new"]
    cell = columns.of_any(column, rows[0])
    assert (cell.text, cell.number) == (f"{rows[0]['rounds']}", rows[0]["rounds"])


def test_a_metric_hides_no_other_column(monkeypatch: pytest.MonkeyPatch) -> None:
    """A metric may have the place of any other column, and both are shown."""
    before = Counter(column.heading for column in columns.columns("eager"))
    for place in range(0, 130, 5):
        heading = Heading("new", place, 20)
        monkeypatch.setattr(columns, "METRICS", {**COLUMNS, "new": Metric("new", meaning="new", heading=heading)})
        assert Counter(column.heading for column in columns.columns("eager")) == before + Counter(["new"])
