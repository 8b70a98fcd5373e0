"""A worker seen from its parent: its settings, its answers, and how its end is told."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from bench.engine.worker import Died, Worker, environment

SCRIPTED = "tests.engine.scripted_worker"


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    """Return a worker that imports no torch and does as it is told."""
    with Worker("retained", 1, tmp_path, SCRIPTED) as started:
        started.ready()
        yield started


def told(worker: Worker, timeout_s: float = 10, **request: Any) -> dict[str, Any]:
    """Return the worker's answer."""
    return worker.ask({"request": "do", **request}, timeout_s)


def test_a_request_is_answered(worker: Worker) -> None:
    """An answer comes back, and the next request finds the same process."""
    first, second = told(worker, what="answer"), told(worker, what="answer")
    assert first["pid"] == second["pid"] != os.getpid()


def test_what_it_prints_does_not_get_into_the_protocol(worker: Worker) -> None:
    """A line of JSON on standard output is not taken for an answer."""
    assert told(worker, what="print")["event"] == "done"


def test_signs_of_life_start_the_clock_anew(worker: Worker) -> None:
    """Work that takes longer than the limit in all, but never falls silent for so long, is waited for."""
    assert told(worker, timeout_s=1.0, what="work", parts=6, part_s=0.3)["event"] == "done"


def test_silence_is_a_timeout_that_names_the_case(worker: Worker) -> None:
    """A worker that falls silent is ended, and the case that it was at is known."""
    with pytest.raises(Died) as death:
        told(worker, timeout_s=0.5, what="hang")
    assert (death.value.status, death.value.implementation) == ("timeout", "culprit")
    assert "no sign of life for 0.5 s during warm-up" in death.value.detail


def test_an_exit_is_a_crash_with_its_status_and_last_words(worker: Worker) -> None:
    """The exit status and the last line on standard error are in the detail."""
    with pytest.raises(Died) as death:
        told(worker, what="exit")
    assert (death.value.status, death.value.implementation) == ("crashed", "culprit")
    assert death.value.detail == "ended with exit status 3 during warm-up: last words"


def test_a_kill_names_its_signal(worker: Worker) -> None:
    """SIGKILL, as the kernel sends when memory runs out, is told as such."""
    with pytest.raises(Died) as death:
        told(worker, what="kill")
    assert "killed by SIGKILL, as the kernel does when memory runs out" in death.value.detail


def test_the_parent_sleeps_while_a_worker_works(worker: Worker) -> None:
    """Waiting three seconds for an answer costs the parent 1 % of a core, give or take the kernel's two ticks."""
    before = psutil.Process().cpu_times()
    told(worker, what="work", parts=6, part_s=0.5)
    after = psutil.Process().cpu_times()
    assert (after.user - before.user) + (after.system - before.system) <= 3 * 0.01 + 2 * 0.01


def test_closing_ends_the_process(tmp_path: Path) -> None:
    """Nothing is left of a worker that was closed, even in the middle of its work."""
    worker = Worker("retained", 1, tmp_path, SCRIPTED)
    worker.ready()
    pid = told(worker, what="answer")["pid"]
    worker.close()
    assert not psutil.pid_exists(pid)


def test_a_worker_dies_with_its_parent(tmp_path: Path) -> None:
    """When the parent is killed outright, its workers do not stay behind."""
    script = (
        "import sys, time; from pathlib import Path; from bench.engine.worker import Worker\n"
        f"worker = Worker('retained', 1, Path({str(tmp_path)!r}), {SCRIPTED!r}); worker.ready()\n"
        "print(worker.ask({'request': 'do', 'what': 'answer'}, 10)['pid'], flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 5
    while psutil.pid_exists(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not psutil.pid_exists(pid)


def test_retained_memory_is_asked_for_at_the_start_of_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The two glibc settings are there under retained, and under system not even the user's own are."""
    monkeypatch.setenv("MALLOC_MMAP_MAX_", "7")
    retained, system = environment("retained", 2, tmp_path), environment("system", 2, tmp_path)
    assert retained["MALLOC_MMAP_MAX_"] == "0"
    assert retained["MALLOC_TRIM_THRESHOLD_"] == "17179869184"
    assert "MALLOC_MMAP_MAX_" not in system
    assert retained["OMP_NUM_THREADS"] == "2"


def test_what_the_parent_can_import_the_worker_can(tmp_path: Path) -> None:
    """The worker's path is the parent's, so that module:attribute means the same in both."""
    assert json.dumps(environment("retained", 1, tmp_path)["PYTHONPATH"].split(os.pathsep)) == json.dumps(
        [entry or str(Path.cwd()) for entry in sys.path]
    )


def test_another_environment_imports_this_checkout_and_its_own_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its path holds the folder where the command was given, the checkout and what the user asked for, nothing else."""
    monkeypatch.setenv("PYTHONPATH", "/mine")
    monkeypatch.chdir(tmp_path)
    path = environment("retained", 1, tmp_path, python="/other/python")["PYTHONPATH"].split(os.pathsep)
    assert path == [str(tmp_path), str(Path(__file__).parents[2]), "/mine"]


def test_a_worker_is_started_by_the_interpreter_that_is_named(tmp_path: Path) -> None:
    """A program that sets a variable and then runs our Python is the interpreter of the worker."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nMALLOC_TRIM_THRESHOLD_=7 exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    with Worker("retained", 1, tmp_path, SCRIPTED, str(python)) as worker:
        worker.ready()
        assert worker.ask({"request": "memory", "implementation": "eager"}, 10)["peak_bytes"] == 7
        assert psutil.Process(worker.pid).is_running()
