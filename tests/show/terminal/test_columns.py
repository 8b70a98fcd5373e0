"""The columns of the terminal's table."""

from collections import Counter

import pytest

from bench.show.terminal import columns
from bench.store.metrics import COLUMNS, Heading, Metric


def test_a_metric_hides_no_other_column(monkeypatch: pytest.MonkeyPatch) -> None:
    """A metric may have the place of any other column, and both are shown."""
    before = Counter(column.heading for column in columns.columns("eager"))
    for place in range(130):
        heading = Heading("new", place, 20)
        monkeypatch.setattr(columns, "METRICS", {**COLUMNS, "new": Metric("new", meaning="new", heading=heading)})

        assert Counter(column.heading for column in columns.columns("eager")) == before + Counter(["new"])
