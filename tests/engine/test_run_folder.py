"""A run folder that is being filled."""

import dataclasses
import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.analyse.summary import summarise
from bench.cli import main
from bench.engine.run_folder import RunFolder
from bench.plan.errors import CannotWrite, WrongRequest
from bench.plan.sweep import Sweep
from bench.show.pages.run import page
from bench.store import files, journal, table
from bench.store.environment import ENVIRONMENT
from bench.store.environment import load as load_environment
from bench.store.files import LOCK
from bench.store.plan import PLAN
from bench.store.record import encode_line
from bench.store.saved_run import SavedRun
from bench.store.table import RESULTS, load
from tests.engine.test_checkout import git
from tests.engine.test_records import HERE, SWEEP, SWEEP_OF_THREE, THREE, kept
from tests.make.points import point
from tests.store.disk import enlarge, full_after, small


def opened(folder: Path, sweep: Sweep = SWEEP, *, extend: bool = False) -> RunFolder:
    """Return a run folder that was opened on a made-up machine."""
    run_folder = RunFolder(sweep, folder, extend=extend)
    try:
        run_folder.prepare()
        run_folder.open(HERE)
    except WrongRequest:
        run_folder.close()
        raise
    return run_folder


def begun(folder: Path, *implementations: str) -> RunFolder:
    """Return a run folder whose session has kept a record of each implementation in a process."""
    run_folder = opened(folder)
    kept(run_folder.records, *implementations)
    return run_folder


def left(folder: Path, *implementations: str) -> None:
    """Fill a run folder in a session that has ended."""
    begun(folder, *implementations).close()


def test_what_is_kept_stands_in_the_journal_and_the_table(tmp_path: Path) -> None:
    """Records of a replicate are in the order of the sweep, and count those that were measured together."""
    left(tmp_path, "eager", "sdpa")
    records = journal.read(tmp_path)
    assert [(record.case.implementation, record.replicate_size) for record in records] == [("eager", 2), ("sdpa", 2)]
    assert load(tmp_path)["implementation"].tolist() == ["eager", "sdpa"]


# A table whose rows have their variances pooled


def of_three(folder: Path, *measured: int) -> RunFolder:
    """Return a run folder in which replicates of these of three points were measured, one after the other."""
    run_folder = opened(folder, SWEEP_OF_THREE)
    for number in measured:
        kept(run_folder.records, "eager", "sdpa", at=THREE[number], scatter=0.01 * (1 + number))
        run_folder.tabulate()
    return run_folder


@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.parametrize("sessions", [([0, 0, 1, 1, 2], [2]), ([0, 0, 1], [2, 2, 1])])
def test_a_run_that_went_on_has_the_table_that_its_journal_gives(
    tmp_path: Path, sessions: tuple[list[int], list[int]], is_killed: bool
) -> None:
    """However the first session ended, and whatever the second measured, `summarise` writes the same bytes."""
    first = of_three(tmp_path, *sessions[0])
    if is_killed:
        (tmp_path / LOCK).unlink()
    else:
        first.close()
    of_three(tmp_path, *sessions[1]).close()
    before = (tmp_path / RESULTS).read_bytes()
    assert main(["summarise", str(tmp_path)]) == 0
    assert (tmp_path / RESULTS).read_bytes() == before


def test_a_run_that_has_all_reads_no_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run is opened and closed without them; the rows that are asked for are those of its table."""
    of_three(tmp_path, 0, 0, 1, 2).close()
    before = load(tmp_path)
    with monkeypatch.context() as without:
        without.delattr(journal.Contents, "content")
        of_three(tmp_path).close()
    assert load(tmp_path).equals(before)
    records = of_three(tmp_path).records
    assert records.results().equals(before)
    assert records.rows(THREE[0]).equals(before[:2])


def test_a_run_that_is_shown_reads_its_journal_and_its_table_no_second_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its table, its choices and the page come from what it knows; a page reads the samples of its cases alone."""
    run_folder = of_three(tmp_path, 0, 0, 1, 1, 2)
    monkeypatch.delattr(journal, "scan")
    monkeypatch.delattr(table, "load")
    saved = run_folder.saved
    assert saved.whole["num_tokens"].tolist() == [5, 5, 7, 7, 9, 9]
    assert [choice.point for choice in saved.choices] == [*THREE]
    assert page(saved).count("<h1>") == 1
    assert saved.summary.poolings == run_folder.saved.summary.poolings


