"""Values with their intervals in words."""

import math

import pytest

from bench.show import intervals
from bench.stats.estimates import Interval


@pytest.mark.parametrize(
    ("of", "text"),
    [
        (Interval(1.234, 1.206, 1.263), "1.23x [1.20, 1.27]"),
        (Interval(1.28, 1.018, 1.603), "1.28x [1.01, 1.61]"),
        (Interval(1.2, 1.05, 1.37), "1.20x [1.05, 1.37]"),
        (Interval(1.1, 1.1, 1.1), "1.10x [1.10, 1.10]"),
        (Interval(1.2, math.nan, math.nan), "1.20x"),
        (Interval(1.05, 0.3, math.inf), "1.05x [0.30, unbounded]"),
        (Interval(0.97, 0.373, 2.54), "0.97x [0.37, 2.54]"),
        (Interval(3.0, 0.6, 15.04), "3.00x [0.60, 15.04]"),
        (Interval(20.0, 11.0, 36.0), "20x [11, 36]"),
        (Interval(4.26, 4.01, 4.52), "4.26x [4.01, 4.52]"),
    ],
)
def test_a_ratio_shows_the_digits_that_its_interval_leaves(of: Interval, text: str) -> None:
    """Two decimals at most, the low end has two digits, and ends are rounded outward: 1.61 agrees with *within 61%*."""
    assert intervals.ratio(of) == text
