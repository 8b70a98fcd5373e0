"""A worker seen from its parent: its settings, its replies, the message about its end, and what ends with it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from bench.engine.variables import environment
from bench.engine.worker import Died, Server, Worker, first_done, started, unheard
from bench.machine import facts
from tests.clock import wait_by_hand
from tests.engine.scripted_server import Do, Told

pytestmark = pytest.mark.slow

SCRIPTED = "tests.engine.scripted_server"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Return a server without torch."""
    with Server(started(SCRIPTED, environment("retained", 1, tmp_path_factory.mktemp("cache")))) as server:
        server.ready()
        yield server


@pytest.fixture
def worker(server: Server) -> Iterator[Worker]:
    """Return a worker that does as a request says."""
    with server.fork("worker") as forked:
        yield forked


@pytest.fixture
def pair(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Worker, Worker]]:
    """Return two workers that are waited for at once, by a parent that looks often."""
    monkeypatch.setattr("bench.engine.worker.POLL_S", 0.02)
    with server.fork("worker") as one, server.fork("worker") as other:
        yield one, other


def posted(worker: Worker, what: str, **request: Any) -> Worker:
    """Return a worker after a request that it may not have answered yet."""
    worker.post(Do(what, **request))
    return worker


def lives(pid: int) -> bool:
    """Return whether a process runs; an ended one may keep its id until it is reaped."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def has_ended(pid: int) -> bool:
    """Return whether a process that was killed ends, which a busy machine may take some time for."""
    deadline = time.monotonic() + 10
    while lives(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not lives(pid)


def asked(worker: Worker, what: str, **request: Any) -> Told:
    """Return the worker's reply."""
    return worker.ask(Do(what, **request), 10)


def test_a_request_is_answered(worker: Worker) -> None:
    """Each answer comes from the same process, and its stage is heard; a printed line of JSON isn't an answer."""
    heard: list[str] = []
    first, second = worker.ask(Do("print"), 10, heard.append), asked(worker, "answer")
    assert first.pid == second.pid == worker.pid != os.getpid()
    assert heard == ["warm-up"]


def test_signs_of_life_start_the_clock_anew(pair: tuple[Worker, Worker], monkeypatch: pytest.MonkeyPatch) -> None:
    """Work that takes longer than the limit, but is never silent for that long, isn't ended.

    Whoever waits for several processes waits as long.
    """
    clock, heard = wait_by_hand(monkeypatch), list[str]()

    def hear(stage: str) -> None:
        heard.append(stage)
        clock.sleep(60)

    one, other = pair
    work = Do("work", 5, 0.02)
    assert one.ask(work, 100, hear).pid == one.pid
    other.post(work)
    assert first_done({other: hear}, 100) is other
    assert heard == ["warm-up"] * 2 * 6


@pytest.mark.parametrize(
    "line",
    [
        "[" * 100_000,
        '{"type": "Replied", "id": "0", "reply": {}}',
        '{"type": "Replied", "id": "0", "reply": {}}\n{"type": "Replied", "id": "ID", "reply": {}}',
        '{"id": "ID"}',
        '{"type": "Replied", "id": "ID", "reply": {"pid": "many"}}',
    ],
)
def test_what_is_no_event_of_the_request_is_a_crash(worker: Worker, line: str) -> None:
    """The parent quotes the beginning of such a line and ends the worker; a late answer is treated the same."""
    asked(worker, "answer")
    with pytest.raises(Died, match=r"^sent an invalid (reply|line)") as death:
        asked(worker, "send", line=line)
    assert death.value.status == "crashed"
    assert line[:8] in death.value.detail or "invalid reply" in death.value.detail
    assert len(death.value.detail) < 150
    assert has_ended(worker.pid)


