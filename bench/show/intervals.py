"""Ratios with their intervals: as text, rounded to the digits that the interval supports, and as numbers for JSON."""

import math
from typing import Any

from bench.stats.estimates import Interval
from bench.store import units

COARSE = 3
"""A half-width whose first digit is below this has two digits, because 1 or 2 alone is coarse."""

UNBOUNDED = "unbounded"
"""The end of an interval that has none."""

DECIMALS = 2
"""Decimals of an exact ratio."""


def ratio(of: Interval, decimals: int = DECIMALS) -> str:
    """Return a ratio with its interval, to as many decimals at most: `1.20x [1.05, 1.37]`.

    They are those that the half-width supports. The low end has two digits: how slow it may be follows from them.
    """
    if not of.is_known:
        return units.ratio(of.value)
    ends = (of.value, of.low, of.high)
    half = min(abs(end - of.value) for end in ends[1:]) if math.isinf(of.high) else (of.high - of.low) / 2
    if half == 0:
        value, low, high = map(units.significant, ends)
    else:
        power = math.floor(math.log10(half))
        supported = min((half / 10**power < COARSE) - power, decimals)
        least = min(decimals, 1 - math.floor(math.log10(of.low))) if of.low > 0 else supported
        value, low, high = (_digits(end, max(supported, least)) for end in ends)
    return f"{value}x [{low}, {high}]"


def as_numbers(name: str, of: Interval) -> dict[str, float | None]:
    """Return an interval as three entries of a JSON object, of which those that aren't known are null."""
    return {name: finite(of.value), f"{name}_low": finite(of.low), f"{name}_high": finite(of.high)}


def finite(value: Any) -> float | None:
    """Return a number for JSON, None if it isn't known, or not finite."""
    return None if units.is_missing(value) else float(value)


def _digits(value: float, decimals: int) -> str:
    if math.isinf(value):
        return UNBOUNDED
    return f"{round(value, decimals) + 0:.{max(0, decimals)}f}" if value else "0"  # + 0 makes -0 plain
