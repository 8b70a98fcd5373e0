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
from tests.show.example_results import quick, results, timed

AT = [point(num_tokens=tokens) for tokens in (50, 197, 577)]


def said(table: pd.DataFrame) -> str:
    """Return the answer of a table as one text."""
    return " ".join(answer(points_of(table), "eager"))


def lead_of(*ratios: float) -> pd.DataFrame:
    """Return a table in which sdpa takes so many times as long as eager, a point for each ratio."""
    many = [point(num_tokens=50 + number) for number in range(len(ratios))]
    return timed(many, {"eager": 1.0, "sdpa": lambda at: ratios[at.num_tokens - 50]}, processes=5)


def test_what_is_never_beaten_is_advised_with_its_speedups() -> None:
    """The sentence names it, the number of points, and its smallest and largest speed-up; the baseline has none."""
    table = timed(AT, {"eager": 2.0, "sdpa": 1.0, "manual": 2.1})
    text = said(table)
    assert text.startswith("Use sdpa: at all 3 points it takes at most 1.00x as long as the fastest one. sdpa is from ")
    assert "(N=577) as fast as eager" in text
    assert "you are within 2% of the fastest at all 3." in text
    text = said(timed(AT, {"eager": 1.0, "sdpa": 2.0}))
    assert text.startswith("Use eager: at all 3 points it takes at most 1.00x as long as the fastest one. With the")
    first = points_of(table)[0].first
    assert say.speedup_cell(first, "eager").startswith("2.0")
    assert (say.speedup_cell(first, "sdpa"), say.speedup_cell(None, "eager")) == ("baseline", "")


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


def test_an_implementation_can_be_advised_that_leads_nowhere() -> None:
    """Such an implementation costs least on the whole, and the sentence says where it loses to which."""
    eager, sdpa = (lambda at, fast=fast: 1.0 if at == fast else 3.0 for fast in AT[:2])
    text = said(timed(AT[:2], {"eager": eager, "sdpa": sdpa, "mha": 1.1}))
    assert text.startswith("Use mha, though another one is faster at each point: ")
    assert "at N=50 eager is 1." in text
    assert "at N=197 sdpa is 1." in text


def test_points_without_a_bound_or_a_rival_are_said_to_be_so() -> None:
    """What no rival was measured against is no doubt; what one process measured has no bound."""
    cases = [Case(at, name) for at in AT for name in ("eager", "sdpa")]
    alone = said(results(cases, dict.fromkeys(cases[::2], ("oom", ""))))
    assert alone.startswith("Nothing can be compared: only one implementation")
    some = said(results(cases, {cases[0]: ("oom", "")}))
    assert some.startswith("Use sdpa: at all 2 points it takes at most ")
    assert "within 2% of the fastest at all 2. Nothing is compared at N=50" in some
    single = said(results(cases, processes=1))
    assert single.startswith("Use sdpa: at all 3 points its cost has no bound.")
    assert "--" not in single
    mixed = pd.concat([lead_of(1.0).assign(slowdown_high=1.05), results(cases[2:], processes=1)])
    assert "within 5% at 1 of the others" in said(mixed)


def test_one_point_or_none_has_a_sentence_of_its_own() -> None:
    """The choice of an only point is the answer; a run in which nothing was measured gets no advice."""
    text = said(timed(AT[:1], {"eager": 2.0, "sdpa": 1.0}))
    assert text.startswith("Fastest: sdpa, by ")
    assert re.search(r"\. sdpa takes \d+ ms ±[\d.]+% a call; it is 2\.0\dx \[[^]]*\] as fast as eager\.$", text)
    cases = [Case(AT[0], name) for name in ("eager", "sdpa")]
    nothing = results(cases, dict.fromkeys(cases, ("oom", "no memory")))
    assert said(nothing) == "Nothing was measured: none of 2 cases is ok."
    assert failures(points_of(nothing)) == "2 of 2 cases have no time: 2 oom (eager at 1 point, sdpa at 1 point)."
    assert machine(nothing) == (True, "")


def test_a_point_with_one_measured_row_counts_for_nobody() -> None:
    """Eager alone has a time at three of four points; at the only one that compares something sdpa is faster."""
    many = [*AT, point(num_tokens=1024)]
    cases = [Case(at, name) for at in many for name in ("eager", "sdpa")]
    lost = {case: ("oom", "") for case in cases if case.implementation == "sdpa" and case.point != AT[0]}
    text = said(results(cases, lost))
    assert text.startswith("Use sdpa: at the only point that compares anything, N=50,")
    assert "Nothing is compared at N=197, N=577, N=1024" in text


