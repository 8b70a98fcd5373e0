"""What all outputs of a comparison say of its rows."""

import math
from collections.abc import Mapping, Sequence

import pytest

from bench.plan.case import Case
from bench.show.comparison import report as compared
from bench.show.comparison.report import Report, headline
from tests.make.comparisons import NOISY, compare, every_verdict
from tests.make.records import case
from tests.make.rows import Row as Values
from tests.make.rows import at, baseline, cases, failed, row, table

SDPA = case("sdpa")


def test_the_baseline_is_the_one_asked_for_or_that_of_the_runs() -> None:
    """What all ratios refer to, by name; nobody knows that of a table without its baseline."""
    run, alone = table(baseline(), at(SDPA, 1.0)), table(at(SDPA, 1.0))
    named, asked, unknown = (
        Report(compare(run, run)),
        Report(compare(run, run), rebased_to="sdpa"),
        compare(alone, alone),
    )
    assert (named.baseline, asked.baseline, Report(unknown).baseline) == ("eager", "sdpa", "")


def test_each_implementation_has_a_line_of_its_judged_rows() -> None:
    """The line has their number, verdicts, middle change and what is excluded; what was not judged has none."""
    run = [row(each, NOISY) for each in cases(3)]
    slow = [at(each, 1.0) for each in cases(4, "mha")]
    new = [*run, *({**one, **at(each, 0.8)} for one, each in zip(slow, cases(4, "mha"), strict=True))]
    report = Report(compare(table(baseline(), failed(case("online")), *run, *slow), table(baseline(), *new)))
    sdpa, mha = compared.implementations(report)
    assert sdpa == ("sdpa", "3", "+0.0%", "8%", "3 open")
    assert mha == ("mha", "4", "-20.0%", "26%", "4 slower")  # at 0.8 less 0.2 % it takes 1.253 times as long


def test_the_excluded_change_holds_in_nearly_all_rows() -> None:
    """The rows in which it doesn't are counted; a bound of two processes that differ wildly is none."""
    noisy = [row(each, (-0.2, 0.0, 0.2) if number == 7 else NOISY) for number, each in enumerate(cases(20))]
    (one,) = compared.implementations(Report(compare(table(*noisy), table(*noisy))))
    assert one[3] == "8% in 19"
    wild = table(row(SDPA, [0.0, 10.0]))
    (one,) = compared.implementations(Report(compare(wild, wild)))
    assert one[3] == ""


def test_a_failure_is_one_line() -> None:
    """Whatever a foreign program printed."""
    lost = [failed(case(), "crashed", "Traceback\n  File\r\n\tline 3"), failed(case(), "oom", "")]
    reports = [Report(compare(table(at(case(), 1.0)), table(new))) for new in lost]
    lines = [compared.failure(row) for report in reports for row in report.rows]
    assert lines == ["crashed: Traceback File line 3", "oom: no detail"]


def test_only_words_that_occur_are_explained() -> None:
    """A comparison in which every row is equivalent doesn't explain what is open."""
    run = table(at(case(), 1.0))
    assert len(compared.explanations(Report(compare(run, run)))) == 3
    assert "open: " in " ".join(compared.explanations(Report(every_verdict())))


# The headline


def of_race(name: str, processes: int, speedup: float, scatter: Sequence[float] = NOISY, **columns: object) -> Values:
    """Return a row that so many processes measured."""
    logs = [math.log(speedup) + step for step in scatter]
    return {**row(case(name), logs), "processes": processes, "slowdown_low": 1.0, "slowdown_high": 1.1, **columns}


def alike(*rows: Values) -> tuple[list[Values], list[Values]]:
    """Return the rows of two runs that measured the same."""
    return [*rows], [*rows]


def speeds(of: Mapping[Case, float]) -> tuple[list[Values], list[Values]]:
    """Return the rows of two runs, of which the second has these speed-ups over the first."""
    return [at(each, 1.0) for each in of], [at(each, speed) for each, speed in of.items()]


