"""The command that prints a history."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.show.pages import shell
from bench.store.journal import JOURNAL
from bench.store.table import RESULTS
from tests.make.runs import weekly

Printed = Callable[..., str]


def test_a_folder_of_runs_is_a_history(tmp_path: Path, printed: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each case is a row, each run a column; a step is marked, and the page holds the same."""
    monkeypatch.setattr(shell, "vega_script", lambda: "")
    weekly(tmp_path / "runs", (0.5, 0.4))
    page = tmp_path / "history.html"
    text = printed("history", tmp_path / "runs", "--report", page)
    assert text.count("▲") == 3, "two rows and the line that explains it"
    assert "torch 2.11.0" in text
    assert all("2 became faster, 0 slower, from one run to the next" in said for said in (text, page.read_text()))


def test_a_case_that_begins_to_fail_is_said_first(tmp_path: Path, printed: Printed) -> None:
    """With its status and its run, in the first lines and in the table."""
    first, second = weekly(tmp_path / "runs", (0.5, 0.5))
    text = (second / RESULTS).read_text(encoding="utf-8")
    (second / JOURNAL).unlink()
    (second / RESULTS).write_text(text.replace(",ok,", ",incorrect,"), encoding="utf-8")
    text = printed("history", first, second)
    assert re.search(r"0 became faster, 0 slower, \d+ that were ok fail, from one run to the next", text)
    assert text.count("incorrect") > 2
    assert "incorrect in run 2" in text


def test_one_run_is_no_history(tmp_path: Path, refused: Printed) -> None:
    """The line says what could have come."""
    (run,) = weekly(tmp_path / "runs", (0.5,))
    assert "a history needs two runs or more, got 1" in refused("history", run)
    assert "does not exist" in refused("history", tmp_path / "none", run)
