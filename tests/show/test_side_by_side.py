"""The table of a change of precision."""

import re
from dataclasses import replace
from typing import Any

import pytest

from bench.analyse.precision import changes
from bench.analyse.summary import summarise
from bench.plan.case import Case
from bench.plan.errors import WrongRequest
from bench.plan.published import read
from bench.show.side_by_side import machines, precision_words, precisions, references
from bench.show.terminal.console import render, rendered
from tests.analyse.test_precision import measured
from tests.examples import case, point
from tests.show.example_results import results, timed

ENTRY: dict[str, Any] = {
    "source": "A paper, table 3",
    "machine": "a fast CPU",
    "called": "standard",
    "implementation": "sdpa",
    "part": "core",
    "latency_s": 2e-3,
    "at": {"num_tokens": 197},
}


AT = [point(num_tokens=tokens) for tokens in (50, 197, 577)]


def test_a_row_has_both_times_and_the_ratio() -> None:
    """It names the shape, the implementation and both precisions."""
    records = [measured("eager", dtype, process) for dtype in ("float32", "bfloat16") for process in range(3)]
    lines = rendered(render(precisions(summarise(records, "eager"), changes(records)))).splitlines()
    for words in ("N=", "eager", "bfloat16", "2.00x"):
        assert words in lines[1]


def test_without_a_second_precision_there_is_nothing_to_show() -> None:
    """The refusal says how to measure one."""
    records = [measured("eager", "float32", 0)]
    with pytest.raises(WrongRequest, match="in the same rounds"):
        precisions(summarise(records, "eager"), changes(records))


def test_of_several_shapes_the_least_and_the_most_are_told() -> None:
    """At each shape the implementation counts that is fastest in the other precision."""
    records = [
        replace(each, case=case(each.case.implementation, dtype=each.case.point.dtype, num_tokens=number))
        for number, names in ((50, ("eager", "sdpa")), (197, ("sdpa",)))
        for name in names
        for dtype in ("float32", "bfloat16")
        for each in [measured(name, dtype, 0, slowness=2.0 if name == "eager" else 1.0)]
    ]
    (line,) = precision_words(summarise(records, "sdpa"), changes(records))
    assert "each of 2 shapes: 2.00x (sdpa) to 2.00x (sdpa)" in line


def shown(**changes: Any) -> list[str]:
    """Return the lines of a table of one case beside one figure, changed so; None takes a value out."""
    entry = {name: value for name, value in {**ENTRY, **changes}.items() if value is not None}
    return rendered(render(references(results([Case(point(), "sdpa")]), read([entry])))).splitlines()


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
    line = rendered(render(references(table, read([ENTRY])))).splitlines()[1]

    assert "unsupported" in line
    assert "x " not in line.partition("unsupported")[2].partition("standard")[0]


def test_a_run_without_a_published_case_is_refused() -> None:
    """Where no figure is for any case, the sources that there are are named."""
    with pytest.raises(WrongRequest, match=r"no published figure is for a case of this run.*A paper, table 3"):
        references(results([Case(point(num_tokens=50), "sdpa")]), read([ENTRY]))


def test_points_at_which_machines_disagree_come_first() -> None:
    """Each cell has what to use there, what that can cost, and its speed-up."""
    here = timed(AT[:2], {"eager": 2.0, "sdpa": 1.0})
    there = timed(
        AT[:2], {"eager": lambda at: 2.0 if at == AT[0] else 1.0, "sdpa": lambda at: 1.0 if at == AT[0] else 2.0}
    )
    heading, *lines = rendered(render([machines({"here": here, "there": there})]), width=140).splitlines()
    assert heading.split()[-2:] == ["here", "there"]
    assert [line.split()[0] for line in lines] == ["N=197", "N=50"]
    assert lines[0].count("fastest: sdpa, by ") == lines[0].count("fastest: eager, by ") == 1
    assert lines[1].count("% 2.0") == 2


def test_a_machine_without_times_at_a_point_says_why() -> None:
    """It failed there, or it has no such point."""
    cases = [Case(AT[0], "eager"), Case(AT[2], "eager")]
    tables = {"here": timed(AT[1:2], {"eager": 1.0}), "there": results(cases, {cases[0]: ("oom", "")})}
    said = {line.split()[0]: line for line in rendered(render([machines(tables)]), width=140).splitlines()}
    assert re.split(" {2,}", said["N=50"])[1:] == ["not measured", "nothing was measured"]
    assert "only one measured: eager" in said["N=197"]
