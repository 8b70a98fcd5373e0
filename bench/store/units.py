"""Numbers in base units as text for people: three significant digits, empty for a missing number."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bench.store.metrics import Unit

Number = Any
"""A float or an int; None, NaN or pandas' NA if nothing was measured."""

TIME_UNITS = (("ns", 1e-9), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0))
ENERGY_UNITS = (("nJ", 1e-9), ("µJ", 1e-6), ("mJ", 1e-3), ("J", 1.0), ("kJ", 1e3))
RATE_PREFIXES = (("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12), ("P", 1e15))
BINARY_UNITS = (("B", 1.0), ("KiB", 2.0**10), ("MiB", 2.0**20), ("GiB", 2.0**30), ("TiB", 2.0**40), ("PiB", 2.0**50))

DIGITS = 3


def is_missing(value: Number) -> bool:
    """Return whether a number was not measured, or is not finite."""
    try:
        return not math.isfinite(value)
    except TypeError:  # None, or pandas' NA
        return True


def seconds(value_s: Number, *, trim: bool = False) -> str:
    """Return a time such as `3.21 ms`; with `trim`, without trailing zeros: `20 ms`."""
    return "" if is_missing(value_s) else _scaled(float(value_s), TIME_UNITS, trim)


def size(value_bytes: Number, *, trim: bool = False) -> str:
    """Return a number of bytes in binary units, such as `12.4 MiB`; below 1 KiB it is a whole number."""
    if is_missing(value_bytes):
        return ""
    if abs(value_bytes) < 2**10:
        return f"{round(value_bytes)} B"
    return _scaled(float(value_bytes), BINARY_UNITS, trim)


def rate(value: Number, unit: str, *, trim: bool = False) -> str:
    """Return a rate in decimal multiples of its unit, such as `1.23 TFLOP/s`; with `trim`, without trailing zeros."""
    return "" if is_missing(value) else _scaled(float(value), [(p + unit, scale) for p, scale in RATE_PREFIXES], trim)


def ratio(value: Number, *, trim: bool = False) -> str:
    """Return a ratio such as `1.23x`, with two decimals from 0.1 to 10, so that usual ratios align."""
    if is_missing(value):
        return ""
    usual = 0.1 <= value < 9.995
    text = f"{value:.2f}" if usual and not trim else significant(float(value), trim=trim)
    return f"{text}x"


def percent(share: Number, *, trim: bool = False) -> str:
    """Return a share as a percentage with two significant digits, whole from 10 % on: `0.84%`, `2.3%`, `14%`."""
    if is_missing(share):
        return ""
    return f"{significant(100 * float(share), digits=2, trim=trim or share == 0)}%"


def count(value: Number) -> str:
    """Return a mean count: `0`, `0.02`, `4.1`, `1,341`."""
    if is_missing(value):
        return ""
    rounded = _rounded(float(value), 2)
    return f"{value:,.0f}" if rounded >= 10 or rounded == 0 else f"{rounded:g}"


def formatted(value: Number, unit: Unit, *, trim: bool = False) -> str:
    """Return a value in its unit; with `trim`, without trailing zeros."""
    return "" if is_missing(value) else FORMATS[unit](value, trim)


def half_width(low: Number, high: Number) -> str:
    """Return the half-width of a ratio's interval: `±2.0%` for [v / 1.02, v · 1.02], empty without one."""
    return "" if is_missing(low) or is_missing(high) or low <= 0 else f"±{percent(math.sqrt(high / low) - 1)}"


def duration(value_s: Number) -> str:
    """Return a duration such as `45s`, `2m10s`, `3m` or `1h05m`."""
    if is_missing(value_s):
        return ""
    whole = max(0, round(value_s))
    if whole < 60:
        return f"{whole}s"
    large, small, units = (whole // 60, whole % 60, "ms") if whole < 3600 else (whole // 3600, whole % 3600 // 60, "hm")
    return f"{large}{units[0]}{f'{small:02d}{units[1]}' if small else ''}"


def significant(value: float, *, digits: int = DIGITS, trim: bool = False) -> str:
    """Return a number with `digits` significant digits, but always with all digits before the point.

    `trim` drops trailing zeros. The text never has an exponent.
    """
    rounded = _rounded(value, digits)
    decimals = digits - 1 - math.floor(math.log10(abs(rounded))) if rounded else 0
    text = f"{rounded:.{max(0, decimals)}f}"
    return text.rstrip("0").rstrip(".") if trim and "." in text else text


def _scaled(value: float, units: Sequence[tuple[str, float]], trim: bool) -> str:
    # rounded first: 999.7 µs is 1.00 ms, not 1000 µs
    step = units[1][1] / units[0][1]
    fitting = [unit for unit in units if _rounded(abs(value) / unit[1], DIGITS) < step]
    name, scale = fitting[0] if fitting else units[-1]
    return f"{significant(value / scale, trim=trim)} {name}"


def _rounded(value: float, digits: int) -> float:
    # digits before the point stay: 1023 KiB is not 1020 KiB
    return float(f"{value:.0f}") if abs(value) >= 10**digits else float(f"{value:.{digits - 1}e}")


FORMATS: Mapping[Unit, Callable[[Any, bool], str]] = {
    Unit.NONE: lambda value, trim: significant(float(value), trim=trim),
    Unit.SECONDS: lambda value, trim: seconds(value, trim=trim),
    Unit.BYTES: lambda value, trim: size(value, trim=trim),
    Unit.JOULES: lambda value, trim: _scaled(float(value), ENERGY_UNITS, trim),
    Unit.HERTZ: lambda value, trim: rate(value, "Hz", trim=trim),
    Unit.WATTS: lambda value, _trim: f"{value:,.0f} W",
    Unit.CELSIUS: lambda value, _trim: f"{value:.0f} °C",
    Unit.FLOPS: lambda value, trim: rate(value, "FLOP/s", trim=trim),
    Unit.BYTE_RATE: lambda value, trim: rate(value, "B/s", trim=trim),
    Unit.RATIO: lambda value, trim: ratio(value, trim=trim),
    Unit.SHARE: lambda value, trim: percent(value, trim=trim),
    Unit.COUNT: lambda value, _trim: count(value),
}
"""The function that writes a value of each unit."""
