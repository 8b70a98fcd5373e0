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
    """Return the lines of a table of one case beside one figure, changed so."""
    published = read([{**ENTRY, **changes}])
    return rendered(references(results([Case(point(), "sdpa")]), published)).splitlines()


def test_a_figure_stands_beside_our_time() -> None:
    """A line names the point, our time, theirs, the ratio of the two, what was measured, on what, and the source."""
    line = shown()[1]

    assert all(word in line for word in ("N=197", "sdpa", "2.00 ms", "standard", "core alone", "a fast CPU", "table 3"))


def test_the_ratio_is_theirs_over_ours() -> None:
    """A figure twice our time says 2.00x."""
    table = results([Case(point(), "sdpa")])
    ours_s = float(table["latency_s"].iloc[0])
    lines = rendered(references(table, read([{**ENTRY, "latency_s": 2 * ours_s}]))).splitlines()

    assert "2.00x" in lines[1]


def test_a_rate_is_said_as_it_was_published() -> None:
    """Items a second stand as they are, and as the time of a call."""
    rate = {name: value for name, value in ENTRY.items() if name != "latency_s"}
    lines = rendered(references(results([Case(point(), "sdpa")]), read([{**rate, "items_per_s": 505}]))).splitlines()

    assert "505 items/s = 15.8 ms" in lines[1]


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
