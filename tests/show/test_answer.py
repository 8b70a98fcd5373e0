"""The answer of a run in sentences."""

import math
import re

import pandas as pd
import pytest

from bench.analyse.summary import summarise
from bench.plan.case import CONTROL, Case
from bench.show import answer as say
from bench.show.answer import answer, control_noise, control_warning, failures, machine, points_of, warnings
from tests.examples import point, record
from tests.examples import timed as samples
from tests.show import example_results
from tests.show.example_results import quick, timed

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
    assert text.startswith("Use sdpa: at all 3 points it takes at most 1.00x as long as the fastest one. sdpa is from ")
    assert "(N=577) as fast as eager" in text
    assert "you are within 2% of the fastest at all 3." in text


def test_the_baseline_can_be_the_answer() -> None:
    """Then nothing is said of a speed-up over itself."""
    text = said(table(eager=1.0, sdpa=2.0))
    assert text.startswith("Use eager: at all 3 points it takes at most 1.00x as long as the fastest one. With the")


def lead_of(*ratios: float) -> pd.DataFrame:
    """Return a table in which sdpa takes so many times as long as eager, a point for each ratio."""
    many = [point(num_tokens=50 + number) for number in range(len(ratios))]
    return example_results.timed(many, {"eager": 1.0, "sdpa": lambda at: ratios[at.num_tokens - 50]}, processes=5)


def test_points_at_which_another_one_is_faster_are_named() -> None:
    """A reader who has such a shape learns it from the answer, with what is faster there; of five two are counted."""
    text = said(lead_of(0.5, 0.5, 2.0))
    assert text.startswith("Use sdpa: at 2 of 3 points it takes at most 1.00x as long as the fastest one; but at N=52 ")
    assert re.search(r"at N=52 eager is (1\.9|2\.0)\dx to 2\.\d\dx as fast\.", text)
    text = said(lead_of(0.1, 0.1, 1.8, 1.6, 1.9, 1.1, 1.2))
    assert re.findall(r"at N=(\d+) eager", text) == ["54", "52", "53"]
    rest = re.search(r"at 2 other points others are ([\d.]+)x to ([\d.]+)x as fast\.", text)
    assert rest
    assert 1 < float(rest[1]) < 1.1 < 1.2 < float(rest[2]) < 1.3


def test_points_at_which_another_one_is_hardly_faster_are_counted() -> None:
    """They cost what the bound says; the implementation that is named at most points is advised."""
    found = lead_of(0.99, 0.99, 1.01)
    found.loc[found.query("num_tokens == 52 and implementation == 'sdpa'").index, "slowdown_low"] = 1.003
    text = said(found)
    assert text.startswith(
        "Use sdpa: at all 3 points it takes at most 1.02x as long as the fastest one, though at 1 of"
    )


def test_an_implementation_can_be_advised_that_leads_nowhere() -> None:
    """It costs least on the whole, and the sentence says where it loses to which."""
    found = example_results.timed(
        AT[:2],
        {"eager": lambda at: 1.0 if at == AT[0] else 3.0, "sdpa": lambda at: 3.0 if at == AT[0] else 1.0, "mha": 1.1},
    )
    text = said(found)
    assert text.startswith("Use mha, though another one is faster at each point: ")
    assert "at N=50 eager is 1." in text
    assert "at N=197 sdpa is 1." in text


def test_points_without_a_bound_or_a_rival_are_told_apart() -> None:
    """What no rival was measured against is no doubt; what one process measured has no bound."""
    cases = [Case(at, name) for at in AT for name in ("eager", "sdpa")]
    alone = dict.fromkeys(cases[::2], ("oom", ""))
    assert said(example_results.results(cases, alone)).startswith("Nothing can be compared: only one implementation")
    some = said(example_results.results(cases, dict.fromkeys(cases[:1], ("oom", ""))))
    assert some.startswith("Use sdpa: at all 3 points it takes at most ")
    assert "within 2% of the fastest at all 3." in some
    single = said(example_results.results(cases, processes=1))
    assert single.startswith("Use sdpa: at all 3 points its cost has no bound.")
    assert "--processes 2" in single
    mixed = pd.concat([lead_of(1.0).assign(slowdown_high=1.05), example_results.results(cases[2:], processes=1)])
    assert "within 5% at 1 of the others" in said(mixed)


