"""The worker's end of the pipe to its parent: requests come in and events go out, each as one line of JSON.

Every event carries the id of the request that it belongs to.
This file imports no torch, so it can be tested without torch.
"""

import ctypes
import fcntl
import json
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

HEARTBEAT_S = 0.5
"""During rounds a worker sends at most one event in this time: waking the parent would disturb the measurement."""

HIGH = 512
"""The pipe gets a descriptor of at least this number if the system allows it: code that closes or writes to
descriptors by mistake uses low numbers."""

PR_SET_PDEATHSIG = 1


class Channel:
    """The pipe to the parent, and a file that says what the worker is about to run, in case it dies there.

    Only the process that made the channel can use it: a fork closes its copies, and exits if it uses them.
    """

    def __init__(self, pipe: int, breadcrumb: int) -> None:
        self._pid = os.getpid()
        self._pipe = socket.socket(fileno=_moved_up(pipe))
        self._breadcrumb = _moved_up(breadcrumb)
        self._lines = self._pipe.makefile("rb")
        self._id = ""
        self._sent_s = 0.0
        os.register_at_fork(after_in_child=self._let_go)

    def requests(self) -> Iterator[dict[str, Any]]:
        """Yield the parent's requests until it closes the pipe."""
        while line := self._next_line():
            request: dict[str, Any] = json.loads(line)
            self._id = request["id"]
            yield request

    def reply(self, request: str, content: dict[str, Any]) -> None:
        """Send the reply to the request of this name."""
        self._send({**content, "event": request})

    def announce(self, implementation: str, stage: str) -> None:
        """Write to the file what is about to run, and tell the parent, in `rounds` at most once in HEARTBEAT_S."""
        self._end_a_fork()
        crumb = json.dumps([implementation, stage]).encode()
        os.pwrite(self._breadcrumb, crumb.ljust(512), 0)
        if stage != "rounds" or time.monotonic() - self._sent_s > HEARTBEAT_S:
            self._send({"event": "working", "implementation": implementation, "stage": stage})

    def _next_line(self) -> bytes:
        self._end_a_fork()
        return self._lines.readline()

    def _send(self, event: dict[str, Any]) -> None:
        self._end_a_fork()
        line = json.dumps({**event, "id": self._id}, allow_nan=False)
        self._pipe.sendall(line.encode() + b"\n")
        self._sent_s = time.monotonic()

    def _end_a_fork(self) -> None:
        # a fork made by C code runs none of Python's hooks, so the process id is compared each time
        if os.getpid() != self._pid:
            os._exit(0)

    def _let_go(self) -> None:
        if self._pipe.fileno() >= 0:  # a fork of a fork has none of them
            os.close(self._pipe.detach())
            os.close(self._breadcrumb)


Serve = Callable[[dict[str, Any], Channel], dict[str, Any]]
"""A function that serves a request and returns the content of the reply."""


def serve(requests_served: dict[str, Serve]) -> None:
    """Serve requests by their name until the parent closes the pipe; `start` gets an empty reply at once."""
    _die_with_parent()
    channel = Channel(int(sys.argv[1]), int(sys.argv[2]))
    for request in channel.requests():
        name = request["request"]
        channel.reply(name, {} if name == "start" else requests_served[name](request, channel))


def _moved_up(descriptor: int) -> int:
    """Return a copy of a descriptor with a high number, which child programs don't inherit."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    least = HIGH if limit == resource.RLIM_INFINITY else min(HIGH, limit // 2)
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, least)
    os.close(descriptor)
    return moved


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
