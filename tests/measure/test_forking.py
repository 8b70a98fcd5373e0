"""The server: a real process that forks roles which import no torch."""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import IO, Any, Self, TypeVar

import psutil
import pytest
from msgspec import Raw, Struct, json

from bench.measure import forking
from bench.measure.forking import Channel, ForkServer, serve
from bench.sampling.requests import Fork, Posted, Reap, Replied, Request, Start, Warm

R = TypeVar("R")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="orphans are found on Linux alone")

WAIT_S = 10.0
"""The most seconds for a process to appear or to end."""


def posted(request: Request[Any]) -> bytes:
    """Return the line of a request."""
    return json.encode(Posted("7", Raw(json.encode(request)))) + b"\n"


def replied(lines: IO[bytes], request: Request[R]) -> R:
    """Return the reply to a request."""
    event = json.decode(lines.readline(), type=Replied)
    assert event.id == "7"
    reply: R = json.decode(event.reply, type=request.reply)
    return reply


class Client:
    """The parent of a server in a process of its own."""

    def __init__(self) -> None:
        self.pipe, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-m", __name__, str(theirs.fileno())]
            self.process = subprocess.Popen(command, pass_fds=[theirs.fileno()])
        self.lines = self.pipe.makefile("rb")

    def ask(self, request: Request[R], *descriptors: int) -> R:
        """Return the reply to a request."""
        socket.send_fds(self.pipe, [posted(request)], descriptors)
        return replied(self.lines, request)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.lines.close()
        self.pipe.close()
        assert self.process.wait(WAIT_S) == 0


class Forked:
    """A worker with its end of the pipe and its log."""

    def __init__(self, client: Client, role: str) -> None:
        self.client = client
        self.pipe, theirs = socket.socketpair()
        self.log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the worker
        with theirs:
            self.pid = client.ask(Fork(role), theirs.fileno(), self.log.fileno())
        self.lines = self.pipe.makefile("rb")

    def end(self) -> int:
        """Close the pipe and return the exit status."""
        self.lines.close()
        self.pipe.close()
        return self.client.ask(Reap(self.pid))

    def logged(self) -> str:
        """Return the text in its log."""
        self.log.seek(0)
        return self.log.read().decode()


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Return the parent of a server that is warm."""
    with Client() as started:
        started.ask(Start())
        started.ask(Warm(False, False, ["hello"]))
        yield started


def test_a_worker_serves_requests_on_a_pipe_of_its_own(client: Client) -> None:
    """The worker is a child of the server in a session of its own, and knows what the server has warmed up.

    The end of another worker, which was there first, leaves it alone.
    """
    first, worker = Forked(client, "answers"), Forked(client, "answers")
    assert first.end() == 0
    worker.pipe.sendall(posted(Say()))
    assert replied(worker.lines, Say()) == Said(worker.pid, "hello", worker.pid)
    assert psutil.Process(worker.pid).ppid() == client.process.pid
    assert worker.end() == 0


@pytest.mark.parametrize(
    ("role", "code", "logged"),
    [
        ("exits", 3, ""),
        ("exits_with_words", 1, "last words\n"),
        ("raises", 1, "ValueError: mine"),
        ("kills", -9, ""),
        ("segfaults", -11, ""),
    ],
)
def test_the_end_of_a_worker_is_told_as_in_subprocess(role: str, code: int, logged: str, client: Client) -> None:
    """An exit status is positive, a signal negative; an exception is in the log. The server goes on."""
    worker = Forked(client, role)
    assert worker.end() == code
    assert logged in worker.logged()
    assert Forked(client, "answers").end() == 0


def test_descriptors_1_and_2_are_the_log(client: Client) -> None:
    """Text of Python and of C code is in the worker's own log, in the order in which it was written."""
    quiet, worker = Forked(client, "answers"), Forked(client, "prints")
    assert worker.end() == 0
    assert worker.logged() == "by descriptor 1\nby descriptor 2\nby print\nto stderr\n"
    quiet.end()
    assert quiet.logged() == ""


def test_closing_the_pipe_ends_the_server_and_its_workers() -> None:
    """Nothing is left when the parent goes."""
    with Client() as client:
        client.ask(Warm(False, False, [""]))
        workers = [Forked(client, "answers"), Forked(client, "sleeps")]
    deadline = time.monotonic() + WAIT_S
    while not all(_has_ended(worker.pid) for worker in workers):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _has_ended(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


_word = ""


def _warm(request: Warm) -> None:
    global _word
    (_word,) = request.implementations


class Said(Struct):
    """What a process says of itself."""

    pid: int
    word: str
    session: int


class Say(Request[Said], frozen=True):
    """Say it."""


def _answers(channel: Channel) -> None:
    serve({Say: lambda *_: Said(os.getpid(), _word, os.getsid(0))}, channel)


def _raises(error: BaseException) -> None:
    raise error


def _prints() -> None:
    os.write(1, b"by descriptor 1\n")
    os.write(2, b"by descriptor 2\n")
    print("by print", flush=True)
    print("to stderr", file=sys.stderr)


ROLES: dict[str, forking.Role] = {
    "answers": _answers,
    "exits": lambda _: sys.exit(3),
    "exits_with_words": lambda _: sys.exit("last words"),
    "raises": lambda _: _raises(ValueError("mine")),
    "kills": lambda _: os.kill(os.getpid(), 9),
    "segfaults": lambda _: os.kill(os.getpid(), 11),
    "prints": lambda _: _prints(),
    "sleeps": lambda _: time.sleep(60),
}

if __name__ == "__main__":
    assert "torch" not in sys.modules
    ForkServer(ROLES, _warm).serve()
