"""The command that joins shards."""

from pathlib import Path

import pytest

from bench.cli import main
from tests.engine.test_merge import shards


def test_shards_of_one_machine_are_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command says what was added and how much of the sweep there is; `show` takes the result."""
    parts, out = shards(tmp_path, 2), tmp_path / "out"
    assert main(["merge", str(out), str(parts[0])]) == 0
    assert "16 records of 4 of 8 points" in capsys.readouterr().out
    assert main(["merge", str(out), *map(str, parts)]) == 0
    assert "32 records of 8 of 8 points" in capsys.readouterr().out
    assert main(["show", str(out)]) == 0
    assert "sdpa" in capsys.readouterr().out
