"""Other processes are seen at work, and our own work is not taken for theirs."""

import subprocess
import sys
import time

import pytest

from bench.measure.neighbours import WINDOW_S, Neighbours
from bench.store import machine


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """Return clocks to set by hand: of the wall, of our process, of all cores together."""
    times = {"wall": 0.0, "own": 0.0, "busy": 0.0}
    monkeypatch.setattr("bench.measure.neighbours.time.perf_counter", lambda: times["wall"])
    monkeypatch.setattr("bench.measure.neighbours.time.process_time", lambda: times["own"])
    monkeypatch.setattr(machine, "busy_s", lambda: times["busy"])
    return times


def test_what_all_cores_did_less_our_own_is_the_others(clocks: dict[str, float]) -> None:
    """In a second all cores together did 1.8 s and we 1 s: others used 0.8 of a core."""
    seen = Neighbours()
    clocks.update(wall=1.0, own=1.0, busy=1.8)
    assert seen.cores() == pytest.approx(0.8)


def test_within_a_window_the_last_answer_holds(clocks: dict[str, float]) -> None:
    """Before a window is over nothing is looked at; after it only what came since."""
    seen = Neighbours()
    clocks.update(wall=WINDOW_S / 2, busy=1.0)
    assert seen.cores() == 0.0
    clocks.update(wall=1.0)
    assert seen.cores() == pytest.approx(1.0)
    clocks.update(wall=2.0)
    assert seen.cores() == 0.0


def test_a_busy_process_is_seen() -> None:
    """A process that spins for longer than a window shows, whatever else this machine does."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        time.sleep(0.1)
        seen = Neighbours()
        time.sleep(2 * WINDOW_S)
        cores = seen.cores()
        process.kill()
    assert cores > 0.3
