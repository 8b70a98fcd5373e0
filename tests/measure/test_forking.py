"""The server: a real process that forks roles which import no torch."""

import os
import sys
from collections.abc import Iterator

import psutil
import pytest
from msgspec import Struct

from bench.engine.variables import environment
from bench.engine.worker import Died, Server, started
from bench.measure import forking
from bench.measure.forking import Channel, ForkServer, serve
from bench.sampling.requests import Request, Warm

WAIT_S = 10.0
"""The most seconds for a process to answer."""


class Said(Struct):
    """A process's report on itself."""

    pid: int
    parent: int
    session: int
    word: str


class Say(Request[Said], frozen=True):
    """Say it."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Return a server that is warm."""
    with Server(started(__name__, environment("retained", 1, tmp_path_factory.mktemp("cache")))) as server:
        server.ready()
        server.ask(Warm(False, False, ["hello"]), WAIT_S)
        yield server


def test_a_worker_serves_requests_on_a_pipe_of_its_own(server: Server) -> None:
    """The worker is a child of the server in its own session, and has the server's warmed-up state.

    The end of another worker, which was there first, leaves it alone.
    """
    with server.fork("answers") as worker:
        with server.fork("answers") as first:
            first.ask(Say(), WAIT_S)
        said = worker.ask(Say(), WAIT_S)
        assert said == Said(said.pid, psutil.Process(said.pid).ppid(), said.pid, "hello")
        assert said.parent != os.getpid()


@pytest.mark.parametrize(
    ("role", "how", "last_words"),
    [
        ("exits", "ended with exit status 3 ", ""),
        ("exits_with_words", "ended with exit status 1 ", ": last words"),
        ("raises", "ended with exit status 1 ", ": ValueError: mine"),
        ("kills", "killed by SIGKILL", ""),
        ("segfaults", "killed by SIGSEGV ", ""),
    ],
)
def test_the_end_of_a_worker_is_told_as_in_subprocess(role: str, how: str, last_words: str, server: Server) -> None:
    """An exit status is positive, a signal negative; an exception is in the log. The server goes on."""
    with server.fork(role) as worker, pytest.raises(Died) as death:
        worker.ask(Say(), WAIT_S)
    assert death.value.detail.startswith(how)
    assert death.value.detail.partition(" during ")[2].endswith(last_words)
    with server.fork("answers") as next_one:
        assert next_one.ask(Say(), WAIT_S).word == "hello"


_word = ""


def _warm(request: Warm) -> None:
    global _word
    (_word,) = request.implementations


def _answers(channel: Channel) -> None:
    serve({Say: lambda *_: Said(os.getpid(), os.getppid(), os.getsid(0), _word)}, channel)


def _raises(error: BaseException) -> None:
    raise error


ROLES: dict[str, forking.Role] = {
    "answers": _answers,
    "exits": lambda _: sys.exit(3),
    "exits_with_words": lambda _: sys.exit("last words"),
    "raises": lambda _: _raises(ValueError("mine")),
    "kills": lambda _: os.kill(os.getpid(), 9),
    "segfaults": lambda _: os.kill(os.getpid(), 11),
}

if __name__ == "__main__":
    assert "torch" not in sys.modules
    ForkServer(ROLES, _warm).serve()
