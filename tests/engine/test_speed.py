"""Readings of the speed probe: when they are taken, and which ones belong to a sample."""

from collections.abc import Iterator

import pytest

from bench.engine import speed
from bench.engine.speed import Speed
from tests.clock import Clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Return the clock of the readings."""
    made = Clock()
    monkeypatch.setattr(speed, "time", made)
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
