"""Base units as people read them."""

import math
from collections.abc import Callable

import pandas as pd
import pytest

from bench.store import units


@pytest.mark.parametrize(
    ("words", "texts"),
    [
        (
            units.seconds,
            {
                0.00321: "3.21 ms",
                3.2e-7: "320 ns",
                5e-10: "0.500 ns",
                9.997e-4: "1.00 ms",
                0.9994: "999 ms",
                12345.6: "12346 s",
                0.0: "0 ns",
            },
        ),
        (
            units.size,
            {
                0: "0 B",
                1023: "1023 B",
                1024: "1.00 KiB",
                1023 * 2**10: "1023 KiB",
                2**20 - 1: "1.00 MiB",
                13_002_342: "12.4 MiB",
                3 * 2**52: "12.0 PiB",
                3 * 2**62: "12288 PiB",
            },
        ),
        (lambda s: units.seconds(s, trim=True), {0.02: "20 ms", 0.1: "100 ms", 0.0015: "1.5 ms", 1.0: "1 s"}),
        (
            units.ratio,
            {1: "1.00x", 1.2345: "1.23x", 0.997: "1.00x", 0.953: "0.95x", 12.34: "12.3x", 0.0123: "0.0123x"},
        ),
        (units.percent, {0.0084: "0.84%", 0.023: "2.3%", 0.144: "14%", 0: "0%", 1: "100%"}),
        (units.count, {0: "0", 0.02: "0.02", 4.1: "4.1", 1341.3: "1,341", 99_000: "99,000"}),
        (units.duration, {0.2: "0s", 45: "45s", 59.7: "1m", 130: "2m10s", 3600: "1h", 3900: "1h05m", -3: "0s"}),
    ],
    ids=["time", "size", "tick", "ratio", "percent", "count", "duration"],
)
def test_a_number_has_the_digits_that_say_something(words: Callable[[float], str], texts: dict[float, str]) -> None:
    """Times and sizes have three digits, rounded before the unit is chosen, but all digits before the point.

    Ticks have no zeros at their end, usual ratios two decimals, shares two digits, counts decimals if small, and a time
    that one waits has at most two units.
    """
    assert {number: words(number) for number in texts} == texts


def test_a_missing_number_is_shown_as_nothing() -> None:
    """None, NaN, NA and infinity are empty, never 0."""
    words = (units.seconds, units.size, units.ratio, units.percent, units.count, units.duration)
    assert {word(missing) for word in words for missing in (None, math.nan, pd.NA, math.inf)} == {""}


def test_the_half_width_of_an_interval_is_a_share() -> None:
    """From v / 1.02 to v · 1.02 it is 2 %. Without an end there is none."""
    assert units.half_width(10 / 1.02, 10 * 1.02) == "±2.0%"
    assert {units.half_width(low, high) for low, high in ((None, 1.0), (1.0, pd.NA), (math.nan, 1.0), (0.0, 1.0))} == {
        ""
    }
    assert units.half_width(10 / 3.4, 34) == "±240%"
