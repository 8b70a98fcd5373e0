"""How latency and memory grow, as tables for the terminal, one series after another."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import pandas as pd
from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

from bench.analyse.growth import COEFFICIENTS, Exponent, Growth, Scaling, has_series, scalings
from bench.analyse.series import TOKENS, Crossover, moving, places, point_of
from bench.analyse.standing import FASTEST, Choice
from bench.plan.errors import WrongRequest
from bench.show import intervals
from bench.show.choice_text import any_of
from bench.show.point_text import parts
from bench.show.rows import Row, devices, is_measured, plain, process_count, versions
from bench.show.terminal.console import QUIET, definitions
from bench.store import units

ROUNDING = 1e-9
"""The deviation that rounding leaves of a curve through as many places as it has coefficients."""

WIDE = 130
"""Exponents stand beside the fits if the console has this number of columns or more, else below them."""

EXPONENTS = ("latency exponent", "memory exponent")

NEEDED = (
    "a fit takes times of one implementation at two values or more of num_tokens, num_heads or channels, "
    "all other columns the same, for example --num-tokens 197,577,1024"
)

LEGEND = {
    "a, b, c": "latency ≈ a + b·N + c·N²: what is fixed, what a token costs, what a pair of tokens costs; none below 0",
    "off by": "how far the curve passes a measured latency at most",
    "exponent": "slope of the logarithm against that of the axis, between the two places named: 1 linear, 2 quadratic",
    "memory": "peak memory of a call: its exponent has no interval",
}


def series(table: pd.DataFrame) -> list[Scaling]:
    """Return every series of a table of results; raises WrongRequest if there is none."""
    rows = [row for row in plain(table) if is_measured(row)]
    if not has_series(rows):
        raise WrongRequest(f"nothing can be fitted: {_lack(rows)}; {NEEDED}")
    return scalings(rows)


def _lack(rows: Sequence[Row]) -> str:
    """Return why measured rows hold no series."""
    if not rows:
        return "no case of the run has a time"
    if len({point_of(row) for row in rows}) == 1:
        return "all cases that have a time are at one point"
    return "no implementation has times at two points that differ in one of these columns alone"


@dataclass(frozen=True)
class SeriesTables:
    """The series one after the other, fitted to the console on which they are printed."""

    scalings: Sequence[Scaling]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield the report, block by block."""
        rows = [row for scaling in self.scalings for row in scaling.rows]
        yield Text(" · ".join([*devices(rows), *versions(rows)]))
        for scaling in self.scalings:
            yield Text()
            yield from _series(scaling, narrow=options.max_width < WIDE)
        yield Text()
        yield definitions({**LEGEND, "[low, high]": _processes(rows)}, QUIET)


def render(scalings: Sequence[Scaling]) -> RenderableType:
    """Return the series for rich: fits, exponents and crossovers of each, and a legend."""
    return SeriesTables(scalings)


def crossover(of: Crossover) -> str:
    """Return a crossover in words, with what its interval leaves open."""
    words = f"{of.before} → {of.after} {intervals.place(of.tokens)} tokens"
    if not of.tokens.is_known:
        return f"{words}, without an interval"
    open_below = [f"that {of.before} leads below is not shown"] if not of.tokens.low else []
    open_above = [f"that {of.after} leads above is not shown"] if math.isinf(of.tokens.high) else []
    return "; ".join([words, *open_below, *open_above])


def _series(of: Scaling, *, narrow: bool) -> Iterator[RenderableType]:
    point, at = point_of(of.rows[0]), places(of.rows, of.axis)
    yield Text(f"{of.axis.name} {of.axis.symbol} = {', '.join(map(str, at))}", "bold")
    yield Text(" · ".join(parts(point, without=moving(of.axis, point))))
    yield from _tables(of, narrow=narrow)
    if of.axis is TOKENS:
        yield from _winners(of)


def _tables(of: Scaling, *, narrow: bool) -> Iterator[Table]:
    """Yield fits and exponents side by side, or one below the other if there is little room."""
    exponents = [growth.latency[-1] for growth in of.growths if growth.latency]
    last = _gap(max(exponents, key=lambda each: (each.end, each.start)))
    fits = {growth.implementation: _fit(growth) for growth in of.growths}
    slopes = {
        growth.implementation: [_exponent(growth.latency, last), _exponent(growth.memory, last)]
        for growth in of.growths
    }
    of_fits, of_slopes = ["a", "b per token", "c per pair", "off by"], [f"{what} {last}" for what in EXPONENTS]
    if not any(growth.fit for growth in of.growths):
        yield _table(of_slopes, slopes)
    elif narrow:
        yield _table(of_fits, {name: [cell.replace(" [", "\n[") for cell in cells] for name, cells in fits.items()})
        yield _table(of_slopes, slopes)
    else:
        yield _table([*of_fits, *of_slopes], {name: [*fits[name], *slopes[name]] for name in fits})


def _table(headings: Sequence[str], lines: Mapping[str, Sequence[str]]) -> Table:
    table = Table(box=None, pad_edge=True, padding=(0, 2, 0, 0), header_style=QUIET)
    table.add_column("", no_wrap=True)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for name, cells in lines.items():
        table.add_row(name, *map(Text, cells))
    return table


def _gap(of: Exponent) -> str:
    return f"{of.start} to {of.end}"


def _fit(growth: Growth) -> list[str]:
    if growth.fit is None:
        return [f"{COEFFICIENTS} places needed", "", "", ""]
    coefficients = (growth.fit.fixed_s, growth.fit.per_token_s, growth.fit.per_pair_s)
    # what rounding leaves of a curve through every place is 0 %
    deviation = growth.fit.deviation if growth.fit.deviation > ROUNDING else 0.0
    return [*map(intervals.seconds, coefficients), units.percent(deviation)]


def _exponent(exponents: Sequence[Exponent], last: str) -> str:
    """Return the exponent at the largest places, and these places if they differ from the heading's."""
    if not exponents:
        return "2 places needed"
    gap = _gap(exponents[-1])
    return intervals.number(exponents[-1].slope) + (f" from {gap}" if gap != last else "")


def _winners(of: Scaling) -> Iterator[Text]:
    if not any(growth.fit for growth in of.growths):
        yield Text(f"no fit: it needs {COEFFICIENTS} places")
    yield Text(f"to use at N: {_used(of)}")
    for each in of.crossovers:
        yield Text(f"crossover: {crossover(each)}")
    if not of.crossovers:
        yield Text("no crossover: no implementation is overtaken by another")


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
