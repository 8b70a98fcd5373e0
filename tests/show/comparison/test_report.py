"""The output of a comparison of two runs: headline, notes, terminal, Markdown, CSV and JSON."""

import dataclasses
import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from bench.analyse.change import Change
from bench.analyse.comparison import compared
from bench.plan.case import CASE_COLUMNS, Case
from bench.plan.sweep import Effort
from bench.plan.verdicts import EVENTS, VERDICTS
from bench.show.comparison.report import as_csv, as_json, blocks, headline, notes
from bench.show.markdown import markdown
from bench.show.terminal.console import rendered
from bench.stats.estimates import Interval
from tests.make.comparisons import NOISY, every_verdict
from tests.make.records import case
from tests.make.rows import Row, at, baseline, cases, failed, row, table

SDPA, MHA = case("sdpa"), case("mha")
CHOSEN = {**row(SDPA, NOISY), "standing": "named", "slowdown_low": 1.0, "slowdown_high": 1.1}


def alike(*rows: Row) -> tuple[list[Row], list[Row]]:
    """Return the rows of two runs with the same results."""
    return [*rows], [*rows]


def speeds(of: Mapping[Case, float]) -> tuple[list[Row], list[Row]]:
    """Return the rows of two runs; the second has these speed-ups over the first."""
    return [at(each, 1.0) for each in of], [at(each, speed) for each, speed in of.items()]


# sd 3 % on both sides of 3 processes: a standard error of 2.4 %, times t(4) = 4.604, or 10.31 for 20 rows at once
@pytest.mark.parametrize(
    ("sides", "words"),
    [
        (speeds({case("one"): 0.8, case("two"): 1.1, case("three"): 0.9}),
            "2 rows are slower: one, three; 1 row is faster: two"),
        (speeds(dict.fromkeys(cases(40), 0.8)), "40 rows are slower: sdpa N=1, sdpa N=2, sdpa N=3, …"),
        (([at(SDPA, 1.0), at(MHA, 1.0)], [at(SDPA, 1.0), failed(MHA)]),
            "1 row is newly failing: mha; no change above 1% in 1 of 1 row"),
        (alike(*(row(each, (-0.2, 0.0, 0.2) if number == 3 else NOISY) for number, each in enumerate(cases(20)))),
            "No change above 29% in 19 of 20 rows"),
        (alike(row(SDPA, [0.0])), "No row was judged, because one process gives no interval"),
        (alike(at(SDPA, 6.6, flagged_share=0.6)), "No row was judged, because other processes disturbed them"),
        (alike(row(SDPA, [0.0, 3.0])), "The intervals exclude no change"),
        (([CHOSEN], [{**CHOSEN, "slowdown_low": 1.05}]),
            "What to use changed at 1 of 1 point: sdpa; no change above 12% in 1 of 1 row"),
    ],
)  # fmt: skip
def test_each_comparison_has_its_headline(sides: tuple[list[Row], list[Row]], words: str) -> None:
    """Recommendations come first, then the worst rows by name, then the bound on the others."""
    assert headline(compared(*(table(*side) for side in sides))) == words


def shown(changes: Sequence[Change], *remarks: str, shows_all: bool = True) -> str:
    """Return the output of a console without colours."""
    return rendered(blocks(changes, (), remarks, shows_all=shows_all), width=200)


@pytest.mark.parametrize(
    ("base", "new", "cells"),
    [
        # sd 0.1 % on both sides of 3 processes: standard error 0.0816 %, times t(4) = 4.604
        (at(SDPA, 2.0, latency_s=0.0181), at(SDPA, 1.9, latency_s=0.00042), "-5.0% ±0.38% 18.1 ms 420 µs"),
        (row(SDPA, [0.0]), row(SDPA, [0.1]), "+10.5% ±? 20.0 ms 20.0 ms"),
        (row(SDPA, status="ok"), row(SDPA, status="ok"), "no ratio 20.0 ms 20.0 ms"),
        (at(SDPA, 1.0), at(SDPA, 0.9999), "+0.0% ±0.38% 20.0 ms 20.0 ms"),
    ],
    ids=["5 % less speed-up", "one process", "the baseline failed", "rounds to nothing"],
)
def test_a_row_says_change_interval_and_both_raw_times(base: Row, new: Row, cells: str) -> None:
    """An interval that is not known, and a ratio, are neither left out nor 0; -0.0% would read as a loss."""
    (line,) = re.findall("^[a-z ]+ sdpa +(.*)", shown(compared(table(base), table(new))), re.MULTILINE)
    assert " ".join(line.split()) == cells


