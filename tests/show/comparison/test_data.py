"""A comparison for programs: every row, every number in full, nothing that needs a comment."""

import io
import json
import math

import pandas as pd
import pytest

from bench.analyse.comparison import VERDICTS, compare
from bench.plan.case import CASE_COLUMNS
from bench.show.comparison.data import as_csv, as_json
from bench.show.comparison.report import STAMP, Report
from bench.stats.limits import Limits
from tests.analyse.tables import at, baseline, failed, of_layers, row, table
from tests.examples import case
from tests.show.comparison.example_comparisons import every_verdict

UNLIKE = ("cpu: 'A, B' against 'C \"D\"'", "cores: 2 against 8")


def test_csv_holds_every_row_worst_first() -> None:
    """With its case, its verdict, and what it refers to."""
    found = read(as_csv(Report(every_verdict())))
    assert found["verdict"].tolist() == list(VERDICTS)
    assert set(found["baseline"]) == {"tokens_baseline"}
    assert found["stamp"].isna().all()
    assert {*CASE_COLUMNS, "change", "p_holm", "base_latency_s"} <= set(found.columns)


def test_json_holds_the_same_rows() -> None:
    """Number by number, in full; what doesn't apply is null there and empty here."""
    report = Report(every_verdict())
    rows, cells = json.loads(as_json(report))["rows"], read(as_csv(report))
    assert [list(one) for one in rows] == [cells.columns.tolist()] * len(cells)
    for place, one in enumerate(rows):
        for name, value in one.items():
            cell = cells[name][place]
            assert pd.isna(cell) if value is None else str(cell) == str(value) or float(cell) == pytest.approx(value)
    third = Report(compare(table(at(case("sdpa"), 3.0)), table(at(case("sdpa"), 1.0))))
    assert json.loads(as_json(third))["rows"][0]["change"] == third.comparison["change"][0]
    assert float(read(as_csv(third))["change"][0]) == third.comparison["change"][0]


def test_json_says_limits_counts_and_notes() -> None:
    """What a program needs to know of the whole."""
    report = Report(every_verdict(), Limits(margin=0.03), rebased_to="sdpa", notes=("a note",))
    found = json.loads(as_json(report))
    assert (found["margin"], found["equivalence"], found["level"]) == (0.03, 0.03, 0.01)
    assert (found["baseline"], found["rebased"], found["notes"]) == ("sdpa", True, ["a note"])
    assert found["counts"] == dict.fromkeys(VERDICTS, 1)
    assert found["stamp"] is None


def test_every_line_of_forced_data_is_stamped() -> None:
    """Each row is a line, and says why it is not comparable, whatever a foreign program printed into it."""
    new = table(baseline(), failed(case("sdpa"), "crashed", "one\ntwo\r\n\u2028three"))
    report = Report(compare(table(baseline(), at(case("sdpa"), 1.0)), new), unlike=UNLIKE)
    titles, *rows = as_csv(report).splitlines()
    assert titles.startswith("stamp,")
    assert len(rows) == 2
    assert all(STAMP in line for line in rows)
    assert as_json(report).count("\n") == 1
    assert {one["stamp"] for one in json.loads(as_json(report))["rows"]} == {f"{STAMP}: {'; '.join(UNLIKE)}"}
    assert set(read(as_csv(report))["stamp"]) == {f"{STAMP}: {'; '.join(UNLIKE)}"}


def test_an_endless_interval_is_null() -> None:
    """JSON has no infinity."""
    wild = table(row(case("sdpa"), [0.0, 1.0]))
    report = Report(compare(wild, wild).assign(change_low=0.0, change_high=math.inf))
    (found,) = json.loads(as_json(report))["rows"]
    assert found["change_high"] is None
    assert found["change_low"] == 0
    assert "excludes no change" in json.loads(as_json(report))["summary"][0]


def test_optional_columns_of_the_case_are_there() -> None:
    """Cases of all layers come out as they went in."""
    run = table(*(at(one, 1.0) for one in of_layers()))
    rows = json.loads(as_json(Report(compare(run, run))))["rows"]
    assert [{name: one[name] for name in CASE_COLUMNS} for one in rows] == [one.columns() for one in of_layers()]


def read(text: str) -> pd.DataFrame:
    """Return what a program reads that knows nothing of us."""
    return pd.read_csv(io.StringIO(text))
