"""How latency and memory grow, as tables for the terminal, one series after another."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby

import pandas as pd

from bench.analyse.axes import KEYS, TOKENS, moving, places
from bench.analyse.growth import COEFFICIENTS, PLACES, Exponent, Growth, Scaling, scalings
from bench.analyse.rows import point_of
from bench.analyse.standing import FASTEST, Choice
from bench.plan.errors import WrongRequest
from bench.show import intervals
from bench.show.blocks import GAP, HEAD, QUIET, Block, Column, Lines, Table, definitions
from bench.show.rows import Row, devices, is_measured, plain, process_count, versions
from bench.show.text import any_of, parts
from bench.store import units

ROUNDING = 1e-9
"""The deviation that rounding leaves of a curve through as many places as it has coefficients."""

NEEDED = (
    "a fit takes times of one implementation at two values or more of num_tokens, num_heads, channels or "
    "num_kv_tokens, all other columns the same, for example --num-tokens 197,577,1024"
)

PER = {TOKENS: ("a", "b per token", "c per pair"), KEYS: ("a", "b per key")}
"""The headings of the coefficients of a fit along an axis."""

LINE = {"a, b": "latency ≈ a + b·M at so many queries: what is fixed, what a key costs; none below 0"}
"""What a fit over keys means."""

LEGEND = {
    "a, b, c": "latency ≈ a + b·N + c·N²: what is fixed, what a token costs, what a pair of tokens costs; none below 0",
    "off by": "how far the curve passes a measured latency at most",
    "exponent": "slope of the logarithm against that of the axis, between the two places named: 1 linear, 2 quadratic",
    "memory": "peak memory of a call: its exponent has no interval",
}


def series(table: pd.DataFrame) -> list[Scaling]:
    """Return every series of a table of results; raises WrongRequest if there is none."""
    rows = [row for row in plain(table) if is_measured(row)]
    if found := scalings(rows):
        return found
    raise WrongRequest(f"nothing can be fitted: {_lack(rows)}; {NEEDED}")


def _lack(rows: Sequence[Row]) -> str:
    """Return why measured rows hold no series."""
    if not rows:
        return "no case of the run has a time"
    if len({point_of(row) for row in rows}) == 1:
        return "all cases that have a time are at one point"
    return "no implementation has times at two points that differ in one of these columns alone"


def blocks(scalings: Sequence[Scaling]) -> Iterator[Block]:
    """Yield the series: fits and exponents of each, what to use, and a legend."""
    rows = [row for scaling in scalings for row in scaling.rows]
    yield Lines([" · ".join([*devices(rows), *versions(rows)])])
    for scaling in scalings:
        yield GAP
        yield from _series(scaling)
    yield GAP
    line = LINE if any(scaling.axis is KEYS for scaling in scalings) else {}
    yield definitions({**LEGEND, **line, "[low, high]": _processes(rows)}, tone=QUIET)


def _series(of: Scaling) -> Iterator[Block]:
    point, at = point_of(of.rows[0]), places(of.rows, of.axis)
    yield Lines([f"{of.axis.name} {of.axis.symbol} = {', '.join(map(str, at))}"], HEAD)
    yield Lines([" · ".join(parts(point, without=moving(of.axis, point)))])
    yield from _tables(of)
    if of.axis in COEFFICIENTS:
        yield Lines([*_winners(of)])


def _tables(of: Scaling) -> Iterator[Table]:
    """Yield the fits, if there is one, and below them the exponents."""
    exponents = [growth.latency[-1] for growth in of.growths if growth.latency]
    last = _gap(max(exponents, key=lambda each: (each.end, each.start)))
    name = Column("", lambda growth: growth.implementation)
    fits = [
        Column(heading, partial(_coefficient, place=place), folds=True)
        for place, heading in enumerate(PER.get(of.axis, ()))
    ]
    if any(growth.fit for growth in of.growths):
        yield Table([name, *fits, Column("off by", _deviation, folds=True)], of.growths)
    slopes = [
        Column(f"latency exponent {last}", lambda growth: _exponent(growth.latency, last), folds=True),
        Column(f"memory exponent {last}", lambda growth: _exponent(growth.memory, last), folds=True),
    ]
    yield Table([name, *slopes], of.growths)


def _gap(of: Exponent) -> str:
    return f"{of.start} to {of.end}"


def _coefficient(growth: Growth, place: int) -> str:
    """Return a coefficient of the fit, with its interval below it."""
    if growth.fit is None:
        return f"{PLACES} places needed" if place == 0 else ""
    return intervals.seconds(growth.fit.coefficients_s[place]).replace(" [", "\n[")


def _deviation(growth: Growth) -> str:
    if growth.fit is None:
        return ""
    # what rounding leaves of a curve through every place is 0 %
    return units.percent(growth.fit.deviation if growth.fit.deviation > ROUNDING else 0.0)


def _exponent(exponents: Sequence[Exponent], last: str) -> str:
    """Return the exponent at the largest places, and these places if they differ from the heading's."""
    if not exponents:
        return "2 places needed"
    gap = _gap(exponents[-1])
    return intervals.number(exponents[-1].slope) + (f" from {gap}" if gap != last else "")


def _winners(of: Scaling) -> Iterator[str]:
    if not any(growth.fit for growth in of.growths):
        yield f"no fit: it needs {PLACES} places"
    yield f"to use at {of.axis.symbol}: {_used(of)}"


def _used(of: Scaling) -> str:
    """Return what to use at which places, equal neighbours together: `50 sdpa or mha · 197 to 1024 sdpa`."""
    names = [(place, _named(choice)) for place, choice in of.choices.items()]
    runs = [(name, [place for place, _ in run]) for name, run in groupby(names, key=lambda each: each[1])]
    return " · ".join(f"{at[0]} {name}" if len(at) == 1 else f"{at[0]} to {at[-1]} {name}" for name, at in runs)


def _named(choice: Choice) -> str:
    if choice.standing == FASTEST:
        return f"{choice.name} (fastest)"
    return any_of([choice.name, *choice.as_good]) if choice.name else choice.standing


def _processes(rows: Sequence[Row]) -> str:
    number = process_count(rows)
    has_interval = any(row["latency_low_s"] is not None for row in rows)
    return (
        f"95 % interval over {number}" if has_interval else f"{number}, so no intervals: measure with more --processes"
    )
