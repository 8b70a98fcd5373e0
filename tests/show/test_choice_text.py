"""The words that say what to use at a point."""

import math

import pandas as pd
import pytest

from bench.analyse.standing import ALONE, FASTEST, NAMED, NOTHING, Choice
from bench.analyse.summary import summarise
from bench.plan.case import Case
from bench.show.choice_text import any_of, by, certainty, choice_of, duration, faster, more, short, words
from bench.show.rows import plain
from bench.stats.estimates import Interval
from tests.examples import point
from tests.show.example_results import record, timed

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
    """The sentence names the implementation in any room, and fits if the shortest one does."""
    least = len(words(of, 0))
    for width in range(100):
        text = words(of, width)
        assert " sdpa" in text
        assert len(text) <= max(width, least)


def test_numbers_are_rounded_away_from_what_they_bound_and_many_names_counted() -> None:
    """However a computer stores a number; many names are counted; a smaller bound is surer, and none is 0."""
    assert [more(ratio) for ratio in (1.011, 1.0111, 1.1, 1.101)] == ["1.1%", "1.2%", "10%", "11%"]
    assert (by(1.0299, 1.0301), by(2.19, 2.21)) == ("by 2.9 to 3.1%", "by 2.1x to 2.3x")
    assert (by(1.0, 1.06), by(1.0001, 1.06)) == ("by 0 to 6%", "by over 0 to 6%")
    assert faster(2.31) == "may be up to 2.4x as fast"
    assert "over 1,000,000x" in faster(math.inf)
    waits = (0.2, 39.1, 140, 7000, 10_900)
    assert [duration(each) for each in waits] == ["1 s", "40 s", "2.3 min", "117 min", "3 h"]
    assert [any_of(names) for names in ("ab", "abcd", "abcdef")] == ["a or b", "a, b, c or d", "a, b, c or 3 others"]
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
