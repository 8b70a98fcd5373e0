"""What was seen at models, on disk."""

import json
from pathlib import Path

import pytest

from bench.plan.errors import CannotWrite
from bench.store import look
from tests.advice import POINT, looks


def test_it_holds_what_each_process_saw(tmp_path: Path) -> None:
    """By point, in a folder that may be new."""
    look.save({POINT: looks()}, tmp_path / "run")
    (entry,) = json.loads((tmp_path / "run" / look.LOOK).read_text())["looks"]
    assert entry["point"]["layer"] == POINT.layer
    assert len(entry["processes"]) == 3


def test_a_folder_that_can_not_be_written_is_said(tmp_path: Path) -> None:
    """In one line."""
    (tmp_path / "run").write_text("")
    with pytest.raises(CannotWrite, match="can't be written"):
        look.save({POINT: looks()}, tmp_path / "run")
