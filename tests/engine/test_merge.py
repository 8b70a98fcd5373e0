"""Runs that become one."""

import dataclasses
from pathlib import Path

import pytest

from bench.engine.merge import merge
from bench.plan.grid import Shard
from bench.plan.sweep import Sweep
from bench.store import environment, journal, plan, saved_run, table
from bench.store.environment import Environment
from bench.store.record import Origin, Record
from bench.store.saved_run import SavedRun
from tests.make import records
from tests.make.points import point
from tests.refusals import refusal

SWEEP = Sweep("tiny", tuple(point(num_tokens=tokens) for tokens in range(1, 9)), ("eager", "sdpa"))
HERE = records.environment()
OTHER = records.environment(cpu="Another CPU")


def origin(of: Environment) -> Origin:
    """Return the origin of a record that was measured there."""
    return Origin(of.env_id, of.device_name("cpu"), of.identity["torch"], "abc", "2026-01-31T12:00:00+00:00")


def measured(sweep: Sweep, of: Environment, seed: str = "") -> list[list[Record]]:
    """Return the replicates of a sweep, two for each point."""
    return [
        [
            dataclasses.replace(record, replicate_size=2)
            for case in sweep.cases()
            if case.point == at
            for record in [records.measured(case, process, 1e-3, seed=seed, origin=origin(of))]
        ]
        for at in sweep.points
        for process in range(2)
    ]


def run(folder: Path, sweep: Sweep = SWEEP, of: Environment = HERE, seed: str = "") -> Path:
    """Make a run of a sweep and return its folder."""
    folder.mkdir()
    plan.save(sweep, folder)
    environment.save(of, folder)
    for replicate in measured(sweep, of, seed):
        journal.append(folder, replicate)
    return folder


def shards(folder: Path, count: int, of: Environment = HERE) -> list[Path]:
    """Make a run of each shard."""
    return [
        run(folder / f"{number}of{count}", SWEEP.sharded(Shard(number, count)), of) for number in range(1, count + 1)
    ]