@pytest.mark.parametrize("has_pidfd", [True, False])
def test_a_death_is_noticed_while_a_child_holds_the_pipe(
    has_pidfd: bool, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The death is a crash, not a time-out. If the system has no pidfd, the parent looks from time to time."""
    if not has_pidfd:
        monkeypatch.delattr(os, "pidfd_open", raising=False)
        monkeypatch.setattr("bench.engine.worker.POLL_S", 0.1)
    with server.fork("worker") as worker:
        assert asked(worker, "answer").pid == worker.pid
        with pytest.raises(Died) as death:
            asked(worker, "leave a child", path=str(tmp_path / "child"))
    assert (death.value.status, death.value.detail) == ("crashed", "killed by SIGSEGV during warm-up")
    assert not death.value.is_outside
    os.kill(int((tmp_path / "child").read_text()), signal.SIGKILL)  # it would end with the server


@pytest.mark.parametrize("what", ["answer", "kill", "close pipe"])
def test_the_first_of_several_is_the_one_that_answers_or_ends(
    what: str, pair: tuple[Worker, Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one has only announced a stage, which isn't an answer, so it is waited for.

    One that can't answer any more is ended, although it lives. Once an answer is there, a worker is done however often
    it is asked, and until the next request alone.
    """
    busy, done = pair
    posted(busy, "hang"), posted(done, what)
    heard: list[str] = []
    assert first_done({busy: heard.append, done: unheard}, 10) is done
    while not heard:
        assert not busy.is_done(10, heard.append)
    assert heard == ["warm-up"]
    assert not busy.is_done(10)
    assert done.is_done(10)
    if what == "kill":
        with pytest.raises(Died, match="killed by SIGKILL"):
            done.receive(10)
    elif what == "close pipe":
        monkeypatch.setattr("bench.engine.worker.END_S", 0.1)
        with pytest.raises(Died, match=r"^closed the pipe") as death:
            done.receive(10)
        assert death.value.status == "crashed"
        assert has_ended(done.pid)
    else:
        assert done.receive(10).pid == done.pid
    if what == "answer":
        assert not posted(done, "hang").is_done(10)


def test_silence_is_a_timeout(pair: tuple[Worker, Worker]) -> None:
    """A silent one of several is done when its time is up; one that said something meanwhile has more of it.

    The silent one is ended, and the message says at which stage.
    """
    silent, talks = pair
    posted(silent, "hang"), posted(talks, "work", parts=200, part_s=0.05)
    assert first_done(dict.fromkeys((talks, silent), unheard), 0.5) is silent
    with pytest.raises(Died, match=r"no progress for 0\.5 s during warm-up") as death:
        silent.receive(0.5)
    assert death.value.status == "timeout"
    assert has_ended(silent.pid)


def test_an_end_is_a_crash_in_words(pair: tuple[Worker, Worker]) -> None:
    """The exit status and the last line on standard error are said, or the signal: without another worker's words.

    SIGKILL, as the kernel sends when memory runs out, is not known to be the fault of the case.
    """
    one, other = pair
    with pytest.raises(Died) as death:
        asked(one, "exit")
    assert death.value.status == "crashed"
    assert death.value.detail == "ended with exit status 3 during warm-up: last words"
    with pytest.raises(Died) as death:
        asked(other, "kill")
    assert death.value.detail == "killed by SIGKILL (perhaps out of memory) during warm-up"
    assert death.value.is_outside


def test_a_worker_dies_with_its_parent() -> None:
    """If the parent is killed outright, neither its server nor a worker of that stays behind."""
    script = (
        "import os, time; from bench.engine.worker import Server, started\n"
        f"server = Server(started({SCRIPTED!r}, os.environ)); server.ready(); worker = server.fork('worker')\n"
        "print(server.pid, worker.pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pids = [int(pid) for pid in parent.stdout.readline().split()]
    assert all(lives(pid) for pid in pids)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    assert all(has_ended(pid) for pid in pids)


def test_the_settings_of_a_process_are_variables_of_its_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The allocator's settings are variables, without the user's own.

    So are the settings of threads, which sleep soon after a call unless the user says otherwise.
    The path is the parent's, so that module:attribute means the same in both. On macOS forking must be allowed.
    """
    monkeypatch.setenv("MALLOC_MMAP_MAX_", "7")
    monkeypatch.setenv("MALLOC_ARENA_MAX", "1")
    monkeypatch.setenv("KMP_BLOCKTIME", "7")
    monkeypatch.delenv("GOMP_SPINCOUNT", raising=False)
    retained, system = environment("retained", 2, tmp_path), environment("system", 2, tmp_path)
    assert retained["MALLOC_MMAP_MAX_"] == "0"
    assert retained["MALLOC_TRIM_THRESHOLD_"] == "17179869184"
    assert not {"MALLOC_MMAP_MAX_", "MALLOC_ARENA_MAX"} & system.keys()
    assert retained["OMP_NUM_THREADS"] == "2"
    assert int(retained["GOMP_SPINCOUNT"]) > 0
    assert retained["KMP_BLOCKTIME"] == "7"
    assert retained["OBJC_DISABLE_INITIALIZE_FORK_SAFETY"] == "YES"
    path = [entry or str(Path.cwd()) for entry in sys.path]  # in which a .pth file may name a folder twice
    assert retained["PYTHONPATH"].split(os.pathsep) == [*dict.fromkeys(path)]


@pytest.mark.skipif(bool(facts.huge_pages_missing()), reason="no huge pages")
def test_huge_pages_are_asked_for_at_the_start_of_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's own settings of glibc's allocator are removed, its other settings stay."""
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=2:glibc.rtld.nns=5")
    monkeypatch.setenv("THP_MEM_ALLOC_ENABLE", "1")
    retained, system = (environment(name, 2, tmp_path) for name in ("retained", "system"))
    assert retained["GLIBC_TUNABLES"] == "glibc.rtld.nns=5:glibc.malloc.hugetlb=1"
    assert retained["THP_MEM_ALLOC_ENABLE"] == "1"
    assert system["GLIBC_TUNABLES"] == "glibc.rtld.nns=5"
    assert "THP_MEM_ALLOC_ENABLE" not in system


@pytest.mark.parametrize("python", [None, "/other/python"])
def test_a_checkout_comes_before_the_folder_where_the_command_was_given(
    python: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user may stand in another version of the same code."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    monkeypatch.setenv("PYTHONPATH", "/mine")
    variables = environment("retained", 1, tmp_path, python, ("/checkout/src", "/checkout"))
    path = variables["PYTHONPATH"].split(os.pathsep)
    assert path[:3] == ["/checkout/src", "/checkout", str(tmp_path)]
    if python:  # nothing of this environment's packages
        assert path[3:] == [str(Path(__file__).parents[2]), "/mine"]


@pytest.mark.skipif(sys.platform != "linux", reason="orphans are found on Linux alone")
def test_what_left_its_session_ends_with_the_server(tmp_path: Path) -> None:
    """The server has adopted a process whose parent is dead."""
    with Server(started(SCRIPTED, environment("retained", 1, tmp_path))) as server:
        server.ready()
        with server.fork("worker") as worker, pytest.raises(Died):
            asked(worker, "leave a child", path=str(tmp_path / "child"))
        child = int((tmp_path / "child").read_text())
        assert lives(child)
    assert has_ended(child)