def test_what_changed_is_listed_and_everything_is_counted() -> None:
    """Rows are in the order of the changes; without `shows_all` only those that a user should see."""
    text, some = (shown(every_verdict(), "a note", shows_all=all_rows) for all_rows in (True, False))
    assert re.findall("^([a-z ]+?) +tokens_", text, re.MULTILINE) == [*VERDICTS]
    assert text.splitlines()[-2:] == ["a note", ", ".join(f"1 {name}" for name in VERDICTS)]
    assert re.findall("^([a-z ]+?) +tokens_", some, re.MULTILINE) == [name for name in VERDICTS if name in EVENTS]
    assert some.splitlines()[-1].endswith("; --all lists 6 more rows")


def test_a_failure_is_one_line_and_a_forced_comparison_says_so_first() -> None:
    """Whatever a foreign program printed; in a comment it formats nothing."""
    changes = compared(table(at(SDPA, 1.0)), table(failed(SDPA, "crashed", "`@you`\n  File\r\n\tline 3")))
    forced = blocks(changes, ["cores: 2 against 8"], ())
    lines = rendered(forced, width=100).splitlines()
    assert lines[0] == "NOT COMPARABLE: cores: 2 against 8"
    assert "sdpa: crashed: `@you` File line 3" in lines
    assert "- sdpa: `crashed: '@you' File line 3`" in markdown(forced)


def test_csv_and_json_hold_every_row_in_full() -> None:
    """With case and verdict; what doesn't apply, or is infinite, is null in JSON and empty in CSV."""
    wild = table(row(SDPA, [0.0, 1.0]))
    endless = [dataclasses.replace(*compared(wild, wild), ratio=Interval(1.0, 0.0, math.inf))]
    for changes in (every_verdict(), endless):
        content = json.loads(as_json(changes, (), ["a note"], 0.03))
        cells = pd.read_csv(io.StringIO(as_csv(changes)))
        assert {*CASE_COLUMNS, "verdict", "change", "base_latency_s"} <= {*cells.columns}
        assert (content["margin"], content["notes"], content["headline"]) == (0.03, ["a note"], headline(changes))
        assert [one["verdict"] for one in content["rows"]] == [of.verdict for of in changes]
        for place, one in enumerate(content["rows"]):
            for name, value in one.items():
                cell = cells[name][place]
                is_same = pd.isna(cell) if value is None else str(cell) == str(value)
                assert is_same or float(cell) == pytest.approx(value)


# notes

TABLE = table(baseline(), at(case("sdpa"), 1.0))
PROCESSES = (row(case("sdpa"), [0.0, 0.1], commit="abc"), row(case("eager"), [0.0] * 3, commit="abc+"))
ASKED = (Effort(processes=3, budget_s=4, timeout_s=300), Effort(processes=10, budget_s=4, timeout_s=300))


def run(of: pd.DataFrame = TABLE, effort: Effort | None = None) -> Any:
    """Return a saved run with these facts."""
    return SimpleNamespace(table=of, effort=effort)


@pytest.mark.parametrize(
    ("sides", "words"),
    [
        ([run(table(*PROCESSES)), run(table(failed(case("sdpa"))))],
            "commit abc, abc+ in 2 to 3 processes; NEW is commit unknown"),
        ([run(effort=each) for each in ASKED], "different settings: processes 3 against 10"),
        ([run(), run(TABLE.assign(latency_s=1.5 * TABLE["latency_s"]))], "1.50 times as long in NEW; the machine ran"),
        ([run(), run()], "the median row takes 1.00 times as long"),
        ([run(), run(TABLE.assign(flagged_share=0.7, speedup=6.6))], "1 row left open, because other processes"),
    ],
)  # fmt: skip
def test_each_note_is_said_where_it_is_true(sides: list[Any], words: str) -> None:
    """Beside it, two runs have a note on their origins, and one on raw times."""
    base, new = sides
    told = [*notes(base, new, compared(base.table, new.table))]
    assert any(words in note for note in told)
    assert len(told) <= 3