def content(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Return the content and the time of change of every file in a folder."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def test_shards_become_the_run_of_one_machine(tmp_path: Path) -> None:
    """The merged run has every record once, the plan of the whole sweep, and the table of an undivided run."""
    one = run(tmp_path / "one")
    merge(tmp_path / "one-table", [one])
    (done,), notices = merge(tmp_path / "out", shards(tmp_path, 4))
    assert (done.before, done.added, done.points, done.planned, notices) == (0, 32, 8, 8, [])
    key = "num_tokens", "implementation"
    merged, whole = (
        table.load(tmp_path / name).sort_values([*key]).reset_index(drop=True) for name in ("out", "one-table")
    )
    assert merged.equals(whole)
    stored = plan.load(tmp_path / "out")
    assert stored is not None
    assert (stored.points, stored.shard) == (SWEEP.points, None)


def test_the_same_shard_again_changes_nothing(tmp_path: Path) -> None:
    """Not a byte of any file, and none is written anew; a shard that comes later adds its records."""
    first, second = shards(tmp_path, 2)
    merge(tmp_path / "out", [first, first])
    before = content(tmp_path / "out")
    (done,), _ = merge(tmp_path / "out", [first])
    assert (done.added, content(tmp_path / "out")) == (0, before)
    (done,), _ = merge(tmp_path / "out", [second])
    assert done.before + done.added == 32
    assert not saved_run.folders_of(tmp_path / "out")
    (done,), _ = merge(second, [first])
    assert (done.before, done.added) == (16, 16)
    assert plan.load(second) == SWEEP


def test_two_records_of_one_case_and_process_are_refused(tmp_path: Path) -> None:
    """Two runs of one sweep are no shards; the line names both, the case and the process, and nothing is made."""
    one, two = run(tmp_path / "one"), run(tmp_path / "two", seed="again")
    line = refusal(merge, tmp_path / "out", [one, two])
    assert f"{one} and {two} hold two records of" in line
    assert "process 0" in line
    assert not (tmp_path / "out").exists()


def test_two_machines_stay_two(tmp_path: Path) -> None:
    """Each has a run folder of its own, by the name that the user gave it; later shards find theirs."""
    named = dataclasses.replace(OTHER, context={**OTHER.context, "machine_name": "big node"})
    first, second = shards(tmp_path, 2)
    (tmp_path / "there").mkdir()
    third, fourth = shards(tmp_path / "there", 2, named)
    out = tmp_path / "out"
    merge(out, [first])
    merge(out, [second, third])
    assert saved_run.folders_of(out) == {HERE.env_id: HERE.env_id, "big-node": OTHER.env_id}
    assert not (out / journal.JOURNAL).exists()
    merge(out, [fourth, first])
    tables = {name: saved.table for name, saved in saved_run.runs_of(SavedRun(out)).items()}
    assert {name: len(rows) for name, rows in tables.items()} == {HERE.env_id: 16, "big-node": 16}
    assert {name: set(rows["env_id"]) for name, rows in tables.items()} == {
        HERE.env_id: {HERE.env_id},
        "big-node": {OTHER.env_id},
    }


def test_two_versions_of_torch_are_refused(tmp_path: Path) -> None:
    """The line says both and what to do."""
    newer = records.environment(torch="2.14.0")
    line = refusal(merge, tmp_path / "out", [run(tmp_path / "one"), run(tmp_path / "two", of=newer)])
    assert "two versions of torch, 2.13.0 and 2.14.0" in line
    assert "compare" in line


@pytest.mark.parametrize(
    ("changes", "differing"),
    [
        ({"points": SWEEP.points[:5]}, "points"),
        ({"implementations": ("eager", "manual")}, "implementations"),
        ({"baseline": "sdpa"}, "baseline"),
    ],
)
def test_two_sweeps_are_refused(tmp_path: Path, changes: dict[str, object], differing: str) -> None:
    """The line says in what they differ."""
    other = dataclasses.replace(SWEEP, **changes)  # type: ignore[arg-type]
    line = refusal(merge, tmp_path / "out", [run(tmp_path / "one"), run(tmp_path / "two", other)])
    assert f"of two sweeps: they differ in {differing};" in line


def test_points_of_another_machine_may_differ_in_what_follows_from_it(tmp_path: Path) -> None:
    """Threads and allocator are the machine's, unless both are of one machine."""
    there = dataclasses.replace(
        SWEEP, points=tuple(dataclasses.replace(each, allocator="retained-huge", threads=3) for each in SWEEP.points)
    )
    one = run(tmp_path / "one")
    assert len(merge(tmp_path / "out", [one, run(tmp_path / "two", there, OTHER)])[0]) == 2
    assert "two sweeps" in refusal(merge, tmp_path / "third", [one, run(tmp_path / "three", there)])


@pytest.mark.parametrize("lacking", [journal.JOURNAL, environment.ENVIRONMENT, "everything"])
def test_what_is_no_run_is_refused(tmp_path: Path, lacking: str) -> None:
    """The line names the folder and the file."""
    folder = run(tmp_path / "one")
    for path in list(folder.iterdir()):
        if lacking in (path.name, "everything"):
            path.unlink()
    assert f"{folder} is no run that can be merged" in refusal(merge, tmp_path / "out", [folder])
    assert not (tmp_path / "out").exists()


def test_a_torn_line_of_a_shard_is_left_out(tmp_path: Path) -> None:
    """The torn line is reported, and the lines around it count."""
    folder = run(tmp_path / "one")
    path = folder / journal.JOURNAL
    path.write_bytes(path.read_bytes()[:-100])
    (done,), (notice,) = merge(tmp_path / "out", [folder])
    assert (done.added, "line 33 is no record" in notice) == (31, True)
