"""Values with their intervals: as text, rounded to the digits that the interval supports, and as numbers for JSON."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any

from bench.stats.estimates import Interval
from bench.store import units

COARSE = 3
"""A half-width whose first digit is below this has two digits, because 1 or 2 alone is coarse."""

UNBOUNDED = "unbounded"
"""The end of an interval that has none."""

DECIMALS = 2
"""Decimals of an exact ratio or exponent."""


def seconds(of: Interval) -> str:
    """Return a time with its interval in one unit: `130 µs [90, 170]`."""
    if not of.is_known:
        return units.seconds(of.value)
    name = units.seconds(of.value if math.isinf(of.high) else of.high).split()[1]
    scale = dict(units.TIME_UNITS)[name]
    value, low, high = _rounded(Interval(of.value / scale, of.low / scale, of.high / scale))
    return f"{value} {name} [{low}, {high}]"


def number(of: Interval) -> str:
    """Return a number with its interval: `1.5 [0.4, 2.6]`; without an interval it has two decimals."""
    if not of.is_known:
        return f"{round(of.value, DECIMALS) + 0:.{DECIMALS}f}"  # + 0 makes -0.00 plain
    value, low, high = _rounded(of, DECIMALS)
    return f"{value} [{low}, {high}]"


def ratio(of: Interval, decimals: int = DECIMALS, *, least: float = -math.inf) -> str:
    """Return a ratio with its interval, with `least` to `decimals` decimals: `1.20x [1.05, 1.37]`."""
    if not of.is_known:
        return units.ratio(of.value)
    value, low, high = _rounded(of, decimals, max(least, _least_of_ratio(of, decimals)))
    return f"{value}x [{low}, {high}]"


def _least_of_ratio(of: Interval, most: int) -> float:
    """Return the decimals with which the low end of a ratio has two digits: how slow it may be follows from them."""
    return min(most, 1 - math.floor(math.log10(of.low))) if 0 < of.low < math.inf else -math.inf


def as_numbers(name: str, of: Interval) -> dict[str, float | None]:
    """Return an interval as three entries of a JSON object, of which those that aren't known are null."""
    return {name: finite(of.value), f"{name}_low": finite(of.low), f"{name}_high": finite(of.high)}


def finite(value: Any) -> float | None:
    """Return a number for JSON, None if it isn't known, or not finite."""
    return None if units.is_missing(value) else float(value)


def _rounded(of: Interval, most: float = math.inf, least: float = -math.inf) -> tuple[str, ...]:
    """Return value, low and high with the decimals that the half-width supports, from `least` to `most`.

    The ends are rounded outwards, as all bounds are.
    """
    half, ends = (of.high - of.low) / 2, (of.value, of.low, of.high)
    if math.isinf(half):
        half = min(abs(end - of.value) for end in (of.low, of.high))
    if half == 0:
        return tuple(units.significant(end) for end in ends)
    power = math.floor(math.log10(half))
    decimals = int(max(least, min((half / 10**power < COARSE) - power, most)))
    return tuple(map(_digits, ends, [decimals] * 3, (ROUND_HALF_EVEN, ROUND_FLOOR, ROUND_CEILING)))


def _digits(value: float, decimals: int, towards: str) -> str:
    if math.isinf(value):
        return UNBOUNDED
    # a float as people read it: 1.1 is not rounded up to 1.2 because it is stored as 1.1000000000000001
    rounded = float(Decimal(f"{value:.9g}").quantize(Decimal(1).scaleb(-decimals), rounding=towards))
    return f"{rounded + 0:.{max(0, decimals)}f}" if value else "0"  # + 0 makes -0 plain
