"""The command that writes the page of a run."""

from collections.abc import Callable
from pathlib import Path

from bench.analyse.analysed_run import PAGE
from bench.plan.case import Case
from tests.make import runs
from tests.make.points import vit_s

Printed = Callable[..., str]


def test_the_page_lies_in_the_folder_of_the_run(tmp_path: Path, printed: Printed) -> None:
    """The path of the page is what is printed."""
    run = runs.of(tmp_path / "run", [Case(vit_s(), name) for name in ("eager", "sdpa")])
    assert printed("report", run).strip() == str(run / PAGE)
    assert "sdpa" in (run / PAGE).read_text()


def test_what_is_no_run_is_refused_with_one_line(tmp_path: Path, refused: Printed) -> None:
    """A table, whose page would lack what the journal has, and a run without rows."""
    run = runs.of(tmp_path / "run", [Case(vit_s(), "eager")])
    assert "expected a run folder" in refused("report", run / "results.csv")
    (run / "journal.jsonl").write_bytes(b"")
    assert "holds no rows" in refused("report", run)
