"""The processes of a run: servers that import torch once, and the workers and judges that they fork."""

import fcntl
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, Self

from bench.engine.variables import environment
from bench.engine.worker import Died, Server, Worker, started
from bench.machine import facts
from bench.plan.case import Point
from bench.plan.device import CUDA, KINDS
from bench.plan.errors import WrongRequest
from bench.plan.invocation import SUITE
from bench.plan.layers import layer_of
from bench.plan.names import libraries
from bench.plan.sweep import Sweep
from bench.plan.work import Roof
from bench.sampling.requests import Check, Checked, Warm
from impls.catalogue import name_of

MODULE = f"{SUITE}.measure.server"
"""The module of a server, which isn't imported here because it imports torch."""

CACHE = "compiled"
"""The folder of the compiler's cache, shared by all processes of a run."""

WARM_S = 300.0
"""The most seconds for using the compiler for the first time."""

CHECK_S = 120.0
"""The most seconds for importing the implementations."""

PREFIX = "attention-bench-"

LOCK = "owner.lock"
"""The file in a temporary folder that its owner keeps locked while it runs."""


class Settings(NamedTuple):
    """The settings that a process has from its start."""

    allocator: str
    threads: int
    kind: str

    @classmethod
    def of(cls, point: Point) -> Self:
        """Return the settings of a point."""
        return cls(point.allocator, point.threads, point.kind.name)


class Servers:
    """The servers with the same settings, one for each replicate of a point; `start` starts one.

    They start together. The first ones, one per core, fill the compiler's cache; the others read it. If one dies, all
    end, and start again when needed.
    """

    def __init__(self, size: int, start: Callable[[], Server], warm: Warm) -> None:
        self._size = size
        self._start = start
        self._warm = warm
        self._each: list[Server] = []
        self._is_ready = False
        self._plain: Worker | None = None

    def begin(self) -> None:
        """Begin to start missing servers, without waiting for them; raises Died."""
        with self._all_or_none():
            while len(self._each) < self._size:
                self._each.append(self._start())

    def wait(self) -> None:
        """Wait until all starting servers are idle, the first ones before the others; raises Died."""
        if self._is_ready or not self._each:
            return
        with self._all_or_none():
            side_by_side = facts.visible_cores()
            for part in (self._each[:side_by_side], self._each[side_by_side:]):
                for server in part:
                    server.ready()
                    self._plain = self._plain or server.fork("worker")
                    server.post(self._warm)
                for server in part:
                    server.receive(WARM_S)
        self._is_ready = True

    def fork(self, role: str, number: int = 0) -> Worker:
        """Return a new process for the replicate with this number; raises Died."""
        self.begin()
        self.wait()
        with self._all_or_none():
            return self._each[number % self._size].fork(role)

    def plain(self) -> Worker:
        """Return the process that was forked first, before any library was imported; raises Died.

        A process that is forked later can't ask CUDA about the GPUs. This one ends with the servers.
        """
        self.begin()
        self.wait()
        assert self._plain is not None
        return self._plain

    def close(self) -> None:
        """End all of them."""
        for each in (*self._each, *filter(None, [self._plain])):  # a server may be busy for long: don't wait for it
            each.close()
        self._each, self._plain, self._is_ready = [], None, False

    @contextmanager
    def _all_or_none(self) -> Iterator[None]:
        """End all if one dies. If the system refuses to start a process, raise Died and keep the others."""
        try:
            yield
        except OSError as error:
            raise Died("crashed", f"the system refused to start a process: {error.strerror}", is_outside=True) from None
        except Died:
            self.close()
            raise


