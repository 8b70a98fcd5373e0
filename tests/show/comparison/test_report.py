"""What all outputs of a comparison say of its rows."""

import re

import pytest

from bench.analyse.comparison.compare import compare
from bench.analyse.comparison.verdicts import VERDICTS
from bench.show.comparison import report as compared
from bench.show.comparison.report import STAMP, Report
from bench.show.rows import Row
from bench.stats.sample_size import MOST_PROCESSES
from tests.analyse.tables import Row as Values
from tests.analyse.tables import at, baseline, failed, row, table
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


@pytest.mark.parametrize(
    ("base", "new", "words"),
    [
        (row(SDPA, NOISY), row(SDPA, NOISY), r"\+\d+ → equivalent"),
        (row(SDPA, NOISY), {**row(SDPA, NOISY), "speedup": 0.97}, r"\+\d+ → slower"),
        (row(SDPA, [0.0]), row(SDPA, [0.1]), r"\?"),
        (row(SDPA, [-2.0, 0.0, 2.0]), {**row(SDPA, [-2.0, 0.0, 2.0]), "speedup": 1.015}, f">{MOST_PROCESSES}"),
        (row(SDPA, status="ok"), row(SDPA, status="ok"), ""),
        (at(case(), 1.0), at(case(), 0.8), ""),
        (at(case(), 1.0), at(case(), 1.0), ""),
        (failed(SDPA), failed(SDPA), ""),
    ],
)
def test_what_would_decide_a_row_is_said_where_it_is_open(base: Values, new: Values, words: str) -> None:
    """A number of processes with the verdict, or honestly none."""
    found = only(base, new)
    assert re.fullmatch(words, compared.more_and_how(found))
    assert compared.more_and_how(found).partition(" → ")[0] == compared.more(found)


def test_a_failure_is_one_line() -> None:
    """Whatever a foreign program printed."""
    found = only(at(case(), 1.0), failed(case(), "crashed", "Traceback\n  File\r\n\tline 3"))
    assert compared.failure(found) == "crashed: Traceback File line 3"
    assert compared.failure(only(at(case(), 1.0), failed(case(), "oom", ""))) == "oom: no detail"


def test_only_words_that_occur_are_explained() -> None:
    """A comparison in which all is decided explains no further processes."""
    run = table(at(case(), 1.0))
    assert len(compared.explanations(Report(compare(run, run)))) == 3
    words = " ".join(compared.explanations(Report(every_verdict())))
    assert "inconclusive: " in words
    assert "more: " in words
    assert "?: " not in words


def only(base: Values, new: Values) -> Row:
    """Return the only row of a comparison."""
    (found,) = Report(compare(table(base), table(new))).rows
    return found
