"""How quiet the machine is before a run, and what slows a sample: other processes, its own speed."""

import subprocess
import sys
import time

import pytest

from bench.machine import facts, monotonic, quiet
from bench.machine.quiet import BUSY_CORES, WINDOW_S, Interference, Preflight


@pytest.mark.slow
def test_a_busy_neighbour_is_seen() -> None:
    """A process that keeps a core busy shows as most of a core before a run, and beside samples."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as neighbour:
        others_cores = quiet.watch().others_cores
        interference = Interference(1, time.process_time)
        time.sleep(2 * WINDOW_S)
        share = interference.share()
        neighbour.kill()
    assert others_cores > 0.5
    assert share > 0.3


@pytest.mark.parametrize(
    ("others", "threads", "cores", "lines"),
    [
        (0.1, 2, 2, []),
        (1.0, 4, 64, []),  # one busy core of the sixty that we leave free
        (0.3, 1, 2, ["other processes use 0.3 of 2 cores"]),
        (0.3, 2, 2, ["other processes use 0.3 cores"]),
        (1.0, 2, 2, ["or use --threads 1"]),
        (1.0, 1, 1, ["needs the only one. ", "only one core is available"]),
        (0.0, 1, 1, ["only one core is available"]),
    ],
)
def test_others_on_a_quarter_of_the_free_cores_are_worth_a_warning(
    others: float, threads: int, cores: int, lines: list[str]
) -> None:
    """The warning says what to do, and advises fewer threads only if there are two; so does a single core.

    A clock with which a fixed product's time varies by a fifth is worth one too.
    """
    warnings = quiet.warnings(Preflight(others, switches=0, spread=0.01), threads, cores)
    assert len(warnings) == len(lines)
    assert all(words in line for words, line in zip(lines, warnings, strict=True))
    assert any("--threads" in line for line in warnings) is (others > BUSY_CORES and threads == cores > 1)
    assert "varies by 20%" in quiet.warnings(Preflight(others, 0, spread=0.2), threads, cores)[-1]


Clocks = dict[str, float]


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    """Return clocks to set by hand: of the wall, of this run's processes, of all cores together."""
    times = {"wall": 0.0, "own": 0.0, "busy": 0.0}
    monkeypatch.setattr(monotonic, "now_s", lambda: times["wall"])
    monkeypatch.setattr(facts, "visible_cores", lambda: 2)
    monkeypatch.setattr(facts, "busy_s", lambda: times["busy"])
    return times


def on(clocks: Clocks) -> Interference:
    """Return the interference beside one thread, by these clocks."""
    return Interference(1, lambda: clocks["own"])


@pytest.mark.parametrize(
    ("cores", "own", "busy", "share"),
    [
        (2, 1.0, 1.8, 0.8),  # other processes used 0.8 of the core that we leave free
        (9, 0.0, 1.0, 0.125),
        (1, 0.0, 1.0, 1.0),  # no core is left free: the share is of one core
        (2, 1.0, 0.99, 0.0),  # the system counts in hundredths of a second
    ],
)
def test_interference_is_the_work_of_all_cores_without_our_own(
    cores: int, own: float, busy: float, share: float, clocks: Clocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a second all cores together were busy for so long, and this run's processes for their part of it."""
    monkeypatch.setattr(facts, "visible_cores", lambda: cores)
    clocks.update(own=7.0)
    interference = on(clocks)
    clocks.update(wall=1.0, own=7.0 + own, busy=busy)
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
