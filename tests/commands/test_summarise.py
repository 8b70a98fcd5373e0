"""The command that writes results.csv anew from a journal."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from bench.cli import main
from bench.store import table
from bench.store.journal import JOURNAL

PUBLISHED = sorted((Path(__file__).parents[2] / "results" / "published").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("run", PUBLISHED, ids=lambda run: run.name)
def test_published_results_follow_from_their_journals(run: Path, tmp_path: Path) -> None:
    """A journal of any schema gives the table that is kept beside it."""
    for name in (JOURNAL, "environment.json", "plan.json"):  # older runs have no plan
        if (run / name).exists():
            shutil.copy(run / name, tmp_path)

    assert main(["summarise", str(tmp_path)]) == 0

    pd.testing.assert_frame_equal(table.load(tmp_path), table.load(run))


def test_without_a_journal_there_is_nothing_to_write(tmp_path: Path, refused: Callable[..., str]) -> None:
    """The refusal names the folder and the file, and nothing is made there."""
    line = refused("summarise", tmp_path / "run")
    assert str(tmp_path / "run") in line
    assert JOURNAL in line
    assert not (tmp_path / "run").exists()
