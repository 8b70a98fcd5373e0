"""Interference is the work of other processes; the work of this run is none."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.engine.interference import WINDOW_S, Interference, queued_s
from bench.store import machine

Clocks = dict[str, float]


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    """Return clocks to set by hand: of the wall, of this run's processes, of all cores together."""
    times = {"wall": 0.0, "own": 0.0, "busy": 0.0}
    monkeypatch.setattr("bench.engine.interference.time.perf_counter", lambda: times["wall"])
    monkeypatch.setattr(machine, "visible_cores", lambda: 2)
    monkeypatch.setattr(machine, "busy_s", lambda: times["busy"])
    return times


def on(clocks: Clocks) -> Interference:
    """Return the interference beside one thread, by these clocks."""
    return Interference(1, lambda: clocks["own"])


def test_interference_is_the_work_of_all_cores_without_our_own(clocks: Clocks) -> None:
    """In a second all cores together did 1.8 s and this run 1 s: other processes used 0.8 of a core."""
    clocks.update(own=7.0)
    interference = on(clocks)
    clocks.update(wall=1.0, own=8.0, busy=1.8)
    assert interference.share() == pytest.approx(0.8)


def test_on_many_cores_a_busy_process_weighs_less(clocks: Clocks, monkeypatch: pytest.MonkeyPatch) -> None:
    """One busy core of eight that are left free is an eighth; if none is left free, it is one."""
    for cores, share in ((9, 0.125), (1, 1.0)):
        monkeypatch.setattr(machine, "visible_cores", lambda cores=cores: cores)
        clocks.update(wall=0.0, busy=0.0)
        interference = on(clocks)
        clocks.update(wall=1.0, busy=1.0)
        assert interference.share() == pytest.approx(share)


def test_within_a_window_the_latest_share_holds(clocks: Clocks) -> None:
    """Before a window is over nothing is measured; after it only what came since."""
    interference = on(clocks)
    clocks.update(wall=WINDOW_S / 2, busy=1.0)
    assert interference.share() == 0.0
    clocks.update(wall=1.0)
    assert interference.share() == pytest.approx(1.0)
    clocks.update(wall=2.0)
    assert interference.share() == 0.0


def test_it_is_never_below_zero(clocks: Clocks) -> None:
    """The system counts in hundredths of a second, so our own work may seem to be more than all."""
    interference = on(clocks)
    clocks.update(wall=1.0, own=1.0, busy=0.99)
    assert interference.share() == 0.0


@pytest.mark.slow
def test_a_busy_process_is_seen() -> None:
    """A process that spins for longer than a window shows, whatever else this machine does."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        time.sleep(0.1)
        interference = Interference(1, time.process_time)
        time.sleep(2 * WINDOW_S)
        share = interference.share()
        process.kill()
    assert share > 0.3


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="this system doesn't count the wait for a core")
def test_a_process_that_shares_a_core_waits_for_it() -> None:
    """Of two busy processes on one core each waits for about half of the time; a process that is gone for none."""
    core = min(os.sched_getaffinity(0))
    code = f"import os, time\nos.sched_setaffinity(0, {{{core}}})\nend = time.time() + 1\nwhile time.time() < end: pass"
    processes = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    waited = 0.0
    while all(process.poll() is None for process in processes):
        waited = max(waited, *(queued_s(process.pid) for process in processes))
        time.sleep(0.02)
    for process in processes:
        process.wait()
    assert waited > 0.1
    assert queued_s(processes[0].pid) == 0.0
