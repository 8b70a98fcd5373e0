"""Published figures beside ours."""

from typing import Any

import pytest

from bench.plan.case import Case
from bench.plan.errors import WrongRequest
from bench.plan.published import read
from bench.show.terminal.console import rendered
from bench.show.terminal.references import references
from tests.examples import point
from tests.show.example_results import results

ENTRY: dict[str, Any] = {
    "source": "A paper, table 3",
    "machine": "a fast CPU",
    "called": "standard",
    "implementation": "sdpa",
    "part": "core",
    "latency_s": 2e-3,
    "at": {"num_tokens": 197},
}


def shown(**changes: Any) -> list[str]:
    """Return the lines of a table of one case beside one figure, changed so; None takes a value out."""
    entry = {name: value for name, value in {**ENTRY, **changes}.items() if value is not None}
    return rendered(references(results([Case(point(), "sdpa")]), read([entry]))).splitlines()


def test_a_figure_stands_beside_our_time() -> None:
    """A line names the point, our time, theirs, the ratio of the two, what was measured, on what, and the source."""
    ours_s = float(results([Case(point(), "sdpa")])["latency_s"].iloc[0])
    for words in ("N=197", "sdpa", "2.00 ms", "standard", "core alone", "a fast CPU", "table 3"):
        assert words in shown()[1]
    assert "2.00x" in shown(latency_s=2 * ours_s)[1]
    assert "505 items/s = 15.8 ms" in shown(latency_s=None, items_per_s=505)[1]


def test_a_case_without_a_time_says_its_status() -> None:
    """What we couldn't measure has its status where the time would stand, and no ratio."""
    case = Case(point(), "sdpa")
    table = results([case], {case: ("unsupported", "no such kernel")})
    line = rendered(references(table, read([ENTRY]))).splitlines()[1]

    assert "unsupported" in line
    assert "x " not in line.partition("unsupported")[2].partition("standard")[0]


def test_a_run_without_a_published_case_is_refused() -> None:
    """Where no figure is for any case, the sources that there are are named."""
    with pytest.raises(WrongRequest, match=r"no published figure is for a case of this run.*A paper, table 3"):
        references(results([Case(point(num_tokens=50), "sdpa")]), read([ENTRY]))
