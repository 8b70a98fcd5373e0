"""What all outputs of a comparison say of its rows."""

import pytest

from bench.analyse.comparison.compare import compare
from bench.analyse.comparison.verdicts import VERDICTS
from bench.show.comparison import report as compared
from bench.show.comparison.report import STAMP, Report
from bench.show.rows import Row
from tests.analyse.tables import Row as Values
from tests.analyse.tables import at, baseline, cases, failed, row, table
from tests.examples import case
from tests.show.comparison.example_comparisons import NOISY, every_verdict

SDPA = case("sdpa")


def test_rows_stand_worst_first() -> None:
    """From slower down, whatever their order in the files; what was forced says why it is not comparable."""
    assert [one["verdict"] for one in Report(every_verdict()).rows] == list(VERDICTS)
    assert Report(every_verdict()).stamp == ""
    assert Report(every_verdict(), unlike=("a", "b")).stamp == f"{STAMP}: a; b"


def test_verdicts_are_counted_worst_first() -> None:
    """Every verdict under its own name, and none that nobody got."""
    assert compared.counts(Report(every_verdict()).rows) == ", ".join(f"1 {name}" for name in VERDICTS)
    rows = table(*(at(case(name), 1.0) for name in ("one", "two")))
    assert compared.counts(Report(compare(rows, rows)).rows) == "2 equivalent"


@pytest.mark.parametrize("rebased_to", ["", "sdpa"])
def test_the_baseline_is_the_one_asked_for_or_that_of_the_runs(rebased_to: str) -> None:
    """What all ratios refer to, by name; nobody knows that of a table without its baseline."""
    run = table(baseline(), at(SDPA, 1.0))
    assert Report(compare(run, run), rebased_to=rebased_to).baseline == (rebased_to or "eager")
    alone = table(at(SDPA, 1.0))
    assert Report(compare(alone, alone)).baseline == ""


def test_each_implementation_has_a_line_of_its_judged_rows() -> None:
    """Their number, verdicts, middle change and what is excluded; what was not judged has none."""
    run = [row(each, NOISY) for each in cases(3)]
    slow = [at(each, 1.0) for each in cases(4, "mha")]
    new = [*run, *({**one, **at(each, 0.8)} for one, each in zip(slow, cases(4, "mha"), strict=True))]
    report = Report(compare(table(baseline(), failed(case("online")), *run, *slow), table(baseline(), *new)))
    sdpa, mha = compared.implementations(report)
    assert (sdpa.name, sdpa.rows, sdpa.verdicts, sdpa.median, sdpa.excluded) == (
        "sdpa", 3, "3 inconclusive", "+0.0%", "8%")  # fmt: skip
    assert (mha.name, mha.rows, mha.verdicts, mha.median) == ("mha", 4, "4 slower", "-20.0%")
    assert mha.excluded == "26%"  # at 0.8 less 0.2 % it takes 1.253 times as long


def test_the_excluded_change_holds_in_nearly_all_rows() -> None:
    """The rows in which it doesn't are counted; a bound of two processes that differ wildly is none."""
    noisy = [row(each, (-0.2, 0.0, 0.2) if number == 7 else NOISY) for number, each in enumerate(cases(20))]
    (one,) = compared.implementations(Report(compare(table(*noisy), table(*noisy))))
    assert one.excluded == "8% in 19"
    wild = table(row(SDPA, [0.0, 30.0]))
    (one,) = compared.implementations(Report(compare(wild, wild)))
    assert one.excluded == ""


def test_a_failure_is_one_line() -> None:
    """Whatever a foreign program printed."""
    found = only(at(case(), 1.0), failed(case(), "crashed", "Traceback\n  File\r\n\tline 3"))
    assert compared.failure(found) == "crashed: Traceback File line 3"
    assert compared.failure(only(at(case(), 1.0), failed(case(), "oom", ""))) == "oom: no detail"


def test_only_words_that_occur_are_explained() -> None:
    """A comparison in which every row is equivalent doesn't explain what is open."""
    run = table(at(case(), 1.0))
    assert len(compared.explanations(Report(compare(run, run)))) == 3
    words = " ".join(compared.explanations(Report(every_verdict())))
    assert "inconclusive: " in words


def only(base: Values, new: Values) -> Row:
    """Return the only row of a comparison."""
    (found,) = Report(compare(table(base), table(new))).rows
    return found
