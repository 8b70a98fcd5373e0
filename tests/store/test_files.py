"""Files are replaced at once or not at all, and one process writes into a folder: a stale lock is taken over by one."""

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from bench.plan.errors import CannotWrite, WrongRequest
from bench.store import files
from bench.store.files import LOCK, Holder, Lock, is_held
from tests.store.disk import full_after


def test_a_file_is_made_and_replaced(tmp_path: Path) -> None:
    """Text, bytes and parts take the place of what was there, and nothing else stays; no name has to be UTF-8."""
    path = tmp_path / "file"
    for content, expected in (("ü\n", "ü\n".encode()), (b"second", b"second"), (os.fsdecode(b"a \xff"), b"a \xff")):
        files.replace(path, content)
        assert path.read_bytes() == expected
    files.replace(path, iter([b"in ", b"parts"]))
    assert path.read_bytes() == b"in parts"
    assert list(tmp_path.iterdir()) == [path]


def test_on_a_full_disk_the_old_file_stays(tmp_path: Path) -> None:
    """What can't be written whole is not written, and no half of it is left."""
    path = tmp_path / "file"
    path.write_text("old")
    with full_after(10), pytest.raises(OSError):  # noqa: PT011 - which one is the system's
        files.replace(path, "x" * 1000)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_kill_left_is_removed(tmp_path: Path) -> None:
    """Only the leftovers of the named files go."""
    for name in (".file.123", "file", ".other.123", ".hidden"):
        (tmp_path / name).touch()
    files.clear(tmp_path, ["file"])
    assert sorted(path.name for path in tmp_path.iterdir()) == [".hidden", ".other.123", "file"]


def written(folder: Path, **changes: Any) -> Holder:
    """Write a lock of this process, some of its facts changed, and return its holder."""
    holder = dataclasses.replace(Holder.here(), **changes)
    (folder / LOCK).write_text(json.dumps(dataclasses.asdict(holder)))
    return holder


def ended() -> int:
    """Return the number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def names_in(folder: Path) -> list[str]:
    """Return the names in a folder."""
    return sorted(path.name for path in folder.iterdir())


def no_links(*_: object) -> None:
    """Refuse a hard link as file systems without them do."""
    raise PermissionError(1, "Operation not permitted")


def link_and_fail(source: Path, path: Path, link: Callable[..., None] = os.link) -> None:
    """Make a hard link and report that the name is taken, as NFS may do."""
    link(source, path)
    raise FileExistsError


@pytest.fixture(params=[os.link, no_links, link_and_fail], ids=["hard links", "no links", "NFS"])
def _file_systems(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", request.param)


on_all = pytest.mark.usefixtures("_file_systems")


@on_all
def test_a_second_writer_is_refused_with_the_first_ones_host_and_process(tmp_path: Path) -> None:
    """While a lock is held the folder has one more file, which names this process; when it is given back, none."""
    first = Lock(tmp_path)
    first.acquire()
    assert names_in(tmp_path) == [LOCK]
    assert json.loads((tmp_path / LOCK).read_text())["pid"] == os.getpid()
    assert first.notice == ""
    with pytest.raises(WrongRequest, match=rf"written by process {os.getpid()} on {Holder.here().host}; wait"):
        Lock(tmp_path).acquire()
    assert is_held(tmp_path)
    first.check()
    assert names_in(tmp_path) == [LOCK]
    first.release()
    assert names_in(tmp_path) == []
    assert not is_held(tmp_path)
    Lock(tmp_path).acquire()


@on_all
@pytest.mark.parametrize(
    "changes",
    [
        lambda: {"pid": ended()},
        lambda: {"started_s": Holder.here().started_s - 100},
        lambda: {"boot": "an earlier one", "machine": Holder.here().machine},
    ],
    ids=["process ended", "number given anew", "machine restarted"],
)
def test_a_stale_lock_is_taken_over_and_said(
    changes: Callable[[], dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is gone from this machine writes no more."""
    monkeypatch.setattr(files, "_text", lambda path: path)  # a machine that has a name and a start
    stale = written(tmp_path, **changes())
    mine = Lock(tmp_path)
    mine.acquire()
    assert f"process {stale.pid} on {stale.host}" in mine.notice
    mine.check()
    assert names_in(tmp_path) == [LOCK]


