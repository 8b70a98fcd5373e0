"""Settings of all tests."""

import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from bench.cli import main
from bench.engine import pool
from tests.clock import Clock, set_by_hand
from tests.engine import threads

os.environ |= {"OMP_NUM_THREADS": "1", "GOMP_SPINCOUNT": "0"}
"""Torch reads them when it is imported. Tests run on all cores beside each other: threads that wait for a core cost
half of the suite's time, and those that wait busily for others a fifth of the tests that compute here."""

signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
"""A shell ignores the first for background processes, nohup the second, and every process inherits that."""

COMPILED = Path(tempfile.gettempdir()) / f"attention-bench-tests-{os.getuid()}"
os.environ["TORCHINDUCTOR_CACHE_DIR"] = pool.CACHE = str(COMPILED)  # processes of all sessions share it


os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "1")
"""Inductor believes the vector instructions that the processor names: to try each takes every process four seconds, and
twelve with an empty cache."""

with suppress(ImportError):  # the tests that need a GPU run without it
    from hypothesis import HealthCheck, settings

    settings.register_profile("shared machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("shared machine")


LONGEST = ("test_hacks.py", "test_installed.py", "test_readme.py")
"""The files whose tests take longest."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest tests: at the end of a session nothing would be left to do beside them."""
    items.sort(key=lambda item: item.path.name not in LONGEST)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without looking for garbage, and never look at what was collected: each replicate waits for it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _alone() -> Iterator[None]:
    """Take out what nox, pytest-xdist and this file tell their processes: what tests start behaves as in a shell."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("COLUMNS", "NOX_CURRENT_SESSION", "PYTEST_XDIST_WORKER", "OMP_NUM_THREADS"):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    """Put back the number of torch's threads: a test that leaves more costs those after it many times their time."""
    torch = sys.modules.get("torch")  # few tests wait for its import
    threads = torch.get_num_threads() if torch else None
    yield
    if torch:
        torch.set_num_threads(threads)


@pytest.fixture
def compiler() -> None:
    """Skip a test where torch.compile finds no compiler for the CPU."""
    if not (os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")):
        pytest.skip("needs g++ or clang++")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Return the clock of this process, which is set by hand."""
    return set_by_hand(monkeypatch)


@pytest.fixture
def scripted_workers(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Have workers make their times up, in threads of this process, and take the machine for quiet.

    Returns the clock that they move on.
    """
    return threads.use(monkeypatch)


@pytest.fixture
def scripted_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have workers make up their times, in processes, because other interpreters need them."""
    threads.use_processes(monkeypatch)


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Return a function that runs a command, sees that it ends with a status, and returns its standard output."""

    def run(*words: object, status: int = 0) -> str:
        assert main([str(word) for word in words]) == status
        return capsys.readouterr().out

    return run


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Return a function that runs a command that can't be carried out, and returns the one line that it says."""

    def run(*words: object, status: int = 2) -> str:
        assert main([str(word) for word in words]) == status
        (line,) = capsys.readouterr().err.strip().splitlines()
        return line

    return run
