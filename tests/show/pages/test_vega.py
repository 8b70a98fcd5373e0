"""Charts of pages, by their specification."""

from collections.abc import Iterator

import altair
import pytest

from bench.analyse.axes import AXES, TOKENS
from bench.show.charts import changes, growth, interactive, winners
from bench.show.charts.catalogue import KINDS
from bench.show.charts.quantity import on_page, quantities
from bench.show.comparison.report import Report
from bench.show.pages import shell
from bench.show.pages.vega import SHAPES, spec, swatch
from bench.show.picture import Panel
from impls.catalogue import IMPLEMENTATIONS
from tests.make.comparisons import every_verdict
from tests.make.results import quick
from tests.show.charts.test_catalogue import EXPECTED

NAMES = ["eager", "sdpa"]


def panels() -> Iterator[Panel]:
    """Yield every panel that a page or a file draws."""
    for quantity in quantities("eager"):
        yield from on_page(quantity, AXES, 12, 2).values()
    yield from (growth.exponents_on_page(what, TOKENS) for what in growth.GROWTHS)
    yield from (interactive.compilation(), interactive.samples(), winners.panel(next(winners.maps(quick()))))
    report = Report(every_verdict())
    rows = [changes.drawn_row(report, row) for row in report.rows if changes.is_drawn(row)]
    yield changes.changes(rows, report.limits, on_page=True)
    for kind in KINDS:
        _, make, _ = EXPECTED[kind.name]
        (picture, *_) = kind.pictures(make())
        yield from (panel for stack in picture.stacks for panel in stack)


@pytest.mark.slow
def test_every_panel_is_a_valid_chart() -> None:
    """Each follows Vega-Lite's schema, has a description for those who don't see it, and its data by name."""
    for panel in panels():
        drawn = spec(panel, "A panel", NAMES, {"implementation": "implementation"}, brush=True)
        assert drawn["description"] == "A panel"
        assert drawn["data"] == {"name": "rows"}
        altair.Chart.from_dict(drawn, validate=True)


def test_every_marker_of_the_catalogue_has_a_shape() -> None:
    """And one that isn't there is a circle."""
    assert {entry.style.marker for entry in IMPLEMENTATIONS.values()} <= set(SHAPES)
    assert swatch("somebody:kernel")[1] in SHAPES.values()


def test_the_script_is_of_the_version_that_altair_writes_for() -> None:
    """Of Vega-Lite, without a newer one that the page doesn't have."""
    assert f"Vega-Lite {altair.VEGALITE_VERSION.rpartition('.')[0]}" in shell.scripts()[0][:200]
