"""Values with their intervals in words."""

import math
from collections.abc import Callable

import pytest

from bench.show import intervals
from bench.stats.estimates import Interval

UNKNOWN = (math.nan, math.nan)


@pytest.mark.parametrize(
    ("of", "text"),
    [
        (Interval(128.5e-6, 36e-6, 191e-6), "130 µs [40, 190]"),
        (Interval(128.54e-6, 128.1e-6, 129.0e-6), "128.5 µs [128.1, 129.0]"),
        (Interval(0.0, 0.0, 3.9e-3), "0 ms [0, 3.9]"),
        (Interval(73e-6, 0.0, 10.1e-3), "0 ms [0, 10]"),
        (Interval(2e-3, 1.5e-3, 2.5e-3), "2.0 ms [1.5, 2.5]"),
        (Interval(1.234e-3, *UNKNOWN), "1.23 ms"),
        (Interval(0.0, *UNKNOWN), "0 ns"),
    ],
)
def test_a_time_shows_the_digits_that_its_interval_leaves(of: Interval, text: str) -> None:
    """Value and ends stand in one unit, cut off where the half-width begins; without an interval three digits."""
    assert intervals.seconds(of) == text


@pytest.mark.parametrize(
    ("of", "text"),
    [
        (Interval(1.473, 0.38, 2.56), "1.5 [0.4, 2.6]"),
        (Interval(1.473, 1.453, 1.493), "1.47 [1.45, 1.49]"),
        (Interval(-0.004, -0.6, 0.6), "0.0 [-0.6, 0.6]"),
        (Interval(1.888, *UNKNOWN), "1.89"),
        (Interval(-1e-17, *UNKNOWN), "0.00"),
    ],
)
def test_a_number_does_too(of: Interval, text: str) -> None:
    """It has two decimals at most, as one that is exact, and keeps no minus without a digit."""
    assert intervals.number(of) == text


@pytest.mark.parametrize(
    ("of", "text"),
    [
        (Interval(1.234, 1.206, 1.263), "1.23x [1.21, 1.26]"),
        (Interval(1.2, 1.05, 1.37), "1.20x [1.05, 1.37]"),
        (Interval(1.2, *UNKNOWN), "1.20x"),
    ],
)
def test_a_ratio_says_that_it_is_one(of: Interval, text: str) -> None:
    """The x stands behind the value alone, and there are two decimals at most."""
    assert intervals.ratio(of) == text


@pytest.mark.parametrize(
    ("of", "text"),
    [
        (Interval(168.7, 164.2, 174.1), "at 169 [164, 174]"),
        (Interval(168.7, 141.0, 223.0), "at 170 [140, 220]"),
        (Interval(200.4, 199.9, 200.8), "at 200 [200, 201]"),
        (Interval(152.3, 0.0, 190.0), "no later than 190"),
        (Interval(820.0, 620.0, math.inf), "no earlier than 620"),
        (Interval(152.3, 0.0, math.inf), "perhaps at 152"),
        (Interval(154.2, *UNKNOWN), "at 154"),
    ],
)
def test_a_place_is_whole_and_may_be_open(of: Interval, text: str) -> None:
    """Half a token is none, and an end that nothing bounds is not made up."""
    assert intervals.place(of) == text


@pytest.mark.parametrize("words", [intervals.seconds, intervals.number, intervals.ratio])
def test_processes_that_agree_to_the_last_digit_can_be_shown(words: Callable[[Interval], str]) -> None:
    """An interval without width has three digits."""
    assert words(Interval(2.0, 2.0, 2.0)).startswith("2")
