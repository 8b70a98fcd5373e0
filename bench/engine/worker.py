"""The parent's side of its processes: start or fork, requests, replies, and messages about their ends."""

import contextlib
import os
import secrets
import selectors
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, Self, TypeVar

import psutil
from msgspec import MsgspecError, Raw
from msgspec.json import decode, encode

from bench.engine.process import Process, launch
from bench.sampling.requests import Fork, Posted, Reap, Replied, Request, Start, Working

R = TypeVar("R")

BOOTSTRAP = str(Path(__file__).with_name("bootstrap.py"))
"""The program with which a worker, even in another environment, imports this suite."""

START_S = 120.0
"""The most seconds for importing torch."""

END_S = 5.0
"""The most seconds until a worker exits after it closed its end of the pipe."""

SELECT_S = 3600.0
"""The most seconds of a single system call that waits; longer waits repeat it."""

POLL_S = 1.0
"""The seconds between two checks that a worker lives, on systems without pidfd."""

EXCERPT_BYTES = 60
LOG_END_BYTES = 1 << 14
"""The bytes that are read at the end of a log for its last line."""

OUTSIDE_SIGNALS = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGKILL, signal.SIGTERM})
"""Signals from other processes, or from the system when memory runs out; they don't show that a case is the cause."""

Heard = Callable[[str], None]
"""`heard(stage)` is called for every event from a worker."""


def unheard(*_event: object) -> None:
    """Ignore an event; the default for functions that get one."""


class Died(Exception):  # noqa: N818 - an outcome that the engine turns into a row
    """A process ended, was silent for too long, or sent a line that is no event.

    `is_outside` is true if the case may not be the cause: a signal of OUTSIDE_SIGNALS ended its process, or the process
    was a server or a judge.
    """

    def __init__(self, status: str, detail: str, *, is_outside: bool = False) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.is_outside = is_outside


class Worker:
    """A process that serves requests on a pipe until it is closed; `start` makes it from the pipe's other end.

    Raises the errors of `start`.
    """

    def __init__(self, start: Callable[[socket.socket, IO[bytes]], Process]) -> None:
        self._id, self._kind = "", None
        self._stage = "start"
        self._buffer, self._is_over = b"", False
        self._log_start = 0
        self._cpu_s = 0.0
        with ExitStack() as files:
            self._log = files.enter_context(tempfile.TemporaryFile())  # without a name, so that a kill leaves no file
            self._pipe, theirs = socket.socketpair()
            files.enter_context(self._pipe)
            with theirs:
                self._process = start(theirs, self._log)
            files.callback(self._process.end)
            self._files = files.pop_all()

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    @property
    def cpu_s(self) -> float:
        """The CPU seconds of the process according to the system; the last known ones after its end."""
        with contextlib.suppress(psutil.Error):
            times = psutil.Process(self.pid).cpu_times()
            self._cpu_s = times.user + times.system
        return self._cpu_s

    def ready(self) -> None:
        """Wait until the worker has imported torch; raises Died if it doesn't start."""
        self.ask(Start(), START_S)

    def ask(
        self,
        request: Request[R],
        timeout_s: float,
        heard: Heard = unheard,
        *,
        stage: str = "start",
        descriptors: Sequence[int] = (),
    ) -> R:
        """Send a request and return the reply; raises the errors of `post` and `receive`."""
        self.post(request, stage=stage, descriptors=descriptors)
        reply: R = self.receive(timeout_s, heard)
        return reply

    def post(self, request: Request[Any], *, stage: str = "start", descriptors: Sequence[int] = ()) -> None:
        """Send a request without waiting for the reply; raises Died if the worker has closed the pipe.

        `stage` is the worker's stage until it announces another; `descriptors` are handed to it.
        """
        self._stage, self._alive_s = stage, time.monotonic()
        self._id, self._kind = secrets.token_hex(8), request.reply
        line = encode(Posted(self._id, Raw(encode(request)))) + b"\n"
        try:
            if descriptors:
                line = line[socket.send_fds(self._pipe, [line], descriptors) :]
            self._pipe.sendall(line)
        except (BrokenPipeError, ConnectionResetError):
            raise self._ended() from None

    def receive(self, timeout_s: float, heard: Heard = unheard) -> Any:
        """Return the reply to the posted request; each event from the worker restarts the timeout.

        Raises Died if the worker ends, is silent for `timeout_s`, or sends a line that is neither an event of this
        request nor a reply of its type.
        """
        first_done({self: heard}, timeout_s)
        if b"\n" not in self._buffer:
            if self._is_over:
                raise self._ended()
            self._process.end()
            raise Died("timeout", f"no progress for {timeout_s:g} s during {self._stage}")
        line, _, self._buffer = self._buffer.partition(b"\n")
        event = _event(line)
        if not isinstance(event, Replied) or event.id != self._id:
            raise self._foreign(line)
        self._log_start = os.fstat(self._log.fileno()).st_size
        try:
            return decode(event.reply, type=self._kind)
        except (MsgspecError, RecursionError) as error:
            self._process.end()
            raise Died("crashed", f"sent an invalid reply: {error}") from None

    def is_done(self, timeout_s: float, heard: Heard = unheard) -> bool:
        """Return whether `receive` would return or raise at once; `heard` gets each announced stage."""
        self._read()
        while b"\n" in self._buffer:
            line, _, rest = self._buffer.partition(b"\n")
            event = _event(line)
            if not isinstance(event, Working) or event.id != self._id:
                return True
            self._stage, self._alive_s, self._buffer = event.stage, time.monotonic(), rest
            heard(event.stage)
        return self._is_over or self.left_s(timeout_s) <= 0

    def left_s(self, timeout_s: float) -> float:
        """Return the seconds until the worker times out if it stays silent."""
        return self._alive_s + timeout_s - time.monotonic()

    def _read(self) -> None:
        """Read the worker's output so far, and note if no more will come.

        A child of the worker may keep the pipe open, so the worker's end is checked too, before the last reply is read.
        """
        has_ended = self._process.has_ended()
        while not self._is_over:
            try:
                chunk = self._pipe.recv(1 << 20, socket.MSG_DONTWAIT)
            except BlockingIOError:
                self._is_over = has_ended
                return
            except ConnectionResetError:
                chunk = b""
            self._is_over = not chunk
            self._buffer += chunk

    @property
    def watched(self) -> list[Any]:
        """The objects that become readable when the worker sends something or ends."""
        return [self._pipe, *([] if self._process.descriptor is None else [self._process.descriptor])]

    def close(self) -> None:
        """End the process and its descendants, and close its files."""
        self._files.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _foreign(self, line: bytes) -> Died:
        self._process.end()
        excerpt = line[:EXCERPT_BYTES].decode(errors="backslashreplace")
        more = " …" if len(line) > EXCERPT_BYTES else ""
        return Died("crashed", f"sent an invalid line during {self._stage}: {excerpt!r}{more}")

    def _ended(self) -> Died:
        by_itself = self._process.has_ended(END_S)
        code = self._process.end()
        if not by_itself:
            return Died("crashed", f"closed the pipe to its parent during {self._stage}")
        names = {number.value: number.name for number in signal.Signals}
        how = f"killed by {names.get(-code, f'signal {-code}')}" if code < 0 else f"ended with exit status {code}"
        hint = " (perhaps out of memory)" if code == -signal.SIGKILL else ""
        detail = f"{how}{hint} during {self._stage}{self._last_log_line()}"
        return Died("crashed", detail, is_outside=-code in OUTSIDE_SIGNALS)

    def _last_log_line(self) -> str:
        """Return the last line of the log since the last reply, after a colon; empty if there is none."""
        end = os.fstat(self._log.fileno()).st_size
        start = max(self._log_start, end - LOG_END_BYTES)
        lines = os.pread(self._log.fileno(), end - start, start).decode(errors="replace").splitlines()
        # the profiler of some builds of torch writes lines that begin with USDT
        messages = [line.strip() for line in lines if line.strip() and not line.startswith("USDT")]
        return f": {messages[-1]}" if messages else ""


