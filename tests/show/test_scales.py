"""Where an axis ends and where its ticks stand."""

import math

import pytest

from bench.show import scales


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (4e-3, 3.2e-1, [5e-3, 1e-2, 2e-2, 5e-2, 1e-1, 2e-1]),
        (2.2e-2, 1.15e-1, [3e-2, 5e-2, 7e-2, 1e-1]),
        (0.9, 1.45, [0.9, 1.0, 1.1, 1.2, 1.3, 1.4]),
        (1e-3, 4.0, [1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0, 3.0]),
    ],
)
def test_decimal_ticks_are_round_numbers(low: float, high: float, ticks: list[float]) -> None:
    """Four to eight round numbers mark an axis, however long or short it is."""
    assert scales.decimal(low, high) == pytest.approx(ticks)


def test_binary_ticks_are_powers_of_two() -> None:
    """Memory is marked at powers of two, further apart on a longer axis."""
    assert scales.binary(2.1e6, 5e8) == [2.0**power for power in range(22, 29)]
    assert scales.binary(2**10, 2**30) == [2.0**power for power in range(12, 31, 3)]


def test_a_short_axis_of_memory_is_marked_in_steps_of_its_unit() -> None:
    """Between 11 and 12 MiB there is no power of two."""
    ticks = scales.binary(11 * 2**20, 12 * 2**20)
    assert len(ticks) >= 4
    assert all(tick / 2**20 * 5 == pytest.approx(round(tick / 2**20 * 5)) for tick in ticks)


@pytest.mark.parametrize("span", [1.1, 1.2, 1.5, 2, 4, 9, 30, 300, 1e5, 1e9])
@pytest.mark.parametrize("low", [3.3e-7, 1.0, 777.0, 2.4e6])
def test_every_axis_has_ticks_inside(low: float, span: float) -> None:
    """No axis is without ticks, and none has so many that they can't be read."""
    for find in (scales.decimal, scales.binary):
        ticks = find(low, low * span)
        assert 2 <= len(ticks) <= 12
        assert all(low <= tick <= low * span for tick in ticks)
        assert ticks == sorted(set(ticks))


def test_limits_hold_values_and_their_intervals() -> None:
    """The axis leaves room around all that is drawn, and passes over what is missing."""
    low, high = scales.limits([1.0, 2.0, math.nan], [0.9, math.nan], [2.2, math.nan])
    assert 0.8 < low < 0.9
    assert 2.2 < high < 2.5


def test_a_wild_interval_does_not_flatten_the_lines() -> None:
    """An interval over three decades widens the axis by half at most, margins apart."""
    low, high = scales.limits([1.0, 2.0], [1e-3], [1e3])
    assert 0.5 < low < 1 / 1.5
    assert 3 < high < 4


def test_equal_values_stand_on_an_axis_that_magnifies_no_noise() -> None:
    """The axis of a constant still spans ten per cent."""
    low, high = scales.limits([1.0, 1.0], [], [])
    assert high / low >= scales.LEAST_SPAN


def test_labels_that_would_touch_are_left_out() -> None:
    """The first in order are kept, and each of the rest only where there is room."""
    assert scales.spaced([0, 1, 1.2, 3], [0.5] * 4, order=[3, 0, 2, 1]) == [0, 2, 3]
