"""A server that forks worker processes of itself, and the pipe between each of them and the parent.

The server has imported torch, so none of them has to. It runs no code of users. Each worker has its own session, log
and pipe. On the pipe a request or an event is a line of JSON; an event carries the id of the request it belongs to.
This file imports no torch, so it can be tested without torch.
"""

import contextlib
import ctypes
import json
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import psutil

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36

LONGEST_BYTES = 1 << 16
"""The most bytes that are read at once."""

MOST_DESCRIPTORS = 2
"""The most descriptors that come with a request: the pipe and the log of a forked process."""

CLOEXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
"""Child programs don't inherit the descriptors that came."""

SERVER = "server"
"""The role of a forked process that is a server itself."""


class Channel:
    """The pipe to the parent; only the process that made the channel can use it."""

    def __init__(self, pipe: int) -> None:
        self._pipe = socket.socket(fileno=pipe)
        self._id = ""
        os.register_at_fork(after_in_child=self._pipe.close)

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
        request = next_request(self._pipe)
        return request and {name: value for name, value in request.items() if name != "descriptors"}

    def _send(self, event: dict[str, Any]) -> None:
        self._pipe.sendall(json.dumps({**event, "id": self._id}, allow_nan=False).encode() + b"\n")


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
        self._pipe = socket.socket(fileno=int(sys.argv[1]) if pipe is None else pipe)

    def serve(self) -> None:
        """Serve requests until the parent closes the pipe."""
        die_with_parent()
        while request := next_request(self._pipe):
            name, descriptors = request["request"], request["descriptors"]
            content: dict[str, Any] = {}
            if name == "warm":
                self._warm(request)
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
        return pid

    def _run(self, role: str, pipe: int, log: int, server: int) -> int:
        """Return the exit status of a forked process after its work."""
        try:
            die_with_parent()
            adopt_orphans()
            if os.getppid() != server:
                return 1
            os.setsid()
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
        """Wait for the end of a worker, and return its exit status as in `subprocess`."""
        _, status = os.waitpid(pid, 0)
        return os.waitstatus_to_exitcode(status)


def die_with_parent() -> None:
    """Let the system end this process when its parent ends, on Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of the descendants whose own parent ends, so that `has_children` sees them, on Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def has_children() -> bool:
    """Return whether a process that this one has started, or adopted, still lives."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:  # there is none, living or dead; else all processes are looked through, for milliseconds
        return False
    return any(each.status() != psutil.STATUS_ZOMBIE for each in psutil.Process().children())