@pytest.mark.parametrize(
    ("changed", "change"),
    [
        (RESULTS, lambda content: content.replace(b"sdpa", b"sdqa")),
        (journal.JOURNAL, lambda content: b"".join(content.splitlines(keepends=True)[:-1])),
        (PLAN, lambda content: content.replace(b'"results_crc32": ', b'"results_crc32": 1')),
    ],
    ids=[RESULTS, journal.JOURNAL, PLAN],
)
def test_a_table_that_its_journal_does_not_give_is_written_anew(
    tmp_path: Path, changed: str, change: Callable[[bytes], bytes]
) -> None:
    """Whichever of the files is another one than the run wrote, the next session writes the table of the journal."""
    of_three(tmp_path, 0, 0, 1, 2).close()
    before, written = (tmp_path / changed).read_bytes(), (tmp_path / RESULTS).stat().st_ino
    (tmp_path / changed).write_bytes(change(before))
    assert (tmp_path / changed).read_bytes() != before
    of_three(tmp_path).close()
    assert (tmp_path / RESULTS).stat().st_ino != written
    assert load(tmp_path).equals(summarise(journal.read(tmp_path), "eager"))


# A folder that is one writer's


def test_a_folder_that_is_being_filled_is_refused(tmp_path: Path) -> None:
    """A second session names the process that fills it, and the first goes on."""
    first = opened(tmp_path)
    with pytest.raises(WrongRequest, match=f"written by process {os.getpid()} on"):
        opened(tmp_path)
    kept(first.records, "eager")
    first.close()
    assert opened(tmp_path).records.missing(point(), 1) == ["sdpa"]


def test_a_folder_that_was_made_for_nothing_goes_again(tmp_path: Path) -> None:
    """A folder that a refusal leaves empty is removed with the folders above it that were made; what was there stays.

    A file in its place is said in one line.
    """
    (tmp_path / "there").mkdir()
    for path in (tmp_path / "new" / "run", tmp_path / "there"):
        run_folder = RunFolder(SWEEP, path)
        run_folder.prepare()
        assert path.is_dir()
        run_folder.close()
        assert list(tmp_path.iterdir()) == [tmp_path / "there"]
    (tmp_path / "file").touch()
    with pytest.raises(WrongRequest, match="can't be made"):
        opened(tmp_path / "file" / "run")


def test_a_new_folder_is_one_that_was_made_for_the_run(tmp_path: Path) -> None:
    """Each has another one; one that stays empty goes, with those above it, unless another lies there."""
    parent = tmp_path / "results"
    first, second = files.new(parent, "run"), files.new(parent, "run")
    assert first != second
    for path, left in ((second, [first]), (first, [])):
        run_folder = RunFolder(SWEEP, path)
        run_folder.prepare()
        run_folder.close()
        assert [*tmp_path.rglob("run*")] == left
    assert not parent.exists()


def test_a_table_that_was_edited_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Until it is written anew."""
    left(tmp_path, "eager", "sdpa")
    written = (tmp_path / RESULTS).read_text()
    (tmp_path / RESULTS).write_text(written.replace(",ok,", ",ok ,", 1))
    main(["show", str(tmp_path)])
    assert "results.csv is not as the run wrote it; from its journal: " in capsys.readouterr().err
    assert main(["summarise", str(tmp_path)]) == 0
    capsys.readouterr()
    main(["show", str(tmp_path)])
    assert capsys.readouterr().err == ""


def test_a_table_behind_its_journal_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`show` says that the run is at work, or was killed and how to write the table anew, until the table has all."""
    run_folder = begun(tmp_path, "eager")
    run_folder.tabulate()
    assert not SavedRun(tmp_path).is_behind
    kept(run_folder.records, "eager", "sdpa")
    assert SavedRun(tmp_path / RESULTS).is_behind
    assert main(["show", str(tmp_path)]) == 0
    assert "is at work" in capsys.readouterr().err
    before = (tmp_path / LOCK).read_text()
    dead = {**json.loads(before), "started_s": json.loads(before)["started_s"] + 100}
    (tmp_path / LOCK).write_text(json.dumps(dead))  # as after kill -9: the number belongs to another process now
    assert main(["show", str(tmp_path / RESULTS)]) == 0
    assert f"bench summarise {tmp_path}" in capsys.readouterr().err.replace("\n", " ")
    (tmp_path / LOCK).write_text(before)
    run_folder.close()
    assert not SavedRun(tmp_path).is_behind
    assert main(["show", str(tmp_path)]) == 0
    assert capsys.readouterr().err == ""


