"""A server that forks worker processes of itself, and the pipe between each of them and the parent.

The server has imported torch, so none of them has to. It runs no code of users. Each worker has its own session, log
and pipe. On the pipe a request or an event is a line of JSON, as `bench.sampling.requests` declares them.
This file imports no torch, so it can be tested without torch.
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
"""The most bytes that are read at once."""

MOST_DESCRIPTORS = 2
"""The most descriptors that come with a request: the pipe and the log of a forked process."""

CLOEXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
"""Child programs don't inherit the descriptors that came."""


class Channel:
    """The pipe to the parent; only the process that made the channel can use it."""

    def __init__(self, pipe: int) -> None:
        self._pipe = socket.socket(fileno=pipe)
        self._id = ""
        os.register_at_fork(after_in_child=self._pipe.close)

    def requests(self, decoder: Decoder[Any]) -> Iterator[tuple[Any, list[int]]]:
        """Yield the parent's requests, as a decoder reads them, until it closes the pipe; each with its descriptors.

        These are fewer than were sent if this process has no room for them.
        """
        while line := self._line():
            posted = msgspec.json.decode(line[0], type=Posted)
            self._id = posted.id
            yield decoder.decode(posted.request), line[1]

    def reply(self, reply: Any) -> None:
        """Send the reply to the latest request."""
        self._send(Replied(self._id, Raw(msgspec.json.encode(reply))))

    def announce(self, stage: str) -> None:
        """Tell the parent what is about to run, in case the process dies there."""
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
    """Serve requests by their type until the parent closes the pipe; `Start` is replied to at once."""
    served = {Start: lambda *_: None, **served}
    for request, _ in channel.requests(decoder_of(served)):
        channel.reply(served[type(request)](request, channel))


def decoder_of(kinds: Iterable[type]) -> Decoder[Any]:
    """Return a decoder of requests of some types."""
    return Decoder(reduce(operator.or_, kinds))


Role = Callable[[Channel], None]
"""The work of a forked process: it serves requests until the parent closes the pipe."""


class ForkServer:
    """Serves `Start`, `Warm`, `Fork` and `Reap`; `roles` are the kinds of processes that it forks.

    A process has what was imported before it was forked.
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
        """Return the exit status of a forked process after its work."""
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
