"""What all outputs of a comparison say of its rows."""

import math
import re
from collections.abc import Sequence

from bench.analyse.comparison import compare
from bench.show.comparison import report as compared
from bench.show.comparison.report import Report, headline
from tests.analyse.tables import Row as Values
from tests.analyse.tables import at, baseline, cases, failed, row, table
from tests.examples import case
from tests.show.comparison.example_comparisons import NOISY, every_verdict

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
    assert (sdpa.name, sdpa.rows, sdpa.verdicts, sdpa.median, sdpa.excluded) == (
        "sdpa", 3, "3 inconclusive", "+0.0%", "8%")  # fmt: skip
    assert (mha.name, mha.rows, mha.verdicts, mha.median) == ("mha", 4, "4 slower", "-20.0%")
    assert mha.excluded == "26%"  # at 0.8 less 0.2 % it takes 1.253 times as long


def test_the_excluded_change_holds_in_nearly_all_rows() -> None:
    """The rows in which it doesn't are counted; a bound of two processes that differ wildly is none."""
    noisy = [row(each, (-0.2, 0.0, 0.2) if number == 7 else NOISY) for number, each in enumerate(cases(20))]
    (one,) = compared.implementations(Report(compare(table(*noisy), table(*noisy))))
    assert one.excluded == "8% in 19"
    wild = table(row(SDPA, [0.0, 10.0]))
    (one,) = compared.implementations(Report(compare(wild, wild)))
    assert one.excluded == ""


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
    assert "inconclusive: " in " ".join(compared.explanations(Report(every_verdict())))


# The headline


def first(base: Sequence[Values], new: Sequence[Values]) -> str:
    """Return the only line that a comparison of two like runs begins with."""
    (line,) = headline(Report(compare(table(*base), table(*new))))
    return line


def test_changed_rows_come_first_by_name() -> None:
    """The worst of each kind with its change, slower before faster; of many three are named. So is a new failure."""
    rows = [case(name) for name in ("one", "two", "three")]
    said = first(
        [at(each, 1.0) for each in rows], [at(each, speed) for each, speed in zip(rows, (0.8, 1.1, 0.9), strict=True)]
    )
    assert said.startswith("2 rows are slower: ")
    assert said.index("one -20.0%") < said.index("three -10.0%") < said.index("two +10.0%")
    many = cases(40)
    said = first([at(each, 1.0) for each in many], [at(each, 0.8) for each in many])
    assert "40 rows are slower" in said
    assert said.count("-20.0%") == 3
    said = first([at(case("sdpa"), 1.0), at(case("mha"), 1.0)], [at(case("sdpa"), 1.0), failed(case("mha"))])
    assert said.startswith("1 row is newly failing: mha; ")
    assert said.endswith("every judged row is equivalent, within 2%")
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


def test_one_process_or_a_wild_scatter_shows_nothing() -> None:
    """The advice is a number of processes; however wide an interval is, no number of forty digits is said."""
    single = row(case("sdpa"), [0.0])
    assert re.fullmatch(r"1 process on a side shows no change: measure both runs with --processes \d+", first(
        [single], [single]))  # fmt: skip
    lost = [failed(case("sdpa"))]
    assert first(lost, lost) == "no row was judged"
    for scatter in (3.0, 10.0):
        wild = row(case("sdpa"), [0.0, scatter])
        assert first([wild], [wild]) == "1 row: the scatter excludes no change"


def of_race(name: str, processes: int, speedup: float, scatter: Sequence[float] = NOISY, **columns: object) -> Values:
    """Return a row that so many processes measured."""
    logs = [math.log(speedup) + step for step in scatter]
    return {**row(case(name), logs), "processes": processes, "slowdown_low": 1.0, "slowdown_high": 1.1, **columns}


def test_rows_that_few_processes_measured_are_counted_by_themselves() -> None:
    """The bound is that of the two rows that both runs measured well, however vague the other three are."""
    vague = [of_race(name, 2, 1.0, (-0.5, 0.0, 0.5)) for name in ("mha", "online", "manual")]
    well = [of_race(name, 3, 1.0, (-0.01, 0.0, 0.01)) for name in ("sdpa", "flex")]
    said = first([*vague, *well], [*vague, *well])
    bound = re.search(
        r"no change above (\d+)% in 2 of 2 rows that both runs measured in 3 processes or more; 3 other", said
    )
    assert bound
    assert int(bound[1]) < 5


def test_a_change_in_what_to_use_comes_first() -> None:
    """BASE's choice is shown to cost more than 2 % in NEW; else the sentence has the most that it can cost."""
    before = [of_race("sdpa", 3, 1.2, standing="named"), of_race("mha", 3, 1.1, standing="slower")]
    after = [
        of_race("sdpa", 3, 1.0, standing="slower", slowdown_low=1.05),
        of_race("mha", 3, 1.1, standing="named", slowdown_high=1.01),
    ]
    said = first(before, after)
    assert said.startswith("what to use changed at 1 of 1 point: sdpa → mha; ")
    assert "what to use is the same: at 1 point BASE's choice costs at most 10% in NEW" in first(before, before)


def test_what_differs_between_the_runs_stands_first() -> None:
    """Two shared cases of six are few, four of six are not; lines about the two runs come word for word."""
    base, few, most = (table(*(at(one, 1.0) for one in own)) for own in (cases(4), cases(6)[2:], cases(6)))
    first_line, _ = headline(Report(compare(base, few)))
    assert "share 2 of 6 cases; 2 are in BASE alone and 2 in NEW alone" in first_line
    assert len(headline(Report(compare(base, most)))) == 1
    assert headline(Report(compare(base, base), unlike_runs=("one", "two")))[:2] == ["one", "two"]
