"""A comparison in the terminal, as Markdown, CSV and JSON: worst first, and nothing open reads as equal."""

import dataclasses
import io
import json
import math
import re
from collections.abc import Mapping

import pandas as pd
import pytest

from bench.analyse.change import Change
from bench.plan.case import CASE_COLUMNS, Case
from bench.plan.verdicts import VERDICTS
from bench.show.comparison.report import EVENTS, Report, as_csv, as_json, blocks, headline
from bench.show.markdown import markdown
from bench.show.terminal.console import rendered
from bench.stats.estimates import Interval
from bench.stats.limits import Limits
from tests.make.comparisons import NOISY, compare, every_verdict
from tests.make.records import case
from tests.make.rows import Row as Values
from tests.make.rows import at, cases, failed, of_layers, row, table

SDPA, MHA = case("sdpa"), case("mha")
CHOSEN = {**row(SDPA, NOISY), "standing": "named", "slowdown_low": 1.0, "slowdown_high": 1.1}


def alike(*rows: Values) -> tuple[list[Values], list[Values]]:
    """Return the rows of two runs that measured the same."""
    return [*rows], [*rows]


def speeds(of: Mapping[Case, float]) -> tuple[list[Values], list[Values]]:
    """Return the rows of two runs, of which the second has these speed-ups over the first."""
    return [at(each, 1.0) for each in of], [at(each, speed) for each, speed in of.items()]


@pytest.mark.parametrize(
    ("sides", "words"),
    [
        (speeds({case("one"): 0.8, case("two"): 1.1, case("three"): 0.9}),
            "2 rows are slower: one, three; 1 row is faster: two"),
        (speeds(dict.fromkeys(cases(40), 0.8)), "40 rows are slower: sdpa N=1, sdpa N=2, sdpa N=3, …"),
        (([at(SDPA, 1.0), at(MHA, 1.0)], [at(SDPA, 1.0), failed(MHA)]),
            "1 row is newly failing: mha; no change above 1% in 1 of 1 other row"),
        # sd 3 % on both sides of 3 processes: a standard error of 2.4 %, times t(4) = 2.776; one row is wild
        (alike(*(row(each, (-0.2, 0.0, 0.2) if number == 3 else NOISY) for number, each in enumerate(cases(20)))),
            "no change above 8% in 19 of 20 other rows"),
        (alike(row(SDPA, [0.0])), "no row was judged: one process on a side has no interval"),
        (alike(row(SDPA, [0.0, 3.0])), "the scatter excludes no change"),
        (([CHOSEN], [{**CHOSEN, "slowdown_low": 1.05}]),
            "what to use changed at 1 of 1 point: sdpa; no change above 8% in 1 of 1 other row"),
        (alike(CHOSEN), "BASE's choice costs at most 10% in NEW; no change above 8% in 1 of 1 other row"),
    ],
)  # fmt: skip
def test_each_comparison_has_its_headline(sides: tuple[list[Values], list[Values]], words: str) -> None:
    """What to use comes first, then the worst rows by name, then what the others exclude."""
    assert headline(Report(compare(*(table(*side) for side in sides)))) == words


def shown(comparison: list[Change] | Report, width: int = 120) -> str:
    """Return what a console without colours shows."""
    report = comparison if isinstance(comparison, Report) else Report(comparison, shows_all=True)
    return rendered(blocks(report), width=width)


@pytest.mark.parametrize(
    ("base", "new", "cells"),
    [
        # sd 0.1 % on both sides of 3 processes: standard error 0.0816 %, times t(4) = 2.776
        (at(SDPA, 2.0, latency_s=0.0181), at(SDPA, 1.9, latency_s=0.00042), "-5.0% ±0.23% 18.1 ms 420 µs"),
        (row(SDPA, [0.0]), row(SDPA, [0.1]), "+10.5% ±? 20.0 ms 20.0 ms"),
        (row(SDPA, status="ok"), row(SDPA, status="ok"), "no ratio 20.0 ms 20.0 ms"),
        (at(SDPA, 1.0), at(SDPA, 0.9999), "+0.0% ±0.23% 20.0 ms 20.0 ms"),
    ],
    ids=["5 % less speed-up", "one process", "the baseline failed", "rounds to nothing"],
)
def test_a_row_says_change_interval_and_both_raw_times(base: Values, new: Values, cells: str) -> None:
    """An interval that is not known, and a ratio, are neither left out nor 0; -0.0% would read as a loss."""
    (line,) = re.findall("^[a-z ]+ sdpa +(.*)", shown(compare(table(base), table(new))), re.MULTILINE)
    assert " ".join(line.split()) == cells


