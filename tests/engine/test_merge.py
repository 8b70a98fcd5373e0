"""Runs that become one."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from bench.engine.merge import merge
from bench.plan.errors import WrongRequest
from bench.plan.grid import Shard
from bench.plan.sweep import Sweep
from bench.store import environment, journal, plan, table
from bench.store.environment import Environment
from bench.store.record import Origin, Record
from tests.make import records
from tests.make.points import point
from tests.refusals import refusal

SWEEP = Sweep("tiny", tuple(point(num_tokens=tokens) for tokens in range(1, 9)), ("eager", "sdpa"))
HERE = records.environment()


def origin(of: Environment) -> Origin:
    """Return the origin of a record that was measured there."""
    return Origin(of.env_id, of.device_name("cpu"), of.identity["torch"], "abc", "2026-01-31T12:00:00+00:00")


def measured(sweep: Sweep, of: Environment, seed: str) -> list[list[Record]]:
    """Return the replicates of a sweep, two for each point."""
    return [
        [
            records.measured(case, process, 1e-3, seed=seed, origin=origin(of))
            for case in sweep.cases()
            if case.point == at
        ]
        for at in sweep.points
        for process in range(2)
    ]


def run(folder: Path, sweep: Sweep = SWEEP, of: Environment = HERE, seed: str = "") -> Path:
    """Make a run of a sweep and return its folder."""
    folder.mkdir()
    plan.keep(sweep, journal.scan(folder))
    environment.save(of, folder)
    for replicate in measured(sweep, of, seed):
        journal.scan(folder).append(replicate)
    return folder


def shards(folder: Path, count: int) -> list[Path]:
    """Make a run of each shard."""
    numbers = range(1, count + 1)
    return [run(folder / f"{number}of{count}", SWEEP.sharded(Shard(number, count))) for number in numbers]


def content(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Return the content and the time of change of every file in a folder."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def test_shards_become_the_run_of_one_machine(tmp_path: Path) -> None:
    """The merged run has every record once, the plan of the whole sweep, and the table of an undivided run."""
    one = run(tmp_path / "one")
    merge(tmp_path / "one-table", [one])
    done = merge(tmp_path / "out", shards(tmp_path, 4))
    assert (done.before, done.added, done.points, done.planned, done.notices) == (0, 32, 8, 8, [])
    key = "num_tokens", "implementation"
    merged, whole = (
        table.load(tmp_path / name).sort_values([*key]).reset_index(drop=True) for name in ("out", "one-table")
    )
    assert merged.equals(whole)
    stored = plan.load(tmp_path / "out")
    assert stored is not None
    assert (stored.points, stored.shard) == (SWEEP.points, None)


def test_the_same_shard_again_changes_nothing(tmp_path: Path) -> None:
    """No file changes or is rewritten; a later shard adds its records."""
    first, second = shards(tmp_path, 2)
    merge(tmp_path / "out", [first, first])
    before = content(tmp_path / "out")
    done = merge(tmp_path / "out", [first])
    assert (done.added, content(tmp_path / "out")) == (0, before)
    done = merge(tmp_path / "out", [second])
    assert done.before + done.added == 32
    done = merge(second, [first])
    assert (done.before, done.added) == (16, 16)
    assert plan.load(second) == SWEEP


@pytest.mark.parametrize(
    ("second", "words"),
    [
        ({"seed": "again"}, "{one} and {two} both have .*process 0, so they"),
        (
            {"of": records.environment(torch="2.14.0")},
            r"{one} and {two} were measured under different conditions \(torch: '2.13.0' against '2.14.0'\).*compare",
        ),
        ({"sweep": dataclasses.replace(SWEEP, baseline="sdpa")}, "different sweeps: they differ in baseline;"),
    ],
    ids=["measured twice", "unlike nodes", "two sweeps"],
)
def test_what_are_no_shards_of_one_run_are_refused(second: dict[str, Any], words: str, tmp_path: Path) -> None:
    """The line names both runs and the mistake, and nothing is written."""
    one, two = run(tmp_path / "one"), run(tmp_path / "two", **second)
    with pytest.raises(WrongRequest, match=words.format(one=one, two=two)):
        merge(tmp_path / "out", [one, two])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("lacking", [journal.JOURNAL, environment.ENVIRONMENT])
def test_what_is_no_run_is_refused(tmp_path: Path, lacking: str) -> None:
    """The line names the folder and the file."""
    folder = run(tmp_path / "one")
    (folder / lacking).unlink()
    assert f"{folder} can't be merged, because it has no " in refusal(merge, tmp_path / "out", [folder])
    assert not (tmp_path / "out").exists()
