"""The processes of a run: how many servers there are, when fresh ones start, the judge, and temporary folders."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from bench.engine import pool
from bench.engine.pool import LOCK, PREFIX, Pool, scratch
from bench.engine.worker import Died, Worker
from bench.plan.errors import WrongRequest
from tests.engine.scripted_server import Do
from tests.engine.test_worker import has_ended, lives
from tests.make.points import point

pytestmark = pytest.mark.slow

CHECK_S = 10


KILLED = """
import os, pathlib, signal, tempfile
from bench.engine.pool import scratch
tempfile.tempdir = {!r}
with scratch() as folder:
    (folder / "compiled").mkdir()
    (folder / "compiled" / "kernel.so").touch()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def one(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pool]:
    """Return a pool of one scripted server for each setting."""
    monkeypatch.setattr(pool, "MODULE", "tests.engine.scripted_server")
    with closing(Pool(1, ["eager"])) as servers:
        yield servers


@pytest.fixture
def two(one: Pool) -> Pool:
    """Return a pool of two scripted servers for each setting."""
    one.size = 2
    return one


def server_of(worker: Worker) -> int:
    """Return the id of a worker's server."""
    return psutil.Process(worker.pid).ppid()


def children() -> set[int]:
    """Return the children of this process."""
    return {child.pid for child in psutil.Process().children()}


def test_servers_take_turns_and_are_fresh_after_a_renewal(two: Pool) -> None:
    """Both start together; the third replicate of a point comes from the first again, until they are renewed.

    Two workers of one replicate are processes of one server. Closing ends all, and the temporary folder goes.
    """
    before = children()
    first = [server_of(two.worker(point()))]
    assert len(begun := children() - before) == 2
    first += [server_of(two.worker(point(), number)) for number in (1, 2)]
    assert first[0] == first[2] != first[1]
    assert {*first} == begun
    two.renew()
    assert not any(lives(pid) for pid in first)
    with two.worker(point()) as one, two.worker(point()) as other:
        assert one.pid != other.pid
        assert server_of(one) == server_of(other)
        fresh = {server_of(one), server_of(two.worker(point(), 1))}
        assert not fresh & {*first}
        pids = {one.pid, two.judge(point()).pid, *fresh}
        two.close()
    assert all(has_ended(pid) for pid in pids)
    assert not two.folder.exists()


def test_the_processes_of_a_gpu_are_forked_from_a_server_that_can_fork_them(one: Pool) -> None:
    """It imports no library, and what tracing and gradients need. Those of a CPU in the same run come from a warm one.

    The machine is described by one that may ask CUDA. The first kernel of a GPU starts no processes that compile
    others.
    """
    one.libraries, one.with_gradients = ("timm",), True
    with one.worker(point()) as on_cpu, one.worker(point(device="cuda:1")) as on_gpu:
        of_cpu, of_gpu = (worker.ask(Do("tell"), CHECK_S) for worker in (on_cpu, on_gpu))
        assert server_of(one.judge(point(device="cuda"))) == server_of(on_gpu)
    assert (of_cpu.warmed, of_gpu.warmed) == (["traces", "gradients", "eager", "timm"], ["traces", "gradients"])
    threads = [each.variables.get("TORCHINDUCTOR_COMPILE_THREADS") for each in (of_cpu, of_gpu)]
    assert threads == [os.environ.get("TORCHINDUCTOR_COMPILE_THREADS"), "1"]


def test_servers_that_begin_early_fork_the_workers(two: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The beginning waits for nothing and refuses nothing; a server that can't start is said by who needs it."""
    before = children()
    with monkeypatch.context() as patch:
        patch.setattr(pool, "MODULE", "tests.engine.no_such_server")
        two.begin(point())
        two.settle()
        with pytest.raises(WrongRequest, match="No module named"):
            two.check([point()])
    two.begin(point())
    begun = children() - before
    two.settle()
    assert {server_of(two.worker(point(), number)) for number in (0, 1)} == begun


def test_a_server_that_is_killed_is_replaced(one: Pool) -> None:
    """Its workers end as if killed, the one that it can't fork is lost, and the next one comes from a fresh server."""
    worker = one.worker(point())
    first = server_of(worker)
    os.kill(first, signal.SIGKILL)
    with pytest.raises(Died, match="SIGKILL") as death:
        worker.ask(Do("hang"), CHECK_S)
    assert death.value.is_outside
    with pytest.raises(Died, match="SIGKILL"):
        one.worker(point())
    worker.close()
    assert has_ended(worker.pid)  # it isn't waited for
    assert server_of(one.worker(point())) != first


def test_what_can_not_be_used_is_a_wrong_request(one: Pool) -> None:
    """Only the needed implementations count, but the GPUs of all points.

    That torch can't use a device is one if no point has another device.
    Else the check returns what torch knows.
    """
    with pytest.raises(WrongRequest, match="'nosuch:kernel' can't be imported"):
        one.check([point()], ["eager", "nosuch:kernel"])
    with pytest.raises(WrongRequest, match="cuda:1"):
        one.check([point(), point(device="cuda:0"), point(device="cuda:1")])
    with pytest.raises(WrongRequest, match=r"^no CUDA device: too old$"):
        one.check([point(device="cuda:2"), point(device="cuda:2", batch=3)])
    assert one.check([point(), point(device="cuda:2")])
    assert one.check([point(), point(device="cuda:0")]).facts["torch"] == "2.0"


def test_servers_that_no_point_needs_end(one: Pool) -> None:
    """Their judge ends too; servers with a point's settings stay, and any may start again.

    The number of threads and the allocator hold from the start of a process; the tokens don't.
    """
    points = (point(), point(threads=2), point(allocator="system"))
    kept, ended, system = (server_of(one.worker(at)) for at in points)
    assert len({kept, ended, system}) == 3
    judge = one.judge(point(threads=2)).pid
    one.keep([point(num_tokens=9), point(allocator="system")])
    assert lives(kept)
    assert not any(lives(pid) for pid in (ended, judge))
    assert server_of(one.worker(point(num_tokens=9))) == kept
    assert server_of(one.worker(point(threads=2))) != ended


@pytest.fixture(autouse=True)
def _temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have temporary folders made in the test's own one."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_what_a_kill_left_behind_is_removed_at_the_next_start(tmp_path: Path) -> None:
    """The folder of a killed process is removed with its contents; a folder whose owner lives stays."""
    with scratch() as living:
        subprocess.run([sys.executable, "-c", KILLED.format(str(tmp_path))], check=False)
        assert len([*tmp_path.iterdir()]) == 2
        with scratch() as fresh:
            assert {*tmp_path.iterdir()} == {living, fresh}
    assert not [*tmp_path.iterdir()]


def test_nothing_else_is_touched(tmp_path: Path) -> None:
    """A folder of the user's own with our prefix stays, and so does one of another prefix with a lock file."""
    (tmp_path / f"{PREFIX}mine").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / LOCK).touch()
    (tmp_path / f"{PREFIX}link").symlink_to(tmp_path / "other")
    with scratch():
        pass
    assert {path.name for path in tmp_path.iterdir()} == {f"{PREFIX}mine", "other", f"{PREFIX}link"}
    assert (tmp_path / "other" / LOCK).exists()