def test_a_record_that_was_damaged_meanwhile_keeps_no_lock(tmp_path: Path) -> None:
    """The table can't be made of it, but the folder is unlocked for the run that sets it aside."""
    run_folder = begun(tmp_path, "eager")
    path = tmp_path / journal.JOURNAL
    path.write_bytes(path.read_bytes().replace(b'"rounds":[0', b'"rounds":[9'))
    run_folder.close()
    assert not (tmp_path / LOCK).exists()
    assert [path.name for path in tmp_path.glob("*.cut")] == []
    opened(tmp_path).close()
    assert [path.name for path in tmp_path.glob("*.cut")] == [journal.SET_ASIDE]


def test_a_writer_that_lost_its_folder_writes_no_more(tmp_path: Path) -> None:
    """A folder that vanishes, or whose lock somebody removed, ends the run with one line; nothing is made anew."""
    run_folder = begun(tmp_path / "run", "eager")
    (tmp_path / "run").rename(tmp_path / "moved")
    with pytest.raises(CannotWrite, match=r"is gone.* process 1 of .* is lost"):
        kept(run_folder.records, "sdpa")
    with pytest.raises(CannotWrite, match=f"{RESULTS} can't be written: No such file"):
        run_folder.tabulate()
    run_folder.close()
    assert [path.name for path in tmp_path.iterdir()] == ["moved"]
    assert len(journal.read(tmp_path / "moved")) == 1


def test_a_full_disk_loses_the_replicate_in_flight_alone(tmp_path: Path) -> None:
    """The line says so; the next session measures that replicate again, under the same number."""
    run_folder = begun(tmp_path, "eager", "sdpa")
    size = (tmp_path / journal.JOURNAL).stat().st_size
    with full_after(size + 300), pytest.raises(CannotWrite, match=r"too large; process 1 of .* is lost.* kept"):
        kept(run_folder.records, "eager", "sdpa")
    assert run_folder.records.next_process(point()) == 1
    run_folder.close()
    assert (tmp_path / journal.JOURNAL).stat().st_size == size
    assert load(tmp_path)["processes"].tolist() == [1, 1]
    assert opened(tmp_path).records.next_process(point()) == 1


def test_a_run_on_a_small_disk_goes_on_when_there_is_room(tmp_path: Path) -> None:
    """Until a real disk is full every replicate is kept whole, none is torn; the next session goes on with the rest."""
    with small(tmp_path, 64):
        run_folder = opened(tmp_path / "run")

        def fill() -> None:
            for _ in range(1_000):
                kept(run_folder.records, "eager", "sdpa")

        with pytest.raises(CannotWrite, match=r"No space left on device.* is lost.* kept"):
            fill()
        run_folder.close()
        contents = journal.scan(tmp_path / "run")
        replicates = len(contents.entries) // 2
        assert replicates > 0
        assert {(entry.case, entry.process) for entry in contents.entries} == {
            (case, number) for case in SWEEP.cases() for number in range(replicates)
        }
        assert contents.aside == {}
        enlarge(tmp_path, 1_000)
        again = opened(tmp_path / "run")
        assert again.records.next_process(point()) == replicates
        kept(again.records, "eager", "sdpa")
        again.tabulate()
        again.close()
        assert load(tmp_path / "run")["processes"].tolist() == [replicates + 1] * 2


def test_git_leaves_out_a_run_folder_but_for_those_of_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a folder that the run made has a file for that; one that exists is the user's, and so is what it has."""
    monkeypatch.setattr(files, "RESULTS", tmp_path / "ours")
    (tmp_path / "results" / "old").mkdir(parents=True)
    for folder in ("results/old", "results/new", "ours/published/new"):
        left(tmp_path / folder, "eager")
        left(tmp_path / folder, "sdpa")
    assert [*tmp_path.rglob(files.IGNORED)] == [tmp_path / "results" / "new" / files.IGNORED]
    git(tmp_path, "init", "--quiet")
    seen = {line.split()[1] for line in git(tmp_path, "status", "--porcelain", "-uall").splitlines()}
    assert {Path(path).parent.as_posix() for path in seen} == {"results/old", "ours/published/new"}


