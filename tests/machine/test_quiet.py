"""How quiet the machine is before a run, and what slows a sample: other processes, its own speed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.machine import facts, quiet
from bench.machine.quiet import WINDOW_S, Interference, Preflight, Speed, queued_s
from tests.clock import Clock


@pytest.fixture
def neighbour() -> Iterator[None]:
    """Keep a core busy."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    yield
    process.kill()
    process.wait()


@pytest.mark.slow
@pytest.mark.usefixtures("neighbour")
def test_a_busy_neighbour_is_seen() -> None:
    """A process that keeps a core busy shows as most of a core."""
    assert quiet.watch(0.5).others_cores > 0.5


def test_all_cores_on_a_busy_machine_warn_and_say_what_to_do() -> None:
    """With a neighbour, a run on every core is warned about, with the option that helps."""
    (said,) = quiet.warnings(Preflight(others_cores=1.0, switches=0, spread=0.01), threads=2, cores=2)
    assert "other processes use 1.0 cores" in said
    assert "--threads 1" in said


def test_fewer_threads_are_advised_only_if_there_are_two() -> None:
    """On a single core a single thread can't become fewer."""
    said, _ = quiet.warnings(Preflight(others_cores=1.0, switches=0, spread=0.01), threads=1, cores=1)
    assert "quiet the machine" in said
    assert "--threads" not in said


@pytest.mark.parametrize(
    ("others", "threads", "count"),
    [(0.1, 2, 0), (0.1, 1, 0), (0.3, 1, 1), (1.5, 1, 1), (0.3, 2, 1)],
)
def test_others_on_a_quarter_of_the_free_cores_are_worth_a_warning(others: float, threads: int, count: int) -> None:
    """On two cores a neighbour may be the other half of ours, whether we use one or both."""
    assert len(quiet.warnings(Preflight(others, 0, 0.01), threads, cores=2)) == count


def test_on_many_cores_a_busy_one_is_no_news() -> None:
    """One busy core of the sixty that we leave free disturbs nobody."""
    assert quiet.warnings(Preflight(1.0, 0, 0.01), threads=4, cores=64) == []


def test_an_unsteady_clock_is_said() -> None:
    """A fixed product whose time varies by a fifth is worth a line."""
    (said,) = quiet.warnings(Preflight(0.0, 0, 0.2), threads=1, cores=2)
    assert "varies by 20%" in said


def test_a_single_core_is_said() -> None:
    """The run goes on with it."""
    (said,) = quiet.warnings(Preflight(0.0, 0, 0.01), threads=1, cores=1)
    assert "one core" in said


Clocks = dict[str, float]


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    """Return clocks to set by hand: of the wall, of this run's processes, of all cores together."""
    times = {"wall": 0.0, "own": 0.0, "busy": 0.0}
    monkeypatch.setattr("bench.machine.quiet.time.perf_counter", lambda: times["wall"])
    monkeypatch.setattr(facts, "visible_cores", lambda: 2)
    monkeypatch.setattr(facts, "busy_s", lambda: times["busy"])
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
        monkeypatch.setattr(facts, "visible_cores", lambda cores=cores: cores)
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


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="this system doesn't say which signals wait")
def test_a_process_is_stopped_from_the_signal_on() -> None:
    """At once, though it may not have run since; and no longer when it goes on."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        for _ in range(20):
            assert not quiet.is_stopped(process.pid)
            os.kill(process.pid, signal.SIGSTOP)
            assert quiet.is_stopped(process.pid)
            os.kill(process.pid, signal.SIGCONT)
        process.kill()
    assert not quiet.is_stopped(process.pid)


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


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Return the clock of the readings."""
    made = Clock()
    monkeypatch.setattr(quiet, "time", made)
    return made


def probing(clock: Clock, *readings: tuple[float, float] | None, cost_s: float = 1.0) -> Speed:
    """Return readings of these values, each of which costs the clock some seconds."""
    values: Iterator[tuple[float, float] | None] = iter(readings)

    def probe() -> tuple[float, float] | None:
        clock.now_s += cost_s
        return next(values)

    return Speed(probe)


def test_probes_take_a_twelfth_of_the_time(clock: Clock) -> None:
    """After a probe of one second the next one waits for eleven; until then its reading is the latest."""
    readings = probing(clock, (1.0, 2.0), (3.0, 4.0))
    assert readings.reading() == 0
    clock.now_s += 10.9
    assert readings.reading() == 0
    clock.now_s += 0.2
    assert readings.reading() == 1


def test_a_sample_has_the_mean_of_the_readings_around_it(clock: Clock) -> None:
    """The first sample lies between both readings, the second after the last one."""
    readings = probing(clock, (1.0, 2.0), (3.0, 6.0))
    readings.read()
    readings.read()
    assert readings.around([0, 1]) == ([2.0, 3.0], [4.0, 6.0])


def test_a_probe_that_fails_leaves_no_reading(clock: Clock) -> None:
    """A sample before the first reading has that one; if there is none at all, samples have no speed."""
    readings = probing(clock, None, (1.0, 2.0))
    assert readings.reading() == -1
    assert readings.around([-1]) == ([], [])
    readings.read()
    assert readings.around([-1]) == ([1.0], [2.0])


def test_the_best_is_a_low_quantile(clock: Clock) -> None:
    """One reading of a hundred that is much shorter than the others is luck; one reading alone says nothing."""
    readings = probing(clock, (0.1, 0.1), *[(1.0 + i / 100, 2.0) for i in range(99)])
    readings.read()
    assert readings.best() is None
    for _ in range(99):
        readings.read()
    product_s, copy_s = readings.best() or (0.0, 0.0)
    assert 1.0 < product_s < 1.1
    assert copy_s == 2.0


@pytest.mark.parametrize("count", [2, 3, 10])
def test_the_best_of_few_readings_was_measured(clock: Clock, count: int) -> None:
    """It is no shorter than the shortest one, however far the others are."""
    readings = probing(clock, *[(1.0 + i, 3.0 + 2 * i) for i in range(count)])
    for _ in range(count):
        readings.read()
    product_s, copy_s = readings.best() or (0.0, 0.0)
    assert 1.0 <= product_s < 2.0
    assert 3.0 <= copy_s < 5.0
