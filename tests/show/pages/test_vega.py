"""Charts of pages, by their specification."""

import re
from collections.abc import Iterator

import altair
import pytest

from bench.analyse.axes import TOKENS
from bench.show.charts import changes, growth, interactive, winners
from bench.show.charts.quantity import on_page, quantities
from bench.show.comparison.report import Report
from bench.show.pages import shell
from bench.show.pages.vega import outline, spec
from bench.show.palette import style
from bench.show.picture import Panel
from impls.catalogue import IMPLEMENTATIONS
from tests.make.comparisons import every_verdict
from tests.make.results import quick
from tests.show.charts.test_catalogue import EXPECTED, of_kind

NAMES = ["eager", "sdpa"]


def panels() -> Iterator[Panel]:
    """Yield every panel that a page or a file draws."""
    for quantity in quantities("eager"):
        yield from on_page(quantity, [TOKENS], 12, 2).values()
    yield from (growth.exponents_on_page(what, TOKENS) for what in growth.GROWTHS)
    yield from (interactive.compilation(), interactive.samples(), winners.panel(next(winners.maps(quick()))))
    report = Report(every_verdict())
    rows = [changes.drawn_row(report, row) for row in report.rows if changes.is_drawn(row)]
    yield changes.changes(rows, report.limits, on_page=True)
    for kind in EXPECTED:
        _, (picture, *_) = of_kind(kind)
        yield from (panel for stack in picture.stacks for panel in stack)


@pytest.mark.slow
def test_every_panel_is_a_valid_chart() -> None:
    """Each follows Vega-Lite's schema, has a description for those who don't see it, and its data by name."""
    for panel in panels():
        drawn = spec(panel, "A panel", NAMES, {"implementation": "implementation"}, brush=True)
        assert drawn["description"] == "A panel"
        assert drawn["data"] == {"name": "rows"}
        altair.Chart.from_dict(drawn, validate=True)


def test_every_marker_of_the_catalogue_has_an_outline() -> None:
    """As large as its place, also that of a name that isn't in the catalogue."""
    for marker in {style(name).marker for name in (*IMPLEMENTATIONS, "somebody:kernel")}:
        assert re.fullmatch(r"M[-\d.,MLQCZ]+", outline(marker))
        assert 1 <= max(abs(float(each)) for each in re.findall(r"-?[\d.]+", outline(marker))) < 1.6


def test_the_script_is_of_the_version_that_altair_writes_for() -> None:
    """Of Vega-Lite, without a newer one that the page doesn't have."""
    assert f"Vega-Lite {altair.VEGALITE_VERSION.rpartition('.')[0]}" in shell.scripts()[0][:200]
