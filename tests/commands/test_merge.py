"""The command that joins shards, and what shows a run of several machines."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.cli import main
from bench.plan.grid import Shard
from tests.engine.test_merge import OTHER, SWEEP, run, shards

NAMED = dataclasses.replace(OTHER, context={**OTHER.context, "machine_name": "big node"})


def test_shards_of_one_machine_are_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command says what was added and how much of the sweep there is; `show` and `compare` take the result."""
    parts, out = shards(tmp_path, 2), tmp_path / "out"
    assert main(["merge", str(out), str(parts[0])]) == 0
    assert "16 records of 4 of 8 points" in capsys.readouterr().out
    assert main(["merge", str(out), *map(str, parts)]) == 0
    assert "32 records of 8 of 8 points" in capsys.readouterr().out
    assert main(["show", str(out)]) == 0
    assert "sdpa" in capsys.readouterr().out


def test_two_machines_are_shown_separately(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each under its name; a comparison takes those that both runs have."""
    here = shards(tmp_path, 1)
    there = run(tmp_path / "there", SWEEP.sharded(Shard(1, 1)), NAMED)
    out = tmp_path / "out"
    assert main(["merge", str(out), *map(str, here), str(there)]) == 0
    capsys.readouterr()
    assert main(["show", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "machine big-node" in printed
    assert main(["merge", str(tmp_path / "alone"), str(there)]) == 0
    capsys.readouterr()
    assert main(["compare", str(out), str(tmp_path / "alone")]) == 0
    assert "machine big node" in capsys.readouterr().out


def test_no_machine_in_both_is_not_comparable(tmp_path: Path, refused: Callable[..., str]) -> None:
    """The line names the machines of both."""
    here, there = shards(tmp_path, 1)[0], run(tmp_path / "there", SWEEP, NAMED)
    main(["merge", str(tmp_path / "out"), str(here), str(there)])
    third = run(tmp_path / "third", SWEEP, dataclasses.replace(OTHER, identity={**OTHER.identity, "cores": 64}))
    assert "no machine is in both" in refused("compare", tmp_path / "out", third, status=3)
