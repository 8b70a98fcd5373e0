"""A server that forks worker processes of itself, and the pipe between each of them and the parent.

The server has imported torch, so none of them has to. It runs no code of users. Each worker has its own session, log
and pipe. On the pipe a request or an event is a line of JSON; an event carries the id of the request it belongs to.
This file imports no torch, so it can be tested without torch.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import resource
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import psutil

from bench.machine.facts import children, descendants

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36

LONGEST_BYTES = 1 << 16
"""The most bytes that are read at once."""

MOST_DESCRIPTORS = 2
"""The most descriptors that come with a request: the pipe and the log of a forked process."""

CLOEXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
"""Child programs don't inherit the descriptors that came."""

ORPHANS_S = 5.0
"""The most seconds for ending processes that a worker left: one that hangs in the system can't be ended."""

SERVER = "server"
"""The role of a forked process that is a server itself."""

HIGH = 512
"""The pipe gets a descriptor of at least this number if the system allows it: code that closes or writes to
descriptors by mistake uses low numbers."""


class Channel:
    """The pipe to the parent.

    Only the process that made the channel can use it: a fork closes its copy, and exits if it uses it.
    """

    def __init__(self, pipe: int) -> None:
        self._pid = os.getpid()
        self._pipe = socket.socket(fileno=moved_up(pipe))
        self._id = ""
        os.register_at_fork(after_in_child=self._let_go)

    def requests(self) -> Iterator[dict[str, Any]]:
        """Yield the parent's requests until it closes the pipe."""
        while request := self._next():
            self._id = request["id"]
            yield request

    def reply(self, request: str, content: dict[str, Any]) -> None:
        """Send the reply to the request of this name."""
        self._send({**content, "event": request})

    def announce(self, stage: str) -> None:
        """Tell the parent what is about to run, in case the process dies there."""
        self._send({"event": "working", "stage": stage})

    def _next(self) -> dict[str, Any] | None:
        self._end_a_fork()
        request = next_request(self._pipe)
        return request and {name: value for name, value in request.items() if name != "descriptors"}

    def _send(self, event: dict[str, Any]) -> None:
        self._end_a_fork()
        self._pipe.sendall(json.dumps({**event, "id": self._id}, allow_nan=False).encode() + b"\n")

    def _end_a_fork(self) -> None:
        # a fork made by C code runs none of Python's hooks, so the process id is compared each time
        if os.getpid() != self._pid:
            os._exit(0)

    def _let_go(self) -> None:
        if self._pipe.fileno() >= 0:  # a fork of a fork has none
            os.close(self._pipe.detach())


def next_request(pipe: socket.socket) -> dict[str, Any] | None:
    """Return the next request on a pipe with its descriptors, None at the end.

    The descriptors are fewer than were sent if this process has no room for them.
    """
    line, descriptors = b"", list[int]()
    while not line.endswith(b"\n"):
        part, more, _, _ = socket.recv_fds(pipe, LONGEST_BYTES, MOST_DESCRIPTORS, CLOEXEC)
        if not part:
            return None
        line, descriptors = line + part, descriptors + more
    return {**json.loads(line), "descriptors": descriptors}


Serve = Callable[[dict[str, Any], Channel], dict[str, Any]]
"""A function that serves a request and returns the content of the reply."""


def methods(role: object) -> dict[str, Serve]:
    """Return the public methods of a role; each serves the requests of its name."""
    return {name: getattr(role, name) for name in vars(type(role)) if not name.startswith("_")}


def serve(requests_served: dict[str, Serve], channel: Channel) -> None:
    """Serve requests by their name until the parent closes the pipe; `start` gets an empty reply at once."""
    for request in channel.requests():
        name = request["request"]
        channel.reply(name, {} if name == "start" else requests_served[name](request, channel))