def test_a_table_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    """The old one stays, and the journal holds everything."""
    run_folder = begun(tmp_path, "eager")
    with full_after(100), pytest.raises(CannotWrite, match=f"{RESULTS} can't be written"):
        run_folder.tabulate()
    assert sorted(path.name for path in tmp_path.iterdir()) == [ENVIRONMENT, journal.JOURNAL, PLAN, LOCK]


@pytest.mark.parametrize("module", ["lock", "journal"])
def test_a_folder_that_cannot_be_written_is_refused_at_once(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The refusal comes before any worker is asked for anything, and nothing of the folder changes."""
    left(tmp_path, "eager")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    patched, name = {"lock": (Path, "write_text"), "journal": (os, "open")}[module]

    def read_only(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(patched, name, read_only)
    refused = RunFolder(SWEEP, tmp_path)
    with pytest.raises(CannotWrite, match="can't be written: Read-only file system"):
        refused.prepare()
    monkeypatch.undo()
    refused.close()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_what_a_kill_left_is_mended_and_said(tmp_path: Path) -> None:
    """A stale lock, half a table and a torn line go, each line of notice names its file."""
    begun(tmp_path, "eager")
    content = json.loads((tmp_path / LOCK).read_text())
    (tmp_path / LOCK).write_text(json.dumps({**content, "started_s": content["started_s"] - 100}))
    (tmp_path / f".{RESULTS}.123").touch()
    with (tmp_path / journal.JOURNAL).open("ab") as file:
        file.write(b'{"schema')
    run_folder = opened(tmp_path)
    assert len(run_folder.notices) == 2
    assert LOCK in run_folder.notices[0]
    assert f"{journal.JOURNAL}: line 2 is no record" in run_folder.notices[1]
    run_folder.close()
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [ENVIRONMENT, journal.SET_ASIDE, journal.JOURNAL, PLAN, RESULTS]


# A folder that knows its plan and its environment


def test_another_sweep_is_refused_and_an_extended_one_is_kept(tmp_path: Path) -> None:
    """The plan of the folder holds what was added."""
    opened(tmp_path).close()
    wider = dataclasses.replace(SWEEP, implementations=("eager", "sdpa", "mha"))
    with pytest.raises(WrongRequest, match=r"another sweep.*eager, sdpa against eager, sdpa, mha"):
        opened(tmp_path, wider)
    opened(tmp_path, wider, extend=True).close()
    opened(tmp_path, wider).close()
    with pytest.raises(WrongRequest, match="another sweep"):
        opened(tmp_path)


def test_a_lost_environment_is_written_anew_if_all_records_come_from_here(tmp_path: Path) -> None:
    """The state of the machine is then not known."""
    left(tmp_path, "eager")
    identity = load_environment(tmp_path).identity  # type: ignore[union-attr]
    (tmp_path / ENVIRONMENT).unlink()
    run_folder = opened(tmp_path)
    assert [ENVIRONMENT in notice for notice in run_folder.notices] == [True]
    anew = load_environment(tmp_path)
    assert anew is not None
    assert (anew.identity, anew.state) == (identity, {})


@pytest.mark.parametrize("has_environment", [True, False])
@pytest.mark.parametrize("all_foreign", [True, False])
def test_records_of_two_environments_are_never_mixed(has_environment: bool, all_foreign: bool, tmp_path: Path) -> None:
    """Records from elsewhere are refused with their number and where they come from, and the folder stays."""
    first = begun(tmp_path, "eager")
    kept(first.records, "sdpa")
    first.close()
    path = tmp_path / journal.JOURNAL
    own = first.here.env_id
    lines = journal.read(tmp_path)
    elsewhere = [
        dataclasses.replace(each, origin=dataclasses.replace(each.origin, env_id="0123456789ab")) for each in lines
    ]
    number = 2 if all_foreign else 1
    path.write_bytes(b"".join(encode_line(each) + b"\n" for each in elsewhere[:number] + lines[number:]))
    if not has_environment:
        (tmp_path / ENVIRONMENT).unlink()
    before = path.read_bytes()
    with pytest.raises(WrongRequest, match=rf"{2 if all_foreign else 1} of 0123456789ab \(torch .*this is {own}"):
        opened(tmp_path)
    assert path.read_bytes() == before
