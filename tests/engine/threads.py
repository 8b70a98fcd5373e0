"""A server whose workers are threads of this process, for faster tests of the engine's requests and decisions.

What ends, kills, hangs or forks a process needs the scripted server in a process of its own.
"""

import contextlib
import itertools
import os
import socket
import threading
import time
from collections.abc import Callable
from typing import IO, Any

import pytest

from bench.engine import pool
from bench.engine.pool import Pool
from bench.engine.worker import Worker
from bench.machine import facts, git, monotonic, quiet
from bench.machine.quiet import Preflight
from bench.measure.forking import Channel
from bench.sampling.requests import Warm
from tests.clock import Clock, set_by_hand
from tests.engine import scripted_server

PIDS = itertools.count(1 << 30)
"""Ids that no process has."""

ROLES = {
    "worker": scripted_server.work,
    "judge": scripted_server.judge,
}


class Ended(BaseException):
    """A worker ends itself; `code` is the exit status, as in `subprocess`."""

    def __init__(self, code: int) -> None:
        self.code = code


class Thread:
    """A thread that serves requests, in the place of a process that the engine ends."""

    descriptor = None

    def __init__(self, role: Callable[[Channel], None], pipe: socket.socket) -> None:
        self.pid = next(PIDS)
        self._code = 0
        self._channel = Channel(os.dup(pipe.fileno()))
        self._thread = threading.Thread(target=self._serve, args=(role,), daemon=True)
        self._thread.start()

    def _serve(self, role: Callable[[Channel], None]) -> None:
        try:
            role(self._channel)
        except Ended as end:
            self._code = end.code
        except OSError:  # the engine has closed the pipe
            pass
        finally:
            self._channel._pipe.close()

    def has_ended(self, within_s: float = 0.0) -> bool:
        """Wait at most `within_s` for the end of the thread, and return whether it has ended."""
        self._thread.join(within_s)
        return not self._thread.is_alive()

    def end(self) -> int:
        """Close the pipe, wait for the end of the thread, and return its exit status."""
        with contextlib.suppress(OSError):
            self._channel._pipe.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        return self._code


class Server:
    """A server that starts at once, and whose workers are threads."""

    def ready(self) -> None:
        """Be ready."""

    def post(self, _request: Warm) -> None:
        """Compile nothing."""

    def receive(self, _timeout_s: float) -> None:
        """Have compiled nothing."""

    def fork(self, role: str) -> Worker:
        """Return a new thread that does the work of a role."""

        def start(pipe: socket.socket, _log: IO[bytes]) -> Any:
            return Thread(ROLES[role], pipe)

        return Worker(start)

    def close(self) -> None:
        """End nothing, because each worker is closed separately."""


def end(code: int) -> None:
    """End a worker."""
    raise Ended(code)


in_a_process = Pool._started


def _started(self: Pool, *settings: Any) -> Any:
    """Return the server of an environment; another interpreter's server is a process."""
    return in_a_process(self, *settings) if self.python else Server()


def use_processes(patch: pytest.MonkeyPatch) -> None:
    """Have workers make their times up in processes of their own, and take the machine for quiet."""
    patch.setattr(pool, "MODULE", "tests.engine.scripted_server")
    patch.setattr(Pool, "_started", in_a_process)
    patch.setattr(quiet, "watch", lambda: Preflight(0.0, 0, 0.0))
    patch.setattr(git, "of_suite", lambda: "abc")  # git would be asked in every run
    patch.setattr(monotonic, "now_s", time.monotonic)


def use(patch: pytest.MonkeyPatch) -> Clock:
    """Have the workers of this environment make their times up in threads, and take the machine for quiet.

    They wait for nothing: what takes them time moves the clock on, which is returned.
    """
    use_processes(patch)
    patch.setattr(facts, "busy_s", lambda: 0.0)
    patch.setattr(Pool, "_started", _started)
    patch.setattr(scripted_server, "end", end)
    patch.setattr(scripted_server, "kill", lambda number: end(-number))
    return set_by_hand(patch)