class Pool:
    """The processes of a run: `size` servers for each combination of settings, and the processes that they fork.

    Each server serves one replicate of every point, so the processes of one replicate have the same code layout, and
    other replicates another. For a kind of device that isn't forked warm they have imported torch but no compiler and
    no library. `python` is the interpreter of another environment, None for this one. `libraries` are the models'
    libraries, which a server imports before it forks. `paths` are folders that are searched first for modules.
    With gradients a server also imports the modules that torch needs for them.
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
        self.roofs: dict[str, Roof] = {}
        """The best rates measured in this run, by setting of a device."""
        self._servers: dict[Settings, Servers] = {}
        self._judges: dict[Point, Worker] = {}
        self._stack = ExitStack()
        self.folder = self._stack.enter_context(scratch())
        """The folder for the outputs of this run's processes, removed with the pool."""
        self.cache = self.folder / CACHE
        """The folder of the compiler's cache."""

    @classmethod
    def of(cls, sweep: Sweep) -> Self:
        """Return the pool of a sweep, with a server for each replicate of a point."""
        needed = libraries(point.layer for point in sweep.points)
        trained = any(point.mode != "inference" for point in sweep.points)
        return cls(sweep.effort.processes, sweep.implementations, libraries=needed, with_gradients=trained)

    def begin(self, point: Point) -> None:
        """Begin to start missing servers of a point, without waiting for them.

        A failure to start is raised when the server is needed.
        """
        with suppress(Died):
            self._of(point).begin()

    def settle(self) -> None:
        """Wait until all starting servers are idle; a failure to start is raised later."""
        for servers in self._servers.values():
            with suppress(Died):
                servers.wait()

    def keep(self, points: Iterable[Point]) -> None:
        """End the servers whose settings none of these points has."""
        unneeded = {*self._servers} - {Settings.of(point) for point in points}
        if unneeded:
            self.dismiss()
        for settings in unneeded:
            self._servers.pop(settings).close()

    def worker(self, point: Point, number: int = 0) -> Worker:
        """Return a new process for a replicate of the point, without the implementation imported.

        The first call starts all of the point's servers together. Raises Died if one doesn't start.
        """
        return self._of(point).fork("worker", number)

    def judge(self, point: Point) -> Worker:
        """Return the judge of a point, which lives until it is dismissed; raises Died if it doesn't start."""
        if point not in self._judges:
            self._judges[point] = self._of(point).fork("judge")
        return self._judges[point]

    def dismiss(self, keep: Point | None = None) -> None:
        """End the judges, except the one of the point `keep`."""
        for point in {*self._judges} - {keep}:
            self.replace(point)

    def replace(self, point: Point) -> None:
        """End the judge of a point; the next request forks another."""
        if worker := self._judges.pop(point, None):
            worker.close()

    def check(self, points: Sequence[Point], needed: Sequence[str] = ()) -> Checked:
        """Return the facts about the machine and its imports that a worker's torch reports.

        Raises WrongRequest if no process starts, if one can't import a `needed` implementation, if only one process at
        a time can use a GPU of the points, or if torch can't use any of their devices.
        """
        devices = list(dict.fromkeys(point.device for point in points if point.kind is CUDA))
        layers = [*dict.fromkeys(point.layer for point in points if needed and layer_of(point.layer).is_users)]
        request = Check(self.implementations, needed, layers, devices)
        try:
            reply = self._of(points[0]).plain().ask(request, CHECK_S)
        except Died as death:
            raise WrongRequest(f"no worker process could be started: {death.detail}") from None
        if reply.mistakes:
            raise WrongRequest("; ".join(reply.mistakes))
        obstacles = reply.obstacles
        if all(obstacles.get(point.device) for point in points):
            raise WrongRequest("; ".join(dict.fromkeys(obstacles.values())))
        return reply

    def renew(self) -> None:
        """End all processes, so that fresh ones start next; the compiler's cache stays."""
        self.dismiss()
        for servers in self._servers.values():
            servers.close()

    def close(self) -> None:
        """End all processes, and remove their temporary files."""
        self.renew()
        self._stack.close()

    def _of(self, point: Point) -> Servers:
        """Return the servers of a point."""
        settings = Settings.of(point)
        if settings not in self._servers:
            self._servers[settings] = Servers(self.size, lambda: self._started(settings), self._warm(settings.kind))
        return self._servers[settings]

    def _started(self, settings: Settings) -> Server:
        allocator, threads, kind = settings
        variables = environment(allocator, threads, self.cache, self.python, self.paths, KINDS[kind])
        return Server(started(MODULE, variables, self.python))

    def _warm(self, kind: str) -> Warm:
        """Return the request that warms up a server: it uses once what its forked processes will use."""
        traces = bool(self.libraries) or any(name_of(name).entry.compiles for name in self.implementations)
        if KINDS[kind].is_forked_warm:
            return Warm(traces, self.with_gradients, self.implementations, self.libraries)
        return Warm(traces, self.with_gradients)


@contextmanager
def scratch() -> Iterator[Path]:
    """Yield a new temporary folder, locked while this process lives; folders of dead processes are removed."""
    for lock in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{LOCK}"):
        with suppress(OSError), lock.open("rb+") as file:  # its owner lives, or is another user
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent)
    with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        with (folder / "new").open("xb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            (folder / "new").rename(folder / LOCK)
            yield folder