def first_done(workers: Mapping[Worker, Heard], timeout_s: float) -> Worker:
    """Wait until `receive` would return or raise at once for one of the workers, and return it."""
    with selectors.PollSelector() as selector:  # poll needs no descriptor of its own
        watched = [each for worker in workers for each in worker.watched]
        for each in watched:
            selector.register(each, selectors.EVENT_READ)
        longest_s = SELECT_S if len(watched) == 2 * len(workers) else POLL_S
        while True:
            for worker, heard in workers.items():
                if worker.is_done(timeout_s, heard):
                    return worker
            left_s = min(worker.left_s(timeout_s) for worker in workers)
            selector.select(min(max(0.0, left_s), longest_s))


class Server(Worker):
    """A process that has imported torch and forks workers; closing it ends them.

    Raises Died if it ends meanwhile.
    """

    def fork(self, role: str) -> Worker:
        """Return a new process that does the work of a role."""

        def start(pipe: socket.socket, log: IO[bytes]) -> Process:
            pid = self.ask(Fork(role), START_S, descriptors=(pipe.fileno(), log.fileno()))
            return Process(pid, self._reap)

        return Worker(start)

    def _reap(self, pid: int) -> int:
        try:
            return self.ask(Reap(pid), START_S)
        except (Died, OSError):  # it has ended or was closed, with its processes
            return -signal.SIGKILL


def started(
    module: str, variables: Mapping[str, str], python: str | None = None
) -> Callable[[socket.socket, IO[bytes]], Process]:
    """Return a function that starts a module of this suite as a process with these environment variables.

    `python` is the interpreter of another environment with its own packages; None means this one. The function raises
    OSError if it can't be started.
    """

    def start(pipe: socket.socket, log: IO[bytes]) -> Process:
        command = [python or sys.executable, "-P", BOOTSTRAP, module, str(pipe.fileno())]
        return launch(command, log, variables, [pipe.fileno()])

    return start


def _event(line: bytes) -> Working | Replied | None:
    """Return the event of a line, None for any other line."""
    try:
        return decode(line, type=Working | Replied)
    except (MsgspecError, RecursionError):
        return None
