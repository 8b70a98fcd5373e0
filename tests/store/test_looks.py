"""The looks at models."""

import json
from pathlib import Path

import pytest

from bench.plan.errors import CannotWrite
from bench.store import files
from bench.store import looks as store
from tests.make.advice import POINT, looks


def test_looks_hold_what_each_process_saw(tmp_path: Path) -> None:
    """By point, in a folder that git leaves out if it is new; one that can't be written is an error of one line."""
    store.save_looks({POINT: looks()}, tmp_path / "run")
    assert (tmp_path / "run" / files.IGNORED).exists()
    (tmp_path / "kept" / "own").mkdir(parents=True)
    store.save_looks({POINT: looks()}, tmp_path / "kept")
    assert not (tmp_path / "kept" / files.IGNORED).exists()
    (entry,) = json.loads((tmp_path / "run" / store.LOOK).read_text())["looks"]
    assert entry["point"]["layer"] == POINT.layer
    assert len(entry["processes"]) == 3
    (tmp_path / "file").touch()
    with pytest.raises(CannotWrite, match="can't be written"):
        store.save_looks({POINT: looks()}, tmp_path / "file")