@pytest.mark.parametrize(
    "changes",
    [
        {"host": "elsewhere"},
        {"machine": "another with the same name", "boot": "another"},
        {"machine": "", "boot": ""},
        {"pids": "another container"},
    ],
)
def test_a_process_that_cannot_be_seen_may_be_at_work(changes: dict[str, Any], tmp_path: Path) -> None:
    """Such a lock is refused, whether or not its process number is in use here, with the command that removes it."""
    written(tmp_path, pid=ended(), **changes)
    with pytest.raises(WrongRequest, match=f"can't be seen from here.*rm {tmp_path / LOCK}"):
        Lock(tmp_path).acquire()
    assert names_in(tmp_path) == [LOCK]


def test_a_lock_that_cannot_be_understood_is_refused(tmp_path: Path) -> None:
    """Such a lock may be half written, so nobody may take it."""
    for content in (b"", b"{", b"[]", b'{"pid": 1}', b"\xff"):
        (tmp_path / LOCK).write_bytes(content)
        with pytest.raises(WrongRequest, match=f"is no lock.*rm {tmp_path / LOCK}"):
            Lock(tmp_path).acquire()


@pytest.mark.slow
@pytest.mark.parametrize("has_links", [True, False])
def test_a_stale_lock_is_taken_over_by_one_of_many(tmp_path: Path, has_links: bool) -> None:
    """Of processes that find it stale at the same moment exactly one has it, and the others name that one."""
    folders = [tmp_path / f"run {number}" for number in range(5)]
    for folder in folders:
        folder.mkdir()
        written(folder, pid=ended())
    program = f"""
import os
from pathlib import Path
from bench.plan.errors import WrongRequest
from bench.store.files import Lock
{"" if has_links else "def no(*_): raise PermissionError"}
{"" if has_links else "os.link = no"}
for folder in map(Path, {[*map(str, folders)]!r}):
    lock = Lock(folder)
    print("ready", flush=True)
    while not (folder / "begin").exists():
        pass
    try:
        lock.acquire()
        print("mine", flush=True)
    except WrongRequest:
        print("refused", flush=True)
input()
"""
    takers = [
        subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    for folder in folders:
        assert [taker.stdout.readline() for taker in takers if taker.stdout] == ["ready\n"] * 4
        (folder / "begin").touch()
        answers = [taker.stdout.readline() for taker in takers if taker.stdout]
        assert sorted(answers) == ["mine\n", *["refused\n"] * 3]
    for taker in takers:
        taker.communicate("\n")


def test_one_that_died_while_it_took_a_lock_over_does_not_bar_it(tmp_path: Path) -> None:
    """The claim of a dead writer is as stale as the lock that it claimed."""
    first = written(tmp_path, pid=ended())
    (tmp_path / LOCK).rename(tmp_path / "kept")
    second = written(tmp_path, pid=ended())
    (tmp_path / LOCK).rename(tmp_path / f".{LOCK}.of-{first.token}")
    (tmp_path / "kept").rename(tmp_path / LOCK)
    assert second.token != first.token
    mine = Lock(tmp_path)
    mine.acquire()
    mine.check()
    assert names_in(tmp_path) == [LOCK]


def test_a_claim_that_comes_too_late_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that looked before another took over and claims afterwards finds that the lock is not what it was."""
    written(tmp_path, pid=ended())
    winner, late = Lock(tmp_path), Lock(tmp_path)
    link = files._link_or_create

    def overtaken(source: Path, path: Path) -> bool:
        if ".of-" in path.name and not winner.notice:
            monkeypatch.setattr(files, "_link_or_create", link)
            winner.acquire()
        return link(source, path)

    monkeypatch.setattr(files, "_link_or_create", overtaken)
    with pytest.raises(WrongRequest, match="is being written by"):
        late.acquire()
    assert winner.notice
    winner.check()
    assert names_in(tmp_path) == [LOCK]


def test_a_lock_that_was_removed_or_taken_is_not_ours_any_more(tmp_path: Path) -> None:
    """The lock's writer gets an error, and doesn't remove what another one made."""
    mine = Lock(tmp_path)
    mine.acquire()
    (tmp_path / LOCK).unlink()
    with pytest.raises(CannotWrite, match="is gone"):
        mine.check()
    other = Lock(tmp_path)
    other.acquire()
    with pytest.raises(CannotWrite, match="was taken by process"):
        mine.check()
    mine.release()
    other.check()


def test_a_clock_that_is_set_changes_no_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """The start of a process is counted from the start of the machine, not from a date."""
    before = Holder.here()
    boot_s, created_s = psutil.boot_time(), psutil.Process().create_time()
    monkeypatch.setattr(psutil, "boot_time", lambda: boot_s + 3600)
    monkeypatch.setattr(psutil.Process, "create_time", lambda _: created_s + 3600)
    assert not before.is_gone(Holder.here())
