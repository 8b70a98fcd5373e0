"""A duel in the terminal."""

import math

from bench.analyse.duel import Row
from bench.show.terminal.console import rendered
from bench.show.terminal.duel import legend, look_line, render
from bench.stats.sequential import Judgement
from tests.points import point

FASTER = Row(point(num_tokens=5), Judgement("faster", 5, 1.312, 1.29, 1.334), "", (2e-3, 1.52e-3))
OPEN = Row(point(num_tokens=7), Judgement("open", 5, 1.004, 0.98, 1.03), "", (2e-3, 1.99e-3))
FAILED = Row(point(num_tokens=9), Judgement(), "B crashed: killed", (2e-3, math.nan))


def shown(*rows: Row, looks: tuple[int, ...] = (5, 10, 20)) -> list[str]:
    """Return the lines of a duel's table."""
    return rendered(render(rows, looks)).splitlines()


def test_a_row_says_ratio_interval_verdict_processes_and_both_times() -> None:
    """The verdict names the side that it is about."""
    assert shown(FASTER, FAILED)[1].split() == [
        *("N=5", "1.312x", "[1.290,", "1.334]", "B", "faster", "5", "2.00", "ms", "1.52", "ms"),
    ]


def test_a_side_that_could_not_be_measured_is_said_with_its_reason() -> None:
    """There is a row, and below the table why it is empty."""
    lines = shown(FASTER, FAILED)
    assert lines[2].split() == ["N=9", "not", "measured"]
    assert "N=9: B crashed: killed" in lines


def test_one_point_needs_no_name() -> None:
    """Where nothing varies the row still says what it is about."""
    assert shown(FASTER)[1].startswith("the point")


def test_a_look_says_how_much_is_decided_and_what_is_open() -> None:
    """A line for each look, with the ratio of what goes on; without scatter the ratio stands alone."""
    line = look_line(5, 63.0, [FASTER, OPEN, FAILED])
    assert line == " 5 processes, 1m03s | 2 of 3 decided | open: N=7 1.004x [0.980, 1.030]"
    unknown = Row(point(), Judgement("open", 5, 1.5), "", (1.0, 1.0))
    assert look_line(5, 1.0, [unknown]).endswith("open: 1.500x")


def test_the_legend_says_how_the_level_is_split() -> None:
    """A single look has the whole of it."""
    three, one = (" ".join(legend(looks)) for looks in ((5, 10, 20), (10,)))
    assert "a chance of 1% in the whole table, a third of it at each look (at 5, 10, 20 processes)" in three
    assert "however many looks" in three
    assert "look" not in one
