"""A worker's end of the pipe to its parent: requests come in and events go out, each as one line of JSON.

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
from collections.abc import Callable, Iterator
from typing import Any

HIGH = 512
"""The pipe gets a descriptor of at least this number if the system allows it: code that closes or writes to
descriptors by mistake uses low numbers."""

PR_SET_PDEATHSIG = 1


class Channel:
    """The pipe to the parent.

    Only the process that made the channel can use it: a fork closes its copy, and exits if it uses it.
    """

    def __init__(self, pipe: int) -> None:
        self._pid = os.getpid()
        self._pipe = socket.socket(fileno=moved_up(pipe))
        self._lines = self._pipe.makefile("rb")
        self._id = ""
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

    def announce(self, stage: str) -> None:
        """Tell the parent what is about to run, in case the process dies there."""
        self._send({"event": "working", "stage": stage})

    def _next_line(self) -> bytes:
        self._end_a_fork()
        return self._lines.readline()

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


Serve = Callable[[dict[str, Any], Channel], dict[str, Any]]
"""A function that serves a request and returns the content of the reply."""


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


def die_with_parent() -> None:
    """Let the system end this process when its parent ends, on Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