def test_one_point_has_its_choice_as_the_answer() -> None:
    """There is nothing to count."""
    text = said(example_results.timed(AT[:1], {"eager": 2.0, "sdpa": 1.0}))
    assert text.startswith("Fastest: sdpa, by ")
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
    many = samples(1.0, 1.0, switches=(99, 99))
    busy = summarise(
        [record(case=Case(AT[0], n), samples=many, calls_per_timing=1) for n in ("eager", "sdpa")], "eager"
    )
    is_quiet, words = machine(busy)
    assert not is_quiet
    assert "disturbed a quarter of the samples or more in 2 of 2 measured cases" in words


def test_a_control_that_differs_makes_the_machine_not_quiet() -> None:
    """A control that doesn't is said as well: by how much it differed."""
    is_quiet, words = machine(table(eager=1.0, sdpa=1.0, control=1.2))
    assert not is_quiet
    assert words.startswith("The machine was not quiet. Identical code differs here by more than ")
    assert not machine(table(eager=1.0, sdpa=1.0, control=1.001))[1].endswith("disturbed.")


def test_a_slow_machine_is_not_called_disturbed() -> None:
    """It ran at half of its speed, and nothing else used its cores."""
    is_quiet, words = machine(table(eager=1.0, sdpa=1.0).assign(compute_speed=0.5))
    assert not is_quiet
    assert words.startswith("The machine was slow. In 6 of 6 measured cases it ran at less than 75 %")
    assert "disturbed" not in words


def test_warnings_say_how_many_rows_and_what_to_do() -> None:
    """The most frequent comes first; each is counted once."""
    one = [
        record(case=Case(AT[0], name), samples=samples(1.0, 1.0), calls_per_timing=1, settled=True)
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


def test_the_baseline_has_no_speedup_over_itself() -> None:
    """Its cell says what it is."""
    (at, *_) = points_of(table(eager=2.0, sdpa=1.0))
    assert say.speedup_cell(at.first, "eager").startswith("2.0")
    assert say.speedup_cell(at.first, "sdpa") == "baseline"
    assert say.speedup_cell(None, "eager") == ""


def run(factor: float, *tokens: int) -> pd.DataFrame:
    """Return results in which the control takes this many times as long as the baseline at the last of these tokens."""
    points = [point(num_tokens=each) for each in tokens]
    slow = {CONTROL: lambda at: 0.01 * (factor if at == points[-1] else 1.0)}
    return timed(points, {"eager": 0.01, "sdpa": 0.005, **slow})


def test_a_right_control_is_told_and_is_no_warning() -> None:
    """The largest difference is at most what the times were drawn with; a run without a control tells none."""
    found = re.fullmatch(
        r"a second eager differed from the first by up to ([\d.]+)% \(N=\d+\)", control_noise(run(1.0, 50, 197))
    )
    assert found
    assert 0 < float(found[1]) < 2
    assert control_warning(run(1.0, 50, 197)) == ""
    without = timed([point()], {"eager": 0.01, "sdpa": 0.005})
    assert control_noise(without) == control_warning(without) == ""


def test_a_control_that_differs_is_a_warning_with_its_point() -> None:
    """Whether it is faster or slower, the difference is said as a multiple above 1, and all bounds are wider."""
    for factor in (1.5, 1 / 1.5):
        found = re.search(
            r"by up to (\d+)% \(N=577\); so all intervals and bounds are", control_warning(run(factor, 50, 197, 577))
        )
        assert found
        assert 47 <= int(found[1]) <= 53


def test_an_only_point_needs_no_name() -> None:
    """Nothing differs, so there is nothing to tell it by."""
    assert "N=" not in control_warning(run(math.e, 50))
    assert "first by up to 17" in control_warning(run(math.e, 50))
