"""The core that a process runs on."""

import os
import sys
import threading

import pytest

from bench.measure.threads import run_on

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets threads choose cores")


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
