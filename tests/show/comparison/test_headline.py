"""What a comparison says first."""

import re
from collections.abc import Sequence

import pytest

from bench.analyse.comparison.compare import compare
from bench.show.comparison.headline import headline
from bench.show.comparison.report import Report
from tests.analyse.tables import Row, at, baseline, cases, failed, row, table
from tests.examples import case
from tests.show.comparison.example_comparisons import NOISY


def first(base: Sequence[Row], new: Sequence[Row]) -> str:
    """Return the only line that a comparison of two like runs begins with."""
    (line,) = headline(Report(compare(table(*base), table(*new))))
    return line


def test_changed_rows_come_first_by_name() -> None:
    """The worst of each kind with its change; what slows down comes before what speeds up."""
    rows = [case(name) for name in ("one", "two", "three")]
    said = first(
        [at(each, 1.0) for each in rows], [at(each, speed) for each, speed in zip(rows, (0.8, 1.1, 0.9), strict=True)]
    )
    assert said.startswith("2 rows are slower: ")
    assert said.index("one -20.0%") < said.index("three -10.0%") < said.index("two +10.0%")


def test_many_changed_rows_are_not_all_named() -> None:
    """The first line stays a line: three names, then dots."""
    many = cases(40)
    said = first([at(each, 1.0) for each in many], [at(each, 0.8) for each in many])
    assert "40 rows are slower" in said
    assert said.count("-20.0%") == 3


def test_a_new_failure_is_named() -> None:
    """It is no change of a ratio, and still the first thing to know."""
    said = first([at(case("sdpa"), 1.0), at(case("mha"), 1.0)], [at(case("sdpa"), 1.0), failed(case("mha"))])
    assert said.startswith("1 row is newly failing: mha; ")
    assert said.endswith("every other judged row is equivalent, within 2%") or "every judged row" in said


def test_equivalent_rows_are_said_to_be_so() -> None:
    """If everything is decided there is nothing to advise."""
    rows = [baseline(), at(case("sdpa"), 1.0)]
    said = first(rows, rows)
    assert "equivalent, within 2%" in said
    assert "--processes" not in said


def test_open_rows_say_which_changes_they_exclude() -> None:
    """A bound for nine rows in ten, one of which is wild; what changed is said before, and not among these."""
    many = cases(20)
    noisy = [row(each, NOISY) for each in many]
    noisy[3] = row(many[3], (-0.2, 0.0, 0.2))
    said = first(noisy, noisy)
    # sd 3 % on both sides of 3 processes: a standard error of 2.4 %, times t(4) = 2.776
    assert said == "no change above 8% in 19 of 20 rows"
    changed = at(case("mha"), 0.8)
    said = first([*noisy, at(case("mha"), 1.0)], [*noisy, changed])
    assert said == "1 row is slower: mha N=197 -20.0%; no change above 8% in 19 of 20 other rows"


def test_one_process_shows_nothing_and_says_so() -> None:
    """The advice is a number of processes for both runs."""
    single = row(case("sdpa"), [0.0])
    assert re.fullmatch(r"1 process on a side shows no change: measure both runs with --processes \d+", first(
        [single], [single]))  # fmt: skip
    lost = [failed(case("sdpa"))]
    assert first(lost, lost) == "no row was judged"


@pytest.mark.parametrize("scatter", [3.0, 30.0])
def test_rows_that_scatter_wildly_exclude_nothing(scatter: float) -> None:
    """However far the ends of their intervals are apart, no number of forty digits is told."""
    wild = row(case("sdpa"), [0.0, scatter])
    assert first([wild], [wild]) == "1 row: the scatter excludes no change"


def test_runs_that_share_few_cases_begin_with_that() -> None:
    """Two shared cases of six are few, four of six are not."""
    base, new = cases(4), cases(6)[2:]
    few = headline(Report(compare(table(*(at(one, 1.0) for one in base)), table(*(at(one, 1.0) for one in new)))))
    assert len(few) == 2
    assert "share 2 of 6 cases; 2 are in BASE alone and 2 in NEW alone" in few[0]
    most = headline(Report(compare(table(*(at(one, 1.0) for one in base)), table(*(at(one, 1.0) for one in cases(6))))))
    assert len(most) == 1


def test_what_differs_between_the_runs_stands_above_the_counts() -> None:
    """Lines about the two runs come first, word for word."""
    run = table(at(case("sdpa"), 1.0))
    report = Report(compare(run, run), unlike_runs=("one", "two"))
    assert headline(report)[:2] == ["one", "two"]
