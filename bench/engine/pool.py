"""The processes of a run: servers that import torch once, and the workers and judges that they fork."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

from bench.engine.worker import Died, Server, Worker, environment, started
from bench.machine import facts
from bench.plan.case import Point
from bench.plan.device import CUDA, KINDS
from bench.plan.errors import WrongRequest
from bench.plan.invocation import SUITE
from bench.plan.names import is_own_code, libraries
from bench.plan.sweep import Sweep
from bench.plan.work import Roof
from impls.catalogue import IMPLEMENTATIONS, parse

MODULE = f"{SUITE}.measure.server"
"""The module of a server; it is not imported here, because it imports torch."""

CACHE = "compiled"
"""The folder of the compiler's cache, which all processes of a run share."""

WARM_S = 300.0
"""The most seconds for the first use of the compiler."""

CHECK_S = 120.0
"""The most seconds for importing the implementations."""

Settings = tuple[str, int, str]
"""Allocator, threads, and kind of device."""

Key = tuple[str, int, str, int]
"""Settings, and the number of the replicate."""


PREFIX = "attention-bench-"

REMOVE = 'read _; sleep 1; rm -rf -- "$0"'
"""What a shell does whose input ends with its parent; a second later the processes of the run have ended too."""

LOCK = "owner.lock"
"""The file in the folder that the owner keeps locked while it lives."""


class MachineCheck(NamedTuple):
    """What a worker's torch knows of the machine, the versions of other runtimes by package, and the user's modules.

    Each of these, which needed names bring in, has its file and a digest of its sources.
    """

    facts: dict[str, Any]
    runtimes: dict[str, str]
    modules: dict[str, tuple[str, str]]


