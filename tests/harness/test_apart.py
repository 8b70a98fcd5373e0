"""Work in a process of its own, which may end in any way."""

import os
import signal
from pathlib import Path

import pytest

from bench.harness import apart
from bench.harness.apart import done_apart
from bench.plan.errors import WrongRequest


def test_what_is_written_apart_is_there(tmp_path: Path) -> None:
    """Its files come back in their order, those of several works each by itself."""

    def write(name: str) -> list[Path]:
        (tmp_path / name).touch()
        return [tmp_path / name]

    assert done_apart(lambda: write("one"), lambda: write("two")) == [
        ([tmp_path / "one"], ""),
        ([tmp_path / "two"], ""),
    ]
    assert (tmp_path / "two").exists()


def test_however_it_ends_the_others_go_on(capfd: pytest.CaptureFixture[str]) -> None:
    """A signal, an exception and an exit have a line each, and nothing is printed."""

    def refuse() -> list[Path]:
        raise WrongRequest("plots can't be written")

    def fail() -> list[Path]:
        raise MemoryError

    def fail_in_lines() -> list[Path]:
        raise ValueError("Vega-Lite to SVG conversion failed:\nTypeError: no mark\n    at line 7")

    def abort() -> list[Path]:
        os.write(2, b"a long dump")
        os.kill(os.getpid(), signal.SIGABRT)
        return []

    def leave() -> list[Path]:
        raise KeyboardInterrupt

    reasons = [reason for _, reason in done_apart(refuse, fail, fail_in_lines, abort, leave, lambda: [])]
    assert reasons == [
        "plots can't be written",
        "MemoryError",
        "ValueError: Vega-Lite to SVG conversion failed: TypeError: no mark",
        "its process ended by SIGABRT",
        "its process ended with 1",
        "",
    ]
    assert capfd.readouterr() == ("", "")


def test_that_no_process_can_be_made_is_a_reason_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with too many processes, or too many open files."""

    def refuse() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", refuse)
    assert done_apart(lambda: []) == [([], "no process can be made: Resource temporarily unavailable")]


def test_one_that_waits_for_ever_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its reason says for how long it was waited for."""

    def wait() -> list[Path]:
        signal.pause()
        return []

    monkeypatch.setattr(apart, "LONGEST_S", 0.1)
    assert apart.done_apart(wait, lambda: []) == [([], "its process took more than 0.1 s"), ([], "")]
