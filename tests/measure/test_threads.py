"""The processor's seconds of a process are those of its main thread, of OpenMP's threads, and of others."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest
import torch

from bench.measure.threads import Threads, Used, run_on

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a clock for each thread")

WORK_S = 0.05
"""The processor's seconds of some work."""


@pytest.fixture(autouse=True)
def _two_threads() -> Iterator[None]:
    """Let torch have two threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def _work() -> None:
    end_s = time.thread_time() + WORK_S
    while time.thread_time() < end_s:
        pass


def _parallel() -> None:
    matrix = torch.ones(1 << 20)
    end_s = time.thread_time() + WORK_S
    while time.thread_time() < end_s:
        matrix.sin()


def _in_a_thread(work: Callable[[], object]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def _read(work: Callable[[], object]) -> Used:
    threads = Threads(2)
    before = threads.read()
    work()
    return threads.read().since(before)


def test_work_of_the_main_thread_is_no_other_threads() -> None:
    """OpenMP may still wait actively then, after the region in which it was found."""
    used = _read(_work)
    assert used.main_s >= WORK_S > 10 * used.others_s


def test_a_parallel_operation_works_in_openmps_threads() -> None:
    """Both halves of it are known, and nobody else worked."""
    used = _read(_parallel)
    assert min(used.main_s, used.team_s) > WORK_S / 2 > 10 * used.others_s


@pytest.mark.parametrize("work", [_work, _parallel])
def test_a_thread_of_a_users_own_is_another_one(work: Callable[[], object]) -> None:
    """So are the OpenMP threads that work for it, which are not those of the main thread."""
    used = _read(lambda: _in_a_thread(work))
    assert used.others_s >= 0.9 * WORK_S > 2 * (used.main_s + used.team_s)


def test_a_thread_of_openmp_that_ended_is_looked_for() -> None:
    """What it used so far stays."""
    threads = Threads(2)
    assert not threads.has_lost
    _parallel()
    before = threads.read()
    threads._seen_s = {2**22 + 1: 0.0}  # no system has such a thread
    assert threads.read().team_s == before.team_s
    assert threads.has_lost
    threads.find()
    assert not threads.has_lost
    assert threads.read().team_s >= before.team_s


def test_all_threads_run_on_the_core_alone() -> None:
    """Else a thread that a row has started before would be a second core for it."""
    before, done = os.sched_getaffinity(0), threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        run_on(min(before))
        assert os.sched_getaffinity(thread.native_id or 0) == os.sched_getaffinity(0) == {min(before)}
    finally:
        done.set()
        thread.join()
        os.sched_setaffinity(0, before)