class Pool:
    """The servers of a run: `size` for each combination of settings that hold from the start of a process.

    They start in parallel. The first ones, one per core, fill the compiler's cache; the others read it. Each serves one
    replicate of every point: the processes that it forks have one code layout, those of another replicate another one.
    Those of a kind of device that is not forked warm have imported torch, and no compiler and no library.
    `python` is the interpreter of another environment, None means this one. `libraries` are those that models come
    from; a server imports them before it forks. `paths` are folders that come first where modules are searched.
    With gradients a server also imports what torch imports for them.
    """

    def __init__(
        self,
        size: int,
        implementations: Sequence[str],
        python: str | None = None,
        libraries: Sequence[str] = (),
        paths: Sequence[str] = (),
        *,
        with_gradients: bool = False,
    ) -> None:
        self.size = size
        self.implementations = implementations
        self.libraries = libraries
        self.python = python
        self.paths = paths
        self.with_gradients = with_gradients
        self._servers: dict[Key, Server] = {}
        self._cold: set[Key] = set()
        """The servers that are not yet ready."""
        self._plain: dict[Settings, Server] = {}
        """The servers of judges by settings: they were forked before any library was imported."""
        self.roofs: dict[str, Roof] = {}
        """The best rates that this run has measured, by setting of a device."""
        self._judges: dict[Point, Worker] = {}
        self._scratch = Scratch()
        self.cache = self._scratch.folder / CACHE
        """The folder of the compiler's cache."""

    @classmethod
    def of(cls, sweep: Sweep, servers: int | None = None) -> Self:
        """Return the pool of a sweep, with a server for each replicate of a point, or with so many."""
        needed = libraries(point.layer for point in sweep.points)
        size = servers or sweep.effort.processes
        trained = any(point.mode != "inference" for point in sweep.points)
        return cls(size, sweep.implementations, libraries=needed, with_gradients=trained)

    @property
    def folder(self) -> Path:
        """The folder for the outputs of this run's processes; it is removed with the pool."""
        return self._scratch.folder

    def begin(self, point: Point) -> None:
        """Begin to start the servers of a point, unless they are there, and don't wait for them.

        What can't be started is said when it is needed.
        """
        with suppress(Died):
            self._begin(self._keys(point))

    def settle(self) -> None:
        """Wait until the servers that have begun to start do nothing more; one that can't start is said later."""
        with suppress(Died):
            self._start([*self._cold])

    def keep(self, points: Iterable[Point]) -> None:
        """End the servers of settings that none of these points has."""
        needed = {_settings(point) for point in points}
        unneeded = [key for key in self._servers if key[:3] not in needed]
        if unneeded:
            self.dismiss()
        for key in unneeded:
            self._close(key)

    def worker(self, point: Point, number: int = 0) -> Worker:
        """Return a new process for a replicate of the point, in which nothing of the implementation is imported.

        At the first call all of the point's servers start together. Raises Died if one doesn't start.
        """
        return self._fork(self._server(point, number), "worker")

    def judge(self, point: Point) -> Worker:
        """Return the judge of a point, which stays until it is dismissed. Raises Died if it doesn't start."""
        if point not in self._judges:
            self._judges[point] = self._fork(self._server(point, 0), "judge")
        return self._judges[point]

    def dismiss(self, keep: Point | None = None) -> None:
        """End the judges, except that of a point to keep."""
        for point in {*self._judges} - {keep}:
            self.replace(point)

    def replace(self, point: Point) -> None:
        """End the judge of a point, and fork another one at the next request."""
        if worker := self._judges.pop(point, None):
            worker.close()

    def check(self, points: Sequence[Point], needed: Sequence[str] = ()) -> MachineCheck:
        """Return the facts about the machine that a worker's torch knows, and what it imports.

        If a process is killed from outside meanwhile, all are started once more.
        Raises WrongRequest if no process starts, if one can't import a `needed` implementation, if only one process at
        a time can use a GPU of the points, or if torch can use no device of them.
        """
        devices = list(dict.fromkeys(point.device for point in points if point.kind is CUDA))
        layers = [*dict.fromkeys(point.layer for point in points if needed and is_own_code(point.layer))]
        names = {"implementations": self.implementations, "needed": needed, "layers": layers}
        request = {"request": "check", **names, "devices": devices}
        for is_last in (False, True):
            try:
                self._server(points[0], 0)
                # one that was forked warm could not ask CUDA about the GPUs
                with self._fork(self._plain[_settings(points[0])], "worker") as worker:
                    reply = worker.ask(request, CHECK_S)
                break
            except Died as death:
                if is_last or not death.is_outside:
                    raise WrongRequest(f"no worker process could be started: {death.detail}") from None
                self.renew()
        if reply["mistakes"]:
            raise WrongRequest("; ".join(reply["mistakes"]))
        obstacles: dict[str, str] = reply["obstacles"]
        if all(obstacles.get(point.device) for point in points):
            raise WrongRequest("; ".join(dict.fromkeys(obstacles.values())))
        return MachineCheck(reply["facts"], reply["runtimes"], reply["modules"])

    def renew(self) -> None:
        """End all processes, so that fresh ones start next; the compiler's cache stays."""
        self.dismiss()
        for key in [*self._servers]:
            self._close(key)
        self._cold.clear()

    def close(self) -> None:
        """End all processes, and remove their temporary files."""
        self.renew()
        self._scratch.close()

    def _server(self, point: Point, number: int) -> Server:
        self._start(self._keys(point))
        return self._servers[*_settings(point), number % self.size]

    def _keys(self, point: Point) -> list[Key]:
        return [(*_settings(point), index) for index in range(self.size)]

    def _begin(self, wanted: Sequence[Key]) -> None:
        for key in wanted:
            if key not in self._servers:
                self._servers[key] = self._started(*key[:3])
                self._cold.add(key)

    def _start(self, wanted: Sequence[Key]) -> None:
        """Start the servers that don't exist yet, and wait until they are ready, the first one before the others.

        If one dies, all of them end.
        """
        fresh = [key for key in wanted if key in self._cold or key not in self._servers]
        try:
            self._begin(fresh)
            self._cold.difference_update(fresh)
            side_by_side = facts.visible_cores()
            # later ones find in the cache what the first have compiled
            for keys in (fresh[:side_by_side], fresh[side_by_side:]):
                for key in keys:
                    self._servers[key].ready()
                    if key[3] == 0:
                        self._plain[key[:3]] = self._servers[key].server()
                    self._servers[key].post(self._warming(key[2]))
                for key in keys:
                    self._servers[key].receive(WARM_S)
        except OSError as error:
            raise _refused(error) from None
        except Died:
            for key in fresh:
                if key in self._servers:
                    self._close(key)
            raise

    def _fork(self, server: Server, role: str) -> Worker:
        """Return a new process of a server; one that has ended is replaced at the next call."""
        try:
            return server.fork(role)
        except OSError as error:
            raise _refused(error) from None
        except Died:
            for key in [key for key in self._servers if server in (self._servers[key], self._judging(key))]:
                self._close(key)
            raise

    def _close(self, key: Key) -> None:
        """End a server, and the one of judges that was forked from it."""
        if self._judging(key):
            self._plain.pop(key[:3]).close()
        self._servers.pop(key).close()

    def _judging(self, key: Key) -> Server | None:
        """Return the server of judges that was forked from a server, None if there is none."""
        return self._plain.get(key[:3]) if key[3] == 0 else None

    def _started(self, allocator: str, threads: int, kind: str) -> Server:
        variables = environment(allocator, threads, self.cache, self.python, self.paths, KINDS[kind])
        try:
            return Server(started(MODULE, variables, self.python))
        except OSError as error:
            raise _refused(error) from None

    def _warming(self, kind: str) -> dict[str, Any]:
        """Return the request to a server to use once what the processes that it forks will use."""
        is_warm = KINDS[kind].is_forked_warm
        names = {"implementations": self.implementations, "libraries": self.libraries} if is_warm else {}
        entries = (IMPLEMENTATIONS.get(parse(name).base) for name in self.implementations)
        traces = bool(self.libraries) or any(entry is not None and entry.compiles for entry in entries)
        used = {"traces": traces, "gradients": self.with_gradients}
        return {"request": "warm", **used, "implementations": (), "libraries": (), **names}


