"""The command that writes results.csv anew from a journal."""

import shutil
from pathlib import Path

import pandas as pd
import pytest

from bench.cli import main
from bench.store import table
from bench.store.journal import JOURNAL

PUBLISHED = sorted(file.parent for file in (Path(__file__).parents[2] / "results/published").rglob(JOURNAL))


@pytest.mark.slow
@pytest.mark.parametrize("run", PUBLISHED, ids=lambda run: run.name)
def test_published_results_follow_from_their_journals(run: Path, tmp_path: Path) -> None:
    """A journal gives the table that is kept beside it."""
    for name in (JOURNAL, "environment.json"):
        if (run / name).exists():
            shutil.copy(run / name, tmp_path)

    assert main(["summarise", str(tmp_path)]) == 0

    pd.testing.assert_frame_equal(table.load(tmp_path), table.load(run))


def test_a_journal_in_which_no_line_counts_replaces_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The table and the lines stay, and the fault of the lines is said."""
    run = shutil.copytree(PUBLISHED[0], tmp_path / "run")
    lines = (run / JOURNAL).read_bytes().splitlines(keepends=True)
    (run / JOURNAL).write_bytes(b"".join(b"[" + line[1:] for line in lines))
    before = {path: path.read_bytes() for path in run.iterdir() if path.is_file()}

    assert main(["summarise", str(run)]) == 2

    fault, refusal = capsys.readouterr().err.splitlines()
    assert f"lines 1, 2, 3 and {len(lines) - 3} more" in fault
    assert "holds no line that counts; results.csv stays as it is" in refusal
    assert {path: path.read_bytes() for path in run.iterdir() if path.is_file()} == before
