"""The line of a point."""

import pytest

from bench.plan.case import Case
from bench.show import point_line
from bench.show.answer import points_of
from bench.show.blocks import Table
from bench.show.point_line import log_line, outcomes
from bench.show.terminal.blocks import render
from bench.show.terminal.console import rendered
from tests.examples import point
from tests.show.example_results import Fate, quick, results

CASES = [Case(point(), name) for name in ("eager", "manual", "sdpa", "mha")]


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_a_line_fits(width: int) -> None:
    """Its speed-up is whole in any width, and its interval if there is room for it; what to use is named."""
    found = points_of(quick())
    text = rendered(render([Table(point_line.columns("eager"), found)]), width=width)
    assert max(map(len, text.splitlines())) <= width
    for at, line in zip(found, text.splitlines()[1:], strict=True):
        assert line.endswith(("]" if width >= 100 else "x", "baseline"))
        assert at.choice.name in line


def test_a_line_of_a_log_is_short_and_says_what_a_reader_needs() -> None:
    """Position, point, what to use, what that can cost, and the time left."""
    for number, at in enumerate(points_of(quick()), start=1):
        line = log_line(at, number, 12, "4m10s", "eager", 118)
        assert line.startswith(f"[{number:>2}/12] {at.label}: ")
        assert line.endswith("(~4m10s left)")
        assert len(line) <= 118


@pytest.mark.parametrize(
    ("fates", "words"),
    [
        ({CASES[1]: ("oom", "")}, ["sdpa", "mha", "eager ms baseline", "manual oom"]),
        ({CASES[0]: ("timeout", "")}, ["sdpa", "mha", "manual", "eager timeout"]),
        (dict.fromkeys(CASES, ("crashed", "")), [f"{case.implementation} crashed" for case in CASES]),
    ],
    ids=["one", "the baseline", "all"],
)
def test_outcomes_are_each_implementations_time_and_ratio(fates: dict[Case, Fate], words: list[str]) -> None:
    """In their order; those that failed stand at the end with how they ended, and no ratio is made up."""
    (at,) = points_of(results(CASES, fates))
    found = [*outcomes(at, "eager")]
    assert [each.split()[0] for each in found] == [each.split()[0] for each in words]
    for each, expected in zip(found, words, strict=True):
        assert {*expected.split()} <= {*each.split()}
    assert [each for each in found if "x" in each.split()[-1]] == ([] if CASES[0] in fates else found[:2])
