"""The answer of a run in sentences."""

import pandas as pd
import pytest

from bench.analyse.summary import summarise
from bench.plan.case import CONTROL, Case
from bench.show import answer as say
from bench.show.answer import answer, failures, machine, points_of, warnings
from tests.examples import point, record, timed
from tests.show import example_results
from tests.show.example_results import quick

AT = [point(num_tokens=tokens) for tokens in (50, 197, 577)]


def table(**seconds: float) -> pd.DataFrame:
    """Return the results of three points at which each implementation takes so many seconds."""
    return example_results.timed(AT, seconds)


def said(found: pd.DataFrame) -> str:
    """Return the answer of a table as one text."""
    return " ".join(answer(points_of(found), "eager"))


def test_what_is_never_beaten_is_advised_with_its_speedups() -> None:
    """The sentence names it, the number of points, the range of its speed-ups, and where the largest is."""
    text = said(table(eager=2.0, sdpa=1.0, manual=2.1))
    assert text.startswith("Use sdpa: at all 3 points no other is shown to be faster. There it is from ")
    assert "(N=577) as fast as eager" in text
    assert "At all 3 points a winner is shown." in text


def test_the_baseline_can_be_the_answer() -> None:
    """Then nothing is said of a speed-up over itself."""
    text = said(table(eager=1.0, sdpa=2.0))
    assert text.startswith("Stay with eager: at all 3 points no other is shown to be faster. ")


def test_points_at_which_another_one_is_faster_are_named() -> None:
    """A reader who has such a shape learns it from the answer."""
    found = pd.concat([
        example_results.timed(AT[:2], {"eager": 2.0, "sdpa": 1.0}),
        example_results.timed(AT[2:], {"eager": 1.0, "sdpa": 2.0}),
    ])  # fmt: skip
    text = said(found)
    assert text.startswith("Use sdpa: at 2 of 3 points no other is shown to be faster")
    assert "Faster elsewhere: eager at N=577." in text


def test_one_point_has_its_outcome_as_the_answer() -> None:
    """There is nothing to count."""
    text = said(example_results.timed(AT[:1], {"eager": 2.0, "sdpa": 1.0}))
    assert text.startswith("Use sdpa: it is shown to be the fastest (")
    assert "sdpa is 2.0" in text


def test_a_run_in_which_nothing_was_measured_says_so() -> None:
    """There is no advice then."""
    cases = [Case(AT[0], name) for name in ("eager", "sdpa")]
    found = example_results.results(cases, dict.fromkeys(cases, ("oom", "no memory")))
    assert said(found) == "Nothing was measured: none of 2 cases is ok."
    assert failures(points_of(found)) == "2 of 2 cases have no time: 2 oom (eager at 1 point, sdpa at 1 point)."
    assert machine(found) == (True, "")


def test_failures_are_counted_by_status_with_who_failed() -> None:
    """All is well is said too."""
    assert failures(points_of(quick())).startswith(
        "2 of 84 cases (12 points × 7 implementations) have no time: 2 unsupported (mha at 2 points)"
    )
    assert failures(points_of(table(eager=1.0, sdpa=1.0))) == "All 6 cases were measured."


def test_a_quiet_machine_and_a_busy_one_are_told_apart() -> None:
    """With half of the samples disturbed it is not quiet; the sentence says why."""
    assert machine(table(eager=1.0, sdpa=1.0))[0]
    many = timed(1.0, 1.0, switches=(99, 99))
    busy = summarise(
        [record(case=Case(AT[0], n), samples=many, calls_per_timing=1) for n in ("eager", "sdpa")], "eager"
    )
    is_quiet, words = machine(busy)
    assert not is_quiet
    assert "disturbed a quarter of the samples or more in 2 of 2 measured cases" in words


def test_a_slow_machine_is_not_called_disturbed() -> None:
    """It ran at half of its speed, and nothing else used its cores."""
    is_quiet, words = machine(table(eager=1.0, sdpa=1.0).assign(compute_speed=0.5))
    assert not is_quiet
    assert words.startswith("The machine was slow. In 6 of 6 measured cases it ran at less than 75 %")
    assert "disturbed" not in words


def test_warnings_say_how_many_rows_and_what_to_do() -> None:
    """The most frequent comes first; each is counted once."""
    one = [
        record(case=Case(AT[0], name), samples=timed(1.0, 1.0), calls_per_timing=1, settled=True)
        for name in ("eager", "sdpa")
    ]
    found = [str(each) for each in warnings(summarise(one, "eager"))]
    assert found == ["2 of 2 measured cases: one process only, so no interval: measure with more --processes"]


@pytest.mark.parametrize("name", ["eager", "sdpa"])
def test_the_control_is_no_point_of_its_own(name: str) -> None:
    """It has no place in the answer, whatever it measured."""
    rows = [record(case=Case(AT[0], each), process=n) for each in ("eager", "sdpa", CONTROL) for n in range(3)]
    (at,) = points_of(summarise(rows, "eager"))
    assert name in {row["implementation"] for row in at.rows}
    assert CONTROL not in {row["implementation"] for row in at.rows}


def test_cells_are_short() -> None:
    """A winner is its name alone, what is open ends with a question mark, and the baseline has no ratio."""
    (at, *_) = points_of(table(eager=2.0, sdpa=1.0))
    assert say.fastest_cell(at.outcome) == "sdpa"
    assert say.speedup_cell(at.first, "eager").startswith("2.0")
    assert say.speedup_cell(at.first, "sdpa") == "baseline"
    (even, *_) = points_of(table(eager=1.0, sdpa=1.0))
    assert say.fastest_cell(even.outcome).startswith("tie: ") or say.fastest_cell(even.outcome).endswith("?")
