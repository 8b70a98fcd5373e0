"""Values with their intervals in words."""

import math
from collections.abc import Callable

import pytest

from bench.show import intervals
from bench.stats.estimates import Interval

UNKNOWN = (math.nan, math.nan)


@pytest.mark.parametrize(
    ("words", "of", "text"),
    [
        (intervals.seconds, Interval(128.5e-6, 36e-6, 191e-6), "130 µs [40, 190]"),
        (intervals.seconds, Interval(128.54e-6, 128.1e-6, 129.0e-6), "128.5 µs [128.1, 129.0]"),
        (intervals.seconds, Interval(0.0, 0.0, 3.9e-3), "0 ms [0, 3.9]"),
        (intervals.seconds, Interval(73e-6, 0.0, 10.1e-3), "0 ms [0, 10]"),
        (intervals.seconds, Interval(2e-3, 1.5e-3, 2.5e-3), "2.0 ms [1.5, 2.5]"),
        (intervals.seconds, Interval(1.234e-3, *UNKNOWN), "1.23 ms"),
        (intervals.seconds, Interval(0.0, *UNKNOWN), "0 ns"),
        (intervals.number, Interval(1.473, 0.38, 2.56), "1.5 [0.4, 2.6]"),
        (intervals.number, Interval(1.473, 1.453, 1.493), "1.47 [1.45, 1.49]"),
        (intervals.number, Interval(-0.004, -0.6, 0.6), "0.0 [-0.6, 0.6]"),
        (intervals.number, Interval(1.888, *UNKNOWN), "1.89"),
        (intervals.number, Interval(-1e-17, *UNKNOWN), "0.00"),
        (intervals.ratio, Interval(1.234, 1.206, 1.263), "1.23x [1.21, 1.26]"),
        (intervals.ratio, Interval(1.2, 1.05, 1.37), "1.20x [1.05, 1.37]"),
        (intervals.ratio, Interval(1.2, *UNKNOWN), "1.20x"),
        (intervals.ratio, Interval(1.05, 0.3, math.inf), "1.05x [0.30, unbounded]"),
        (intervals.ratio, Interval(0.97, 0.373, 2.54), "0.97x [0.37, 2.54]"),
        (intervals.ratio, Interval(3.0, 0.6, 15.04), "3.00x [0.60, 15.04]"),
        (intervals.ratio, Interval(20.0, 11.0, 36.0), "20x [11, 36]"),
        (intervals.seconds, Interval(2e-3, 1.5e-3, math.inf), "2.0 ms [1.5, unbounded]"),
    ],
)
def test_a_value_shows_the_digits_that_its_interval_leaves(
    words: Callable[[Interval], str], of: Interval, text: str
) -> None:
    """Value and ends stand in one unit, cut off where the half-width begins; without an interval three digits.

    A number and a ratio have two decimals at most and no minus without a digit. The low end of a ratio has two digits
    all the same: 0.4 would be anything from 120 to 190 % slower.
    """
    assert words(of) == text
    assert words(Interval(2.0, 2.0, 2.0)).startswith("2")