def test_an_implementation_of_ones_own_has_its_time_and_ratio_also_if_it_loses() -> None:
    """At one point and at several; another one that loses has none."""
    own, time = "mykernel:attend", r"[34][.\d]+ m?s ±[\d.]+%"
    places = rf"from {time} \(N=\d+\) to {time} \(N=\d+\)"
    for at, takes in ((AT[:1], time), (AT, places)):
        text = said(timed(at, {"eager": 2.0, "sdpa": 1.0, own: 4.0, "mha": 4.0}))
        assert re.search(rf"{own} takes {takes} a call; it is .*0\.5\d*x .* as fast as eager", text)
        assert "mha takes" not in text


def test_one_implementation_alone_has_its_time() -> None:
    """Nobody runs it in vain."""
    assert re.search(r"sdpa takes \d+ ms ±[\d.]+% a call\.$", said(timed(AT[:1], {"sdpa": 1.0})))
    assert re.search(r"sdpa takes from \d+ ms .* \(N=\d+\) to .* a call\.$", said(timed(AT, {"sdpa": 1.0})))


def test_failures_are_counted_by_status_and_implementation() -> None:
    """What was never tried comes last; that all went well is said too."""
    assert failures(points_of(quick())).startswith(
        "2 of 84 cases (12 points × 7 implementations) have no time: 2 unsupported (mha at 2 points)"
    )
    cases = [Case(AT[0], name) for name in ("eager", "sdpa", "mha")]
    table = results(cases, {cases[0]: ("skipped", ""), cases[1]: ("oom", "")})
    assert failures(points_of(table)).endswith("no time: 1 oom (sdpa at 1 point); 1 skipped (eager at 1 point).")
    assert failures(points_of(timed(AT, {"eager": 1.0, "sdpa": 1.0}))) == "All 6 cases were measured."


def test_a_machine_is_quiet_busy_or_slow() -> None:
    """A busy one had half of its samples disturbed, a slow one half of its speed; each warning is counted once."""
    fair = timed(AT, {"eager": 1.0, "sdpa": 1.0})
    assert machine(fair)[0]
    is_quiet, words = machine(fair.assign(compute_speed=0.5))
    assert not is_quiet
    assert words.startswith("The machine was slow. In 6 of 6 measured cases it ran at less than 75 %")
    assert "disturbed" not in words
    busy = samples(1.0, 1.0, switches=(99, 99))
    records = [record(case=Case(AT[0], name), samples=busy, calls_per_timing=1) for name in ("eager", "sdpa")]
    is_quiet, words = machine(summarise(records, "eager"))
    assert not is_quiet
    assert "disturbed a quarter of the samples or more in 2 of 2 measured cases" in words
    one = [
        record(case=Case(AT[0], name), samples=samples(1.0, 1.0), calls_per_timing=1, settled=True)
        for name in ("eager", "sdpa")
    ]
    assert list(map(str, warnings(summarise(one, "eager")))) == [
        "2 of 2 measured cases: one process only, so no interval"
    ]


# The control


def controlled(factor: float, *tokens: int) -> pd.DataFrame:
    """Return results in which the control takes this many times as long as the baseline at the last of these tokens."""
    points = [point(num_tokens=each) for each in tokens]
    slow = {CONTROL: lambda at: 0.01 * (factor if at == points[-1] else 1.0)}
    return timed(points, {"eager": 0.01, "sdpa": 0.005, **slow})


def test_the_control_is_no_implementation_of_the_answer() -> None:
    """The control has no row there.

    The sentence on the machine says by how much it differed, and a right one is no warning.
    """
    (at,) = points_of(controlled(1.0, 50))
    assert {row["implementation"] for row in at.rows} == {"eager", "sdpa"}
    is_quiet, words = machine(controlled(1.2, 50, 197, 577))
    assert not is_quiet
    assert words.startswith("The machine was not quiet. Identical code differs here by more than ")
    assert not machine(controlled(1.001, 50, 197, 577))[1].endswith("disturbed.")
    right = controlled(1.0, 50, 197)
    noise = re.fullmatch(r"a second eager differed from the first by up to ([\d.]+)% \(N=\d+\)", control_noise(right))
    assert noise
    assert 0 < float(noise[1]) < 2
    assert control_warning(right) == ""
    without = timed([point()], {"eager": 0.01, "sdpa": 0.005})
    assert control_noise(without) == control_warning(without) == ""


@pytest.mark.parametrize(
    ("factor", "tokens", "words"),
    [
        (1.5, (50, 197, 577), r"first by up to (4[7-9]|5[0-3])% \(N=577\); so all intervals and bounds are"),
        (1 / 1.5, (50, 197, 577), r"first by up to (4[7-9]|5[0-3])% \(N=577\); so all intervals and bounds are"),
        (math.e, (50,), r"first by up to 17\d%; so"),
    ],
)
def test_a_control_that_differs_is_a_warning_with_its_point(factor: float, tokens: list[int], words: str) -> None:
    """Faster or slower, the difference is a ratio above 1, and all bounds are wider; an only point needs no name."""
    assert re.search(words, control_warning(controlled(factor, *tokens)))
