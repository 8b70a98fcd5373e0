"""The command that prints the table of a run."""

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from markdown_it import MarkdownIt

from bench.plan.case import Case
from bench.store import table
from bench.store.table import FILE
from tests.make import runs
from tests.make.points import vit_s
from tests.make.results import results

Printed = Callable[..., str]

AT = [vit_s(num_tokens=number) for number in (50, 197, 577)]

HOSTILE = (
    "<script>alert(1)</script>",
    "a | b [c](http://d) @user",
    "`code` ![](e)",
    "[/red] x[0]",
    "\x1b[31m\x9b2J\u202ered",
    "two\nlines",
)
"""What other programs may have said."""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return a run folder."""
    return runs.of(tmp_path / "run", [Case(at, name) for at in AT for name in ("eager", "sdpa")])


def test_the_default_fits_in_100_columns(run: Path, printed: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    """With all implementations of each point below what to use there."""
    monkeypatch.setenv("COLUMNS", "100")
    lines = printed("show", run).splitlines()
    assert max(map(len, lines)) <= 100
    assert [line.split(":")[0] for line in lines if line.startswith("N=")] == ["N=50", "N=197", "N=577"]
    assert not any(line.endswith(" ") for line in lines)


def test_a_csv_of_some_rows_is_a_results_file(run: Path, printed: Printed, tmp_path: Path) -> None:
    """It has all columns of results.csv, with the same numbers."""
    some = tmp_path / "some.csv"
    some.write_text(printed("show", run, "--where", "num_tokens in [50, 577]", "--format", "csv"), newline="")
    whole = table.load(run)
    pd.testing.assert_frame_equal(table.load(some), whole[whole["num_tokens"] != 197].reset_index(drop=True))
    assert next(csv.reader(io.StringIO(some.read_text()))) == [*FILE]


def test_columns_are_those_that_were_asked_for(run: Path, printed: Printed) -> None:
    """Of each format, beside the implementation; numbers of CSV and JSON are not rounded."""
    asked = ("show", run, "--columns", "speedup,num_tokens,settled", "--top", "1", "--format")
    assert "num_tokens" in printed(*asked, "text")
    assert "| use | implementation | vs eager | num_tokens |" in printed(*asked, "markdown")
    from_csv = pd.read_csv(io.StringIO(printed(*asked, "csv")))
    rows = json.loads(printed(*asked, "json"))
    assert [*from_csv] == [*rows[0]] == ["point", "implementation", "speedup", "num_tokens", "settled"]
    assert from_csv["speedup"].tolist() == pytest.approx([row["speedup"] for row in rows], rel=1e-12)
    assert rows[0]["speedup"] in table.load(run)["speedup"].tolist()


@pytest.mark.parametrize("said", HOSTILE)
def test_what_other_programs_said_formats_nothing(said: str, printed: Printed, tmp_path: Path) -> None:
    """No text commands a terminal or adds a row, and CSV and JSON have it as results.csv does."""
    lost = Case(AT[0], "sdpa")
    (tmp_path / "alone.csv").write_bytes(table.as_csv(results([Case(AT[0], "eager"), lost], {lost: ("error", said)})))
    texts = {
        form: printed("show", tmp_path / "alone.csv", "--format", form) for form in ("text", "markdown", "csv", "json")
    }
    for text in texts.values():
        assert not {*text} & {*"\x1b\x9b\u202e"}
    html = MarkdownIt("commonmark").enable("table").render(texts["markdown"])
    assert {*re.findall(r"<(\w+)", html)} <= {"p", "strong", "table", "thead", "tbody", "tr", "th", "td", "code"}
    assert "@user" not in re.sub(r"<code>.*?</code>", "", html)
    shown = table.visible(table.load(tmp_path / "alone.csv"))["detail"].tolist()[1]
    assert json.loads(texts["json"])[1]["detail"] == shown
    assert pd.read_csv(io.StringIO(texts["csv"]))["detail"][1] == shown
