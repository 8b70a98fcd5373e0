"""Ratios with their intervals, as text rounded to the digits that the interval supports and as numbers for JSON."""

import math
from typing import Any

from bench.stats.estimates import Interval
from bench.store import units

COARSE = 3
"""A half-width with a first digit below this gets a second one, because 1 or 2 alone is coarse."""

UNBOUNDED = "unbounded"
"""The text for an infinite end of an interval."""

DECIMALS = 2
"""Decimals of an exact ratio."""

OUTWARD = 0.5 - 1e-6
"""The part of the last digit by which an end is moved before it is rounded; below 0.5, so that 1.1 stays 1.10."""


def ratio(of: Interval, decimals: int = DECIMALS) -> str:
    """Return a ratio with its interval, such as `1.20x [1.05, 1.37]`, with at most this many decimals.

    The half-width determines how many. The low end has at least two significant digits. Ends are rounded outward, so
    they agree with bounds in percent.
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
        decimals, shifts = max(supported, least), (0, -OUTWARD, OUTWARD)
        value, low, high = (_digits(end, decimals, shift) for end, shift in zip(ends, shifts, strict=True))
    return f"{value}x [{low}, {high}]"


def as_numbers(name: str, of: Interval) -> dict[str, float | None]:
    """Return an interval as three entries of a JSON object; unknown ones are null."""
    return {name: finite(of.value), f"{name}_low": finite(of.low), f"{name}_high": finite(of.high)}


def finite(value: Any) -> float | None:
    """Return a number for JSON, None if it is unknown or not finite."""
    return None if units.is_missing(value) else float(value)


def _digits(value: float, decimals: int, shift: float) -> str:
    if math.isinf(value):
        return UNBOUNDED
    rounded = round(value + shift * 10.0**-decimals, decimals) + 0  # + 0 makes -0 plain
    return f"{rounded:.{max(0, decimals)}f}" if value else "0"