def moved_up(descriptor: int) -> int:
    """Return a copy of a descriptor with a high number, which child programs don't inherit."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    least = HIGH if limit == resource.RLIM_INFINITY else min(HIGH, limit // 2)
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, least)
    os.close(descriptor)
    return moved


Role = Callable[[Channel], None]
"""The work of a forked process: it serves requests until the parent closes the pipe."""


class ForkServer:
    """Serves `start`, `warm`, `fork` and `reap`; `roles` are the kinds of processes that it forks.

    `warm` gets the request of this name once, before the first fork of a role. The role SERVER is another server, which
    has what this one has imported so far, and goes on without what comes later.
    """

    def __init__(
        self, roles: Mapping[str, Role], warm: Callable[[dict[str, Any]], None], pipe: int | None = None
    ) -> None:
        self._roles = roles
        self._warm = warm
        self._pipe = socket.socket(fileno=moved_up(int(sys.argv[1]) if pipe is None else pipe))
        self._workers: set[int] = set()
        self._own: set[int] = set()

    def serve(self) -> None:
        """Serve requests until the parent closes the pipe."""
        die_with_parent()
        adopt_orphans()
        while request := next_request(self._pipe):
            name, descriptors = request["request"], request["descriptors"]
            content: dict[str, Any] = {}
            if name == "warm":
                self._warm(request)
                self._own = _children()
            elif name == "fork":
                content = {"pid": self._fork(request["role"], *descriptors)}
            elif name == "reap":
                content = {"code": self._reap(request["pid"])}
            self._pipe.sendall(json.dumps({**content, "event": name, "id": request["id"]}).encode() + b"\n")

    def _fork(self, role: str, pipe: int, log: int) -> int:
        server = os.getpid()
        pid = os.fork()
        if pid == 0:
            os._exit(self._run(role, pipe, log, server))
        os.close(pipe)
        os.close(log)
        self._workers.add(pid)
        return pid

    def _run(self, role: str, pipe: int, log: int, server: int) -> int:
        """Return the exit status of a forked process after its work."""
        try:
            die_with_parent()
            if os.getppid() != server:
                return 1
            os.setsid()
            adopt_orphans()
            self._pipe.close()
            os.dup2(log, 1)
            os.dup2(log, 2)
            os.close(log)
            if role == SERVER:
                ForkServer(self._roles, self._warm, pipe).serve()
            else:
                self._roles[role](Channel(pipe))
        except SystemExit as end:
            if isinstance(end.code, str):
                print(end.code, file=sys.stderr)
            return end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            traceback.print_exc()
            return 1
        finally:
            with contextlib.suppress(Exception):  # the worker's code may have closed them
                sys.stdout.flush()
                sys.stderr.flush()
        return 0

    def _reap(self, pid: int) -> int:
        """Wait for the end of a worker, end all orphans, and return the worker's exit status as in `subprocess`."""
        _, status = os.waitpid(pid, 0)
        self._workers.discard(pid)
        deadline = time.monotonic() + ORPHANS_S
        while (orphans := self._orphans()) and time.monotonic() < deadline:
            for orphan in orphans:
                with contextlib.suppress(ProcessLookupError, ChildProcessError):
                    os.kill(orphan, signal.SIGKILL)
                    os.waitpid(orphan, os.WNOHANG)
            time.sleep(0.001)
        return os.waitstatus_to_exitcode(status)

    def _orphans(self) -> set[int]:
        """Return the processes that belonged to workers which have ended."""
        return {pid for pid in _children() - self._workers - self._own if _session(pid) not in self._workers}


def adopt_orphans() -> None:
    """Become the parent of all descendants whose own parent ends, so that they are found and their work is counted."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return 0


def _children() -> set[int]:
    """Return this process's children, dead ones included."""
    return {child.pid for child in psutil.Process().children()} if (listed := children()) is None else listed


def cpu_s() -> float:
    """Return the processor's seconds that this process and all that it started have used."""
    return time.process_time() + children_s()


def children_s() -> float:
    """Return the processor's seconds of the living descendants of this process, and of its children that ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    total_s = ended.ru_utime + ended.ru_stime
    for pid in descendants():
        with contextlib.suppress(psutil.Error):  # it has just ended
            times = psutil.Process(pid).cpu_times()
            total_s += times.user + times.system + times.children_user + times.children_system
    return total_s


def migrations() -> str:
    """Return how often the system moved the first thread of this process to another core; empty if it doesn't say."""
    with contextlib.suppress(OSError), open("/proc/self/sched", encoding="ascii") as file:  # noqa: PTH123 - in time
        return next((line for line in file if line.startswith("se.nr_migrations")), "")
    return ""


def die_with_parent() -> None:
    """Let the system end this process when its parent ends, on Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