def _settings(point: Point) -> Settings:
    return point.allocator, point.threads, point.kind.name


def _refused(error: OSError) -> Died:
    """Return the death of a process that never began: there are too many, or its interpreter can't be run."""
    return Died("crashed", f"the system refused to start a process: {error.strerror}", is_outside=True)


class Scratch:
    """A new temporary folder, which a shell removes if this process is killed.

    Making one also removes folders whose owner is dead: those of this user with the prefix and the lock file.
    """

    def __init__(self) -> None:
        for lock in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{LOCK}"):
            _remove_if_abandoned(lock)
        while True:
            self._temporary = tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True)
            self.folder = Path(self._temporary.name)
            self._lock = (self.folder / LOCK).open("xb")
            self._remover = subprocess.Popen(
                ["sh", "-c", REMOVE, str(self.folder)], stdin=subprocess.PIPE, start_new_session=True
            )
            if _locked(self._lock) and (self.folder / LOCK).exists():
                return
            self.close()  # another process removed it before it was locked

    def close(self) -> None:
        """Remove the folder, if it is still there."""
        self._remover.kill()
        self._remover.communicate()
        self._temporary.cleanup()
        self._lock.close()


def _locked(file: IO[bytes]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _remove_if_abandoned(lock: Path) -> None:
    folder = lock.parent
    with suppress(OSError):  # its owner removed it meanwhile
        if folder.is_symlink() or lock.lstat().st_uid != os.getuid():
            return
        with lock.open("rb+") as file:
            if _locked(file):
                for path in folder.iterdir():
                    if path.name != LOCK:  # the lock goes last: a folder without it would never be removed
                        shutil.rmtree(path, ignore_errors=True)
                shutil.rmtree(folder, ignore_errors=True)
