"""A server that forks worker processes, and the pipe between each worker and the parent.

The server has imported torch, so workers start with it. It runs no user code. Each worker has its own session, log and
pipe. Each request or event is a line of JSON on the pipe, as declared in `bench.sampling.requests`.
This module doesn't import torch.
"""

import contextlib
import ctypes
import operator
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import msgspec
import psutil
from msgspec import Raw
from msgspec.json import Decoder

from bench.sampling.requests import Fork, Posted, Reap, Replied, Start, Warm, Working

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36

LONGEST_BYTES = 1 << 16
"""The most bytes of one read."""

MOST_DESCRIPTORS = 2
"""The most file descriptors with a request: the pipe and the log of a forked process."""

CLOEXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
"""The flag by which child programs don't inherit received descriptors."""


class Channel:
    """The pipe to the parent; only the process that made the channel may use it."""

    def __init__(self, pipe: int) -> None:
        self._pipe = socket.socket(fileno=pipe)
        self._id = ""
        os.register_at_fork(after_in_child=self._pipe.close)

    def requests(self, decoder: Decoder[Any]) -> Iterator[tuple[Any, list[int]]]:
        """Yield the parent's decoded requests, each with its file descriptors, until it closes the pipe.

        Descriptors are missing if this process has reached its limit of open files.
        """
        while line := self._line():
            posted = msgspec.json.decode(line[0], type=Posted)
            self._id = posted.id
            yield decoder.decode(posted.request), line[1]

    def reply(self, reply: Any) -> None:
        """Send the reply to the latest request."""
        self._send(Replied(self._id, Raw(msgspec.json.encode(reply))))

    def announce(self, stage: str) -> None:
        """Tell the parent which stage begins, in case the process dies in it."""
        self._send(Working(self._id, stage))

    def _line(self) -> tuple[bytes, list[int]] | None:
        line, descriptors = b"", list[int]()
        while not line.endswith(b"\n"):
            part, more, _, _ = socket.recv_fds(self._pipe, LONGEST_BYTES, MOST_DESCRIPTORS, CLOEXEC)
            if not part:
                return None
            line, descriptors = line + part, descriptors + more
        return line, descriptors

    def _send(self, event: Working | Replied) -> None:
        self._pipe.sendall(msgspec.json.encode(event) + b"\n")


Serve = Callable[[Any, Channel], Any]
"""A function that serves a request of a type and returns the reply."""


def serve(served: Mapping[type, Serve], channel: Channel) -> None:
    """Serve each request by the function for its type until the parent closes the pipe; `Start` gets an empty reply."""
    served = {Start: lambda *_: None, **served}
    for request, _ in channel.requests(decoder_of(served)):
        channel.reply(served[type(request)](request, channel))


def decoder_of(kinds: Iterable[type]) -> Decoder[Any]:
    """Return a decoder for these types of requests."""
    return Decoder(reduce(operator.or_, kinds))


Role = Callable[[Channel], None]
"""The work of a forked process: it serves requests until the parent closes the pipe."""


class ForkServer:
    """Serves `Start`, `Warm`, `Fork` and `Reap`; `roles` maps the name of a role to the work of its processes.

    A process inherits all modules that were imported before its fork.
    """

    def __init__(self, roles: Mapping[str, Role], warm: Callable[[Warm], None]) -> None:
        self._roles = roles
        self._warm = warm
        self._channel = Channel(int(sys.argv[1]))

    def serve(self) -> None:
        """Serve requests until the parent closes the pipe."""
        die_with_parent()
        adopt_orphans()
        for request, descriptors in self._channel.requests(decoder_of((Start, Warm, Fork, Reap))):
            self._channel.reply(self._served(request, descriptors))

    def _served(self, request: Start | Warm | Fork | Reap, descriptors: Sequence[int]) -> int | None:
        match request:
            case Warm():
                self._warm(request)
            case Fork():
                return self._fork(request.role, *descriptors)
            case Reap():
                _, status = os.waitpid(request.pid, 0)
                return os.waitstatus_to_exitcode(status)
        return None

    def _fork(self, role: str, pipe: int, log: int) -> int:
        server = os.getpid()
        pid = os.fork()
        if pid == 0:
            os._exit(self._run(role, pipe, log, server))
        os.close(pipe)
        os.close(log)
        return pid

    def _run(self, role: str, pipe: int, log: int, server: int) -> int:
        """Do the work of a forked process and return its exit status."""
        try:
            die_with_parent()
            adopt_orphans()
            if os.getppid() != server:
                return 1
            os.setsid()
            os.dup2(log, 1)
            os.dup2(log, 2)
            os.close(log)
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


def die_with_parent() -> None:
    """Make the system end this process when its parent ends; Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends, so that `has_children` sees them; Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def has_children() -> bool:
    """Return whether a process that this one has started, or adopted, is still alive."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:  # no child, alive or dead; psutil would take milliseconds
        return False
    return any(each.status() != psutil.STATUS_ZOMBIE for each in psutil.Process().children())
