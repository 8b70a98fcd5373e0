"""A run folder during a run: kept results, missing ones, and the right to write."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from bench.analyse.analysed_run import AnalysedRun
from bench.analyse.summary import Summary
from bench.cli import main
from bench.engine.run import Run
from bench.plan.case import Case, Point
from bench.plan.errors import WrongRequest
from bench.plan.sweep import Sweep
from bench.store import files, journal, table
from bench.store.environment import ENVIRONMENT, Environment
from bench.store.record import Origin, encode_line
from bench.store.table import RESULTS
from tests.engine.test_checkout import git
from tests.make.points import point
from tests.make.records import environment, measured
from tests.make.results import summarise

SWEEP = Sweep("tiny", (point(),), ("eager", "sdpa"))
THREE = tuple(point(num_tokens=tokens) for tokens in (5, 7, 9))
SWEEP_OF_THREE = Sweep("three", THREE, ("eager", "sdpa"))

HERE = dataclasses.replace(environment(), context={"commit": "abc"})
ORIGIN = Origin.of(HERE, "cpu", "2026-01-31T12:00:00+00:00")


class MadeUp(Run):
    """A run on a made-up machine, in which nothing is measured."""

    def observe(self) -> tuple[Environment, list[str]]:
        """Return the machine, and no warnings."""
        return HERE, []


def opened(folder: Path, sweep: Sweep = SWEEP, **options: Any) -> Run:
    """Return a run that was opened on a made-up machine."""
    return MadeUp(sweep, folder, **options).__enter__()


def kept(run: Run, *implementations: str, at: Point | None = None, scatter: float = 1e-3, **outcome: Any) -> None:
    """Write a record of each implementation, with such an outcome, in a point's next process."""
    at = at or point()
    cases, number = [Case(at, name) for name in reversed(implementations)], run.next_process(at)
    measurements = [measured(case, number, 1e-3, scatter=scatter, origin=ORIGIN) for case in cases]
    run.write([dataclasses.replace(each, **outcome) for each in measurements])


def begun(folder: Path, *implementations: str) -> Run:
    """Return a run whose session has kept a record of each implementation in a process."""
    run = opened(folder)
    kept(run, *implementations)
    return run


def left(folder: Path, *implementations: str) -> None:
    """Fill a run folder in a session that has ended."""
    begun(folder, *implementations).close()


# A table whose rows have their variances pooled


def of_three(folder: Path, *measured: int) -> Run:
    """Return a run in which replicates of these of three points were measured, one after the other."""
    run = opened(folder, SWEEP_OF_THREE)
    for number in measured:
        kept(run, "eager", "sdpa", at=THREE[number], scatter=0.01 * (1 + number))
    return run


@pytest.mark.parametrize(("measured", "times"), [((0,), 3), ((0, 1, 2), 2)])
def test_a_longer_race_reaches_each_point_or_takes_twice_as_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measured: tuple[int, ...], times: int
) -> None:
    """Tiny points that wait take as long as the measured one; the servers' start comes on top."""
    monkeypatch.setattr(Summary, "measured_s", lambda _: 10.0)
    assert of_three(tmp_path, *measured).longer_s() == pytest.approx(30 + times * 10, rel=1e-3)


@pytest.mark.parametrize(
    ("sessions", "is_killed"),
    [
        (([0, 0, 1], [2, 2, 1]), True),
        (([0, 1, 2], []), False),
    ],
)
def test_a_run_that_went_on_has_the_table_that_its_journal_gives(
    tmp_path: Path, sessions: tuple[list[int], list[int]], is_killed: bool
) -> None:
    """`show` and `summarise` give the same rows however the first session ended, and whatever happened to its table."""
    first = of_three(tmp_path, *sessions[0])
    if is_killed:
        first._lock.__exit__()
        assert len(AnalysedRun(tmp_path).whole) == 2 * len({*sessions[0]})
    else:
        first.close()
        (tmp_path / RESULTS).write_text("edited")
    of_three(tmp_path, *sessions[1]).close()
    before = (tmp_path / RESULTS).read_bytes()
    assert table.as_csv(AnalysedRun(tmp_path).whole) == before
    assert main(["summarise", str(tmp_path)]) == 0
    assert (tmp_path / RESULTS).read_bytes() == before
    assert table.as_csv(summarise(journal.read(tmp_path), "eager")) == before


# A folder that is one writer's


def test_git_leaves_out_a_run_folder_but_for_those_of_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a folder that the run made gets a .gitignore; an existing folder and its contents are the user's."""
    monkeypatch.setattr(files, "RESULTS", tmp_path / "ours")
    (tmp_path / "results" / "old").mkdir(parents=True)
    for folder in ("results/old", "results/new", "ours/published/new"):
        left(tmp_path / folder, "eager")
        left(tmp_path / folder, "sdpa")
    assert [*tmp_path.rglob(files.IGNORED)] == [tmp_path / "results" / "new" / files.IGNORED]
    git(tmp_path, "init", "--quiet")
    seen = {line.split()[1] for line in git(tmp_path, "status", "--porcelain", "-uall").splitlines()}
    assert {Path(path).parent.as_posix() for path in seen} == {"results/old", "ours/published/new"}


def test_what_a_kill_left_is_passed_over_and_said(tmp_path: Path) -> None:
    """Half a table goes; a torn line stays, and a line of notice names its file."""
    left(tmp_path, "eager")
    (tmp_path / f".{RESULTS}.123{files.PART}").touch()
    with (tmp_path / journal.JOURNAL).open("ab") as file:
        file.write(b'{"schema')
    run = opened(tmp_path)
    (notice,) = run.warnings
    assert f"{journal.JOURNAL}: line 3 is ignored as invalid (" in notice
    kept(run, "sdpa")
    run.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == [ENVIRONMENT, journal.JOURNAL, RESULTS]
    assert [record.case.implementation for record in journal.read(tmp_path)] == ["eager", "sdpa"]


# A folder that knows its plan and its environment


def test_records_of_two_environments_are_never_mixed(tmp_path: Path) -> None:
    """Records from elsewhere are refused with their number and where they come from, and the folder stays."""
    first = begun(tmp_path, "eager")
    kept(first, "sdpa")
    first.close()
    path = tmp_path / journal.JOURNAL
    own = HERE.env_id
    lines = journal.read(tmp_path)
    elsewhere = [
        dataclasses.replace(each, origin=dataclasses.replace(each.origin, env_id="0123456789ab")) for each in lines
    ]
    planned = path.read_bytes().splitlines(keepends=True)[0]
    path.write_bytes(planned + b"".join(encode_line(each) + b"\n" for each in elsewhere[:1] + lines[1:]))
    (tmp_path / ENVIRONMENT).unlink()
    before = path.read_bytes()
    with pytest.raises(WrongRequest, match=rf"environment \(1 of 0123456789ab\), but this is {own};"):
        opened(tmp_path)
    assert path.read_bytes() == before
