"""What a comparison says first."""

from collections.abc import Sequence

import pytest

from bench.analyse.comparison.compare import compare
from bench.show.comparison.headline import headline
from bench.show.comparison.report import Report
from tests.analyse.tables import Row, at, baseline, cases, failed, row, table
from tests.examples import case
from tests.show.comparison.example_comparisons import NOISY

RESOLUTION = "processes on each side"


def first(base: Sequence[Row], new: Sequence[Row]) -> str:
    """Return the only line that a comparison of two like runs begins with."""
    (line,) = headline(Report(compare(table(*base), table(*new))))
    return line


def test_counts_come_first_and_changed_rows_by_name() -> None:
    """The worst of each kind with its change; what slows down comes before what speeds up."""
    rows = [case(name) for name in ("one", "two", "three")]
    said = first(
        [at(each, 1.0) for each in rows], [at(each, speed) for each, speed in zip(rows, (0.8, 1.1, 0.9), strict=True)]
    )
    assert said.startswith("2 slower, 1 faster: ")
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
    assert said.startswith("1 newly failing, 1 equivalent: ")
    assert "mha" in said


def test_equivalent_rows_are_said_to_be_so() -> None:
    """If everything is decided there is nothing to advise."""
    rows = [baseline(), at(case("sdpa"), 1.0)]
    said = first(rows, rows)
    assert "equivalent, within 2%" in said
    assert "--processes" not in said


@pytest.mark.parametrize(("processes", "advised"), [(1, 10), (2, 10), (3, 10), (9, 10), (10, 20), (12, 24)])
def test_open_rows_say_what_can_be_shown_and_what_would_show_more(processes: int, advised: int) -> None:
    """The advice is more processes than there were, which show smaller changes; one alone shows none."""
    noisy = {**row(case("sdpa"), NOISY if processes > 1 else [0.0]), "processes": processes}
    line = first([noisy], [noisy])
    assert "1 of 1 judged rows is inconclusive" in line or processes == 1
    assert (f"{processes} {RESOLUTION}" in line) is (processes > 1)
    assert line.endswith(f"--processes {advised}")


def test_wild_rows_are_advised_to_quiet_the_machine_too() -> None:
    """If ten processes would still miss a tenth, more of them is not the first thing to do."""
    wild, tame = row(case("sdpa"), (-0.2, 0.0, 0.2)), row(case("sdpa"), NOISY)
    assert "quiet the machine" in first([wild], [wild])
    assert "quiet the machine" not in first([tame], [tame])


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
