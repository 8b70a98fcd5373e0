"""What to use, in sentences."""

import math
import re

import pandas as pd
import pytest

from bench.analyse.standing import ALONE, FASTEST, NAMED, NOTHING, Choice
from bench.analyse.summary import summarise
from bench.plan.case import Case
from bench.show.answer import answer, certainty, choice_of, points_of, short, speedup_cell, words
from bench.show.rows import plain
from bench.stats.estimates import Interval
from tests.examples import point
from tests.show.example_results import record, results, timed

SHOWN = Choice(FASTEST, "sdpa", 1.0, Interval(1.04, 1.02, 1.06))
CLOSE = Choice(NAMED, "sdpa", 1.016, may_be_faster=("compiled_sdpa",), as_good=("compiled_sdpa",))
WIDE = Choice(NAMED, "sdpa", 1.034, may_be_faster=("compiled_sdpa",), further_s=40.0)


@pytest.mark.parametrize(
    ("of", "said", "in_a_cell"),
    [
        (SHOWN, "fastest: sdpa, by 2 to 6%", ["sdpa", "fastest", "by 2 to 6%"]),
        (CLOSE, "use sdpa: no other is more than 1.6% faster; compiled_sdpa is as good", ["sdpa", "within 1.6%"]),
        (
            WIDE,
            "use sdpa: compiled_sdpa may be up to 3.4% faster; 40 s more of measuring would bring that below 2%",
            ["sdpa", "within 3.4%"],
        ),
        (
            Choice(NAMED, "sdpa", ahead=Interval(3.1, math.nan, math.nan), may_be_faster=("mha",), processes=1),
            "use sdpa: mha took 3.10 times as long in 1 process, which gives no bound",
            ["sdpa", "no bound"],
        ),
        (Choice(ALONE, "sdpa"), "only one measured: sdpa", ["sdpa", "only one measured"]),
        (Choice(NOTHING), "nothing was measured", ["nothing was measured"]),
    ],
)
def test_each_choice_has_its_words(of: Choice, said: str, in_a_cell: list[str]) -> None:
    """A sentence for a line, and a few words for a cell of a map."""
    assert words(of) == said
    assert short(of) == in_a_cell


@pytest.mark.parametrize("of", [SHOWN, CLOSE, WIDE])
def test_less_room_makes_a_shorter_sentence(of: Choice) -> None:
    """It names the implementation in any room, and fits if the shortest one does."""
    least = len(words(of, 0))
    for width in range(100):
        text = words(of, width)
        assert " sdpa" in text
        assert len(text) <= max(width, least)


def test_a_smaller_bound_is_surer() -> None:
    """A choice that is shown to be the fastest is as sure as can be, one without a bound isn't sure at all."""
    named = [Choice(NAMED, "a", high) for high in (1.005, 1.01, 1.05, 1.5)]
    sure = [certainty(of) for of in (SHOWN, *named, Choice(NAMED, "a"), Choice(ALONE, "a"))]
    assert sure == sorted(sure, reverse=True)
    assert (sure[0], sure[-3], sure[-1]) == (1, 0, 0)
    assert len({*sure}) == 5


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """Return rows of which sdpa is the one to use, mha is open, and eager is slower."""
    rows = timed([point()], {"eager": 2.0, "sdpa": 1.0, "mha": 1.001})
    assert rows["standing"].tolist() == ["slower", "named", "open"]
    return rows


@pytest.mark.parametrize("kept", [["sdpa"], ["sdpa", "eager"], ["sdpa", "mha"]])
def test_rows_that_are_left_out_change_no_bound(table: pd.DataFrame, kept: list[str]) -> None:
    """The one to use stays that, even if it is the only row that is shown."""
    whole, some = (choice_of(plain(rows)) for rows in (table, table.query("implementation in @kept")))
    assert (some.standing, some.name, some.high) == (NAMED, "sdpa", whole.high)
    assert "no other is more than" in words(some)


@pytest.mark.parametrize("kept", [["eager"], ["mha"], ["eager", "mha"]])
def test_nothing_is_named_if_the_one_to_use_is_left_out(table: pd.DataFrame, kept: list[str]) -> None:
    """No other takes its place, and none is said to be alone."""
    of = choice_of(plain(table.query("implementation in @kept")))
    assert (of.name, of.names) == ("", ())
    assert "don't tell" in words(of)
    assert short(of) == [words(of)]


def test_to_measure_for_days_is_no_advice(table: pd.DataFrame) -> None:
    """Two hours are."""
    wide = table.assign(slowdown_high=1.04)
    days, hours = (words(choice_of(plain(wide.assign(further_s=3600.0 * hours)))) for hours in (50, 2))
    assert days.endswith("mha may be up to 4% faster")
    assert hours.endswith("faster; 2 h more of measuring would bring that below 2%")


def test_rows_of_other_processes_are_not_compared() -> None:
    """Two that share no process have no slowdown; one that shares none with two others changes nothing for them."""
    unpaired = [record(Case(point(), name), process, None, 1.0) for process, name in enumerate(("eager", "sdpa"))]
    assert choice_of(plain(summarise(unpaired, "eager"))).name == ""
    both = [record(Case(point(), name), n, None, s) for name, s in (("eager", 2.0), ("sdpa", 1.0)) for n in range(3)]
    other = [record(Case(point(), "mha"), n, None, 1.0) for n in (3, 4)]
    two, three = (choice_of(plain(summarise(records, "sdpa"))) for records in (both, [*both, *other]))
    assert (two.standing, two.name, two.names) == (FASTEST, "sdpa", ("sdpa",))
    assert (three.standing, three.name, three.names) == (FASTEST, "sdpa", ("sdpa",))


# Over a run


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
    assert speedup_cell(first, "eager").startswith("2.0")
    assert (speedup_cell(first, "sdpa"), speedup_cell(None, "eager")) == ("baseline", "")


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
    """It costs least on the whole, and the sentence says where it loses to which."""
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
