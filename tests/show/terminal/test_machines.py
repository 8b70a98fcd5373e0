"""What to use where on which machine."""

import re

from bench.plan.case import Case
from bench.show.terminal.console import rendered
from bench.show.terminal.machines import choices
from tests.examples import point
from tests.show.example_results import results, timed

AT = [point(num_tokens=tokens) for tokens in (50, 197, 577)]


def test_points_at_which_machines_disagree_come_first() -> None:
    """Each cell has what to use there, what that can cost, and its speed-up."""
    here = timed(AT[:2], {"eager": 2.0, "sdpa": 1.0})
    there = timed(
        AT[:2], {"eager": lambda at: 2.0 if at == AT[0] else 1.0, "sdpa": lambda at: 1.0 if at == AT[0] else 2.0}
    )
    heading, *lines = rendered(choices({"here": here, "there": there}), width=140).splitlines()
    assert heading.split()[-2:] == ["here", "there"]
    assert [line.split()[0] for line in lines] == ["N=197", "N=50"]
    assert lines[0].count("fastest: sdpa, by ") == lines[0].count("fastest: eager, by ") == 1
    assert lines[1].count("% 2.0") == 2


def test_a_machine_without_times_at_a_point_says_why() -> None:
    """It failed there, or it has no such point."""
    cases = [Case(AT[0], "eager"), Case(AT[2], "eager")]
    tables = {"here": timed(AT[1:2], {"eager": 1.0}), "there": results(cases, {cases[0]: ("oom", "")})}
    said = {line.split()[0]: line for line in rendered(choices(tables), width=140).splitlines()}
    assert re.split(" {2,}", said["N=50"])[1:] == ["not measured", "nothing was measured"]
    assert "only one measured: eager" in said["N=197"]