def test_rows_stand_worst_first_and_are_counted_in_the_last_line() -> None:
    """From slower down, and of one verdict slowest first; without `shows_all` those that changed alone."""
    text = shown(Report(every_verdict(), notes=("a note",), shows_all=True), width=200)
    assert re.findall("^([a-z ]+?) +tokens_", text, re.MULTILINE) == list(VERDICTS)
    assert text.splitlines()[-2:] == ["a note", ", ".join(f"1 {name}" for name in VERDICTS)]
    some = shown(Report(every_verdict()))
    assert [*re.findall("^([a-z ]+?) +tokens_", some, re.MULTILINE)] == [name for name in VERDICTS if name in EVENTS]
    assert "not listed: 6 rows; --all lists them" in some
    speed = {case("a"): 0.9, case("b"): 0.7, case("c"): 0.8}
    changes = compare(*(table(*side) for side in speeds(speed)))
    assert re.findall("^slower +(.)", shown(changes), re.MULTILINE) == ["b", "c", "a"]


def test_a_failure_is_one_line_and_a_forced_comparison_says_so_first() -> None:
    """Whatever a foreign program printed; in a comment it formats nothing."""
    changes = compare(table(at(SDPA, 1.0)), table(failed(SDPA, "crashed", "`@you`\n  File\r\n\tline 3")))
    report = Report(changes, unlike=("cores: 2 against 8",))
    lines = shown(report).splitlines()
    assert lines[0] == "NOT COMPARABLE: cores: 2 against 8"
    assert "sdpa: crashed: `@you` File line 3" in lines
    assert "- sdpa: `crashed: '@you' File line 3`" in markdown(blocks(report))


@pytest.mark.parametrize("width", [80, 60])
def test_no_line_is_wider_than_the_console(width: int) -> None:
    """Rows fold rather than run over, and no verdict is cut."""
    long = case("a_package.of_somebody.kernels:the_function_that_adapts", token_len=49, channels=64, num_heads=4)
    base = table(at(long, 1.0), at(case("sdpa", batch=13), 1.0))
    text = shown(compare(base, table(at(long, 0.9), failed(case("sdpa", batch=13)))), width=width)
    assert max(map(len, text.splitlines())) <= width
    assert re.search("^newly failing ", text, re.MULTILINE)


def test_csv_and_json_hold_every_row_in_full() -> None:
    """Worst first, with case and verdict; what doesn't apply, or is infinite, is null in JSON and empty in CSV."""
    wild = table(row(SDPA, [0.0, 1.0]))
    endless = [dataclasses.replace(*compare(wild, wild), ratio=Interval(1.0, 0.0, math.inf))]
    for changes in (every_verdict(), endless):
        report = Report(changes, Limits(margin=0.03), notes=("a note",))
        content, cells = json.loads(as_json(report)), pd.read_csv(io.StringIO(as_csv(report)))
        assert {*CASE_COLUMNS, "change", "p_holm", "base_latency_s"} <= set(cells.columns)
        for place, one in enumerate(content["rows"]):
            for name, value in one.items():
                cell = cells[name][place]
                assert (
                    pd.isna(cell) if value is None else str(cell) == str(value) or float(cell) == pytest.approx(value)
                )
        assert (content["margin"], content["notes"]) == (0.03, ["a note"])
    run = table(*(at(one, 1.0) for one in of_layers()))
    rows = json.loads(as_json(Report(compare(run, run))))["rows"]
    assert [{name: one[name] for name in CASE_COLUMNS} for one in rows] == [one.columns() for one in of_layers()]