MHA, MANY = case("mha"), cases(20)
ROWS = [row(each, (-0.2, 0.0, 0.2) if number == 3 else NOISY) for number, each in enumerate(MANY)]
VAGUE = [of_race(name, 2, 1.0, (-0.5, 0.0, 0.5)) for name in ("mha", "online", "manual")]
WELL = [of_race(name, 3, 1.0, (-0.01, 0.0, 0.01)) for name in ("sdpa", "flex")]
CHOSEN = [of_race("sdpa", 3, 1.2, standing="named"), of_race("mha", 3, 1.1, standing="slower")]
NOW = [
    of_race("sdpa", 3, 1.0, standing="slower", slowdown_low=1.05),
    of_race("mha", 3, 1.1, standing="named", slowdown_high=1.01),
]
OTHER = [{**each, "standing": standing} for each, standing in zip(CHOSEN, ("open", "named"), strict=True)]

HEADLINES: list[tuple[tuple[list[Values], list[Values]], str]] = [
    (speeds({case("one"): 0.8, case("two"): 1.1, case("three"): 0.9}),
        "2 rows are slower: one -20.0%, three -10.0%; 1 row is faster: two +10.0%"),
    (speeds(dict.fromkeys(cases(40), 0.8)),
        "40 rows are slower: sdpa N=1 -20.0%, sdpa N=2 -20.0%, sdpa N=3 -20.0%, …"),
    (([at(SDPA, 1.0), at(MHA, 1.0)], [at(SDPA, 1.0), failed(MHA)]),
        "1 row is newly failing: mha; every judged row is equivalent, within 2%"),
    # sd 3 % on both sides of 3 processes: a standard error of 2.4 %, times t(4) = 2.776; one row is wild
    (alike(*ROWS), "no change above 8% in 19 of 20 rows"),
    (([*ROWS, at(MHA, 1.0)], [*ROWS, at(MHA, 0.8)]),
        "1 row is slower: mha N=197 -20.0%; no change above 8% in 19 of 20 other rows"),
    (alike(row(SDPA, [0.0])), "1 process on a side shows no change: measure both runs with --processes 10"),
    (alike(failed(SDPA)), "no row was judged"),
    (alike(row(SDPA, [0.0, 3.0])), "1 row: the scatter excludes no change"),
    (alike(row(SDPA, [0.0, 10.0])), "1 row: the scatter excludes no change"),
    (alike(*VAGUE, *WELL), "no change above 3% in 2 of 2 rows that both runs measured in 3 processes or more; "
        "3 other rows were measured in fewer"),
    (alike(*VAGUE[:1], *WELL), "no change above 3% in 2 of 2 rows that both runs measured in 3 processes or more; "
        "1 other row was measured in fewer"),
    ((CHOSEN, NOW), "what to use changed at 1 of 1 point: sdpa → mha; 1 row is slower: sdpa -16.7%; "
        "no change above 8% in 1 of 1 other row"),
    (alike(*CHOSEN), "what to use is the same: at 1 point BASE's choice costs at most 10% in NEW; "
        "no change above 8% in 2 of 2 rows"),
    ((CHOSEN, OTHER), "NEW names another one at 1 of 1 point: sdpa → mha; BASE's choice costs at most 10% in NEW; "
        "no change above 8% in 2 of 2 rows"),
    ((CHOSEN, [{**each, "slowdown_high": None} for each in OTHER]), "NEW names another one at 1 of 1 point: "
        "sdpa → mha; BASE's choice has no bound of its cost in NEW; no change above 8% in 2 of 2 rows"),
]  # fmt: skip


@pytest.mark.parametrize(("sides", "line"), HEADLINES, ids=lambda each: each if isinstance(each, str) else "")
def test_each_comparison_has_its_headline(sides: tuple[list[Values], list[Values]], line: str) -> None:
    """What to use comes first, then the worst rows by name, then what the others exclude, or why they exclude nothing.

    The bound is that of nine rows in ten, of rows that both runs measured well, however vague the others are.
    """
    base, new = sides
    assert headline(Report(compare(table(*base), table(*new)))) == [line]


def test_what_differs_between_the_runs_stands_first() -> None:
    """Two shared cases of six are few, four of six are not; lines about the two runs come word for word."""
    base, few, most = (table(*(at(one, 1.0) for one in own)) for own in (cases(4), cases(6)[2:], cases(6)))
    first_line, _ = headline(Report(compare(base, few)))
    assert "share 2 of 6 cases; 2 are in BASE alone and 2 in NEW alone" in first_line
    assert len(headline(Report(compare(base, most)))) == 1
    assert headline(Report(compare(base, base), unlike_runs=("one", "two")))[:2] == ["one", "two"]
