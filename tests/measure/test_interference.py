"""Interference is the work of other processes; our own work is none."""

import subprocess
import sys
import time
from types import SimpleNamespace
from unittest.mock import Mock

import psutil
import pytest

from bench.measure.interference import WINDOW_S, Interference
from bench.store import machine


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """Return clocks to set by hand: of the wall, of our process, of all cores together."""
    times = {"wall": 0.0, "own": 0.0, "busy": 0.0}
    monkeypatch.setattr("bench.measure.interference.time.perf_counter", lambda: times["wall"])
    monkeypatch.setattr("bench.measure.interference.time.process_time", lambda: times["own"])
    monkeypatch.setattr(machine, "visible_cores", lambda: 2)
    monkeypatch.setattr(machine, "busy_s", lambda: times["busy"])
    return times


def test_what_all_cores_did_less_our_own_is_the_others(clocks: dict[str, float]) -> None:
    """In a second all cores together did 1.8 s and we 1 s: others used 0.8 of a core."""
    interference = Interference(threads=1)
    clocks.update(wall=1.0, own=1.0, busy=1.8)
    assert interference.share() == pytest.approx(0.8)


def test_on_many_cores_a_busy_process_weighs_less(clocks: dict[str, float], monkeypatch: pytest.MonkeyPatch) -> None:
    """One busy core of eight that we leave free is an eighth; where we leave none free it is one."""
    for cores, share in ((9, 0.125), (1, 1.0)):
        monkeypatch.setattr(machine, "visible_cores", lambda cores=cores: cores)
        clocks.update(wall=0.0, busy=0.0)
        interference = Interference(threads=1)
        clocks.update(wall=1.0, busy=1.0)
        assert interference.share() == pytest.approx(share)


def test_within_a_window_the_last_answer_holds(clocks: dict[str, float]) -> None:
    """Before a window is over nothing is looked at; after it only what came since."""
    interference = Interference(threads=1)
    clocks.update(wall=WINDOW_S / 2, busy=1.0)
    assert interference.share() == 0.0
    clocks.update(wall=1.0)
    assert interference.share() == pytest.approx(1.0)
    clocks.update(wall=2.0)
    assert interference.share() == 0.0


def test_a_process_that_alternates_with_us_is_no_interference(
    clocks: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the other side of a duel does is taken off like our own work; once it has ended, nothing more is."""
    used = SimpleNamespace(user=0.0, system=0.0)
    monkeypatch.setattr(psutil, "Process", lambda _pid: SimpleNamespace(cpu_times=lambda: used))
    interference = Interference(threads=1, beside=7)
    used.user, used.system = 0.5, 0.1
    clocks.update(wall=1.0, own=0.4, busy=1.0)
    assert interference.share() == pytest.approx(0.0)
    monkeypatch.setattr(psutil, "Process", Mock(side_effect=psutil.NoSuchProcess(7)))
    clocks.update(wall=2.0, own=0.8, busy=1.9)
    assert interference.share() == pytest.approx(0.5)


@pytest.mark.slow
def test_a_busy_process_is_seen() -> None:
    """A process that spins for longer than a window shows, whatever else this machine does."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        time.sleep(0.1)
        interference = Interference(threads=1)
        time.sleep(2 * WINDOW_S)
        share = interference.share()
        process.kill()
    assert share > 0.3
