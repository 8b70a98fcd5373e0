"""Who is the fastest, in words."""

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.analyse.fastest import ALONE, NOTHING, WITHOUT_INTERVALS, Outcome
from bench.analyse.ranking import NOT_DECIDED, SLOWER, TIE, WINNER
from bench.analyse.summary import summarise
from bench.plan.case import Case
from bench.show.fastest_text import any_of, outcome_of, short, words
from bench.show.rows import plain
from bench.stats.estimates import Interval
from tests.examples import point
from tests.show.example_results import record

LEAD = Interval(1.0931, 1.0641, 1.1232)


@pytest.mark.parametrize(
    ("of", "said", "in_short"),
    [
        (
            Outcome(WINNER, ("sdpa",), "mha", LEAD),
            "winner: sdpa, 1.093x [1.064, 1.123] as fast as mha",
            "winner: sdpa, 1.09x as fast as mha",
        ),
        (Outcome(TIE, ("a", "b"), "b", LEAD), "tie (within 2 %): a, b", "tie (within 2 %): a, b"),
        (
            Outcome(NOT_DECIDED, ("a", "b"), "b", LEAD, 4),
            "not decided: a or b (about 4 more processes would decide)",
            "not decided: a or b",
        ),
        (
            Outcome(NOT_DECIDED, ("a", "b"), "b", LEAD, 1),
            "not decided: a or b (about 1 more process would decide)",
            "not decided: a or b",
        ),
        (Outcome(NOT_DECIDED, ("a", "b"), "b", LEAD), "not decided: a or b", "not decided: a or b"),
        (
            Outcome(WITHOUT_INTERVALS, ("a",), "b"),
            "fastest, not decided: a (one process)",
            "fastest, not decided: a",
        ),
        (Outcome(ALONE, ("a",)), "only one measured: a", "only one measured: a"),
        (Outcome(NOTHING), "nothing was measured", "nothing was measured"),
    ],
)
def test_each_outcome_has_its_words(of: Outcome, said: str, in_short: str) -> None:
    """All that is known in the table, and the same without interval and advice on a line."""
    assert (words(of), short(of)) == (said, in_short)


def test_many_names_are_counted() -> None:
    """Four are named; of five the last two are counted, so that one name never hides behind a number."""
    assert any_of("ab") == "a or b"
    assert any_of("abcd") == "a, b, c or d"
    assert any_of("abcdef") == "a, b, c or 3 others"


def test_the_lower_end_of_a_winners_lead_can_be_told_from_one() -> None:
    """However wide the interval is: rounded to a tenth, 1.012 would read 1.0."""
    assert "[1.01, 1.73]" in words(Outcome(WINNER, ("a",), "b", Interval(1.32, 1.012, 1.73)))


drawn = st.tuples(
    st.integers(1, 6),
    st.lists(st.tuples(st.floats(0, 0.06), st.sampled_from([1e-4, 2e-3, 2e-2, 0.1])), min_size=2, max_size=4),
    st.integers(0, 99),
)


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(drawn)
def test_words_and_numbers_never_contradict_each_other(of: tuple[int, list[tuple[float, float]], int]) -> None:
    """From samples to the table and its words: what is said agrees with every interval that the table holds."""
    processes, truths, seed = of
    rng = np.random.default_rng(seed)
    made = [
        record(Case(point(), name), process, None, float(np.exp(rng.normal(middle, scatter))))
        for name, (middle, scatter) in zip(("eager", "sdpa", "mha", "online"), truths, strict=False)
        for process in range(processes)
    ]
    rows = plain(summarise(made, "eager"))
    found = outcome_of(rows)
    said = words(found)
    by_name = {row["implementation"]: row for row in rows}
    assert by_name[found.names[0]]["relative"] == 1
    assert all(row["relative"] >= 1 or found.says == NOT_DECIDED for row in rows)
    if processes == 1:
        assert found.says == WITHOUT_INTERVALS
        return
    assert said.startswith(f"{found.says}")
    others = [row for row in rows if row["implementation"] not in found.names]
    assert all(row["standing"] == SLOWER and row["relative_low"] > 1.01 for row in others)
    if found.says == WINNER:
        assert len(others) == len(rows) - 1
        low = re.search(r"x \[(\S+), ", said)
        assert low is not None
        assert float(low[1]) > 1
    if found.says == TIE:
        assert all(by_name[name]["relative_high"] <= 1.02 for name in found.names)
        assert all(row["relative"] > max(by_name[name]["relative"] for name in found.names) for row in others)
    if found.says == NOT_DECIDED:
        assert len(found.names) > 1
        assert not any(math.isnan(by_name[name]["relative"]) for name in found.names)
