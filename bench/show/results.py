"""The results as a table by point, fastest first."""

import math
from collections.abc import Iterator, Sequence

import pandas as pd

from bench.analyse.axes import Exponent, exponents, moving
from bench.analyse.flags import Flag, flags, legend
from bench.analyse.rows import UNTRIED, Row, is_measured, measured
from bench.plan.sweep import Sweep
from bench.show import failures
from bench.show.answer import At, points_of, tone, words
from bench.show.blocks import (
    BAD,
    GAP,
    HEAD,
    PLAIN,
    QUIET,
    WARNING,
    Block,
    Column,
    Lines,
    Table,
    definitions,
    right,
)
from bench.show.columns import HEADINGS, WITHIN
from bench.show.doubts import control_warning
from bench.show.rows import against_data_sheets, devices, gpu_state, process_count, versions
from bench.show.text import differences, shared, varying

PAIRED = "Ratios are paired within rounds, so they are not quotients of the latencies"
"""The note on how to read ratios."""


def results(
    table: pd.DataFrame, columns: Sequence[Column], whole: pd.DataFrame, planned: Sweep | None = None
) -> Iterator[Block]:
    """Yield the rows of each point below its answer, the growth of latency and memory, and why cases have no time.

    `table` has the rows to show, `whole` all rows of the run. The control's rows are not shown; if they differ too
    much, the first line says so. Points are named by what differs among them and the `planned` ones.
    """
    points = points_of(table, planned, longest=math.inf)  # headings may be long
    rows = [row for at in points for row in _rows(at, f"{at.label}: " if len(points) > 1 else "")]
    if not rows:
        yield Lines(["no results"])
        return
    times = measured(rows)
    yield Lines([*filter(None, [control_warning(whole)])], BAD)
    yield Lines([shared([at.point for at in points])], HEAD)
    about = [*devices(rows), gpu_state(times), *versions(rows), process_count(times)]
    yield Lines([" · ".join(filter(None, about)), *against_data_sheets(times)])
    first = Column("point" if len(points) > 1 else "use", lambda row: str(row["use"]))
    yield Table([first, *columns], rows, indent=2, tone=lambda row: str(row["tone"]), in_sections=True)
    if any(column.heading == HEADINGS["slowdown_high"] and any(map(column.text, times)) for column in columns):
        yield from (GAP, Lines([WITHIN, PAIRED], QUIET))
    if letters := {flag.letter: _meaning(flag) for flag in legend([flag for row in times for flag in flags(row)])}:
        yield from (GAP, definitions(letters, tone=WARNING))
    yield from _growth(times)
    if told := failures.table(points):
        yield from (GAP, *told)


def _rows(at: At, label: str) -> Iterator[Row]:
    """Yield the rows of a point in order, with its answer and their tone."""
    use = f"{label}{words(at.choice)}"
    for row in at.rows:
        failed = QUIET if row["status"] in UNTRIED else BAD
        of_time = tone(at.choice) if row["implementation"] == at.choice.name else PLAIN
        yield {**row, "use": use, "tone": of_time if is_measured(row) else failed}


def _meaning(of: Flag) -> str:
    return ": ".join(filter(None, (of.meaning, of.advice)))


def _growth(rows: Sequence[Row]) -> Iterator[Block]:
    """Yield the exponents of each series."""
    found = exponents(rows)
    different = varying([of.point for of in found])

    def series(of: Exponent) -> str:
        others = differences(of.point, different - moving(of.axis, of.point))
        return " ".join(filter(None, (f"{of.axis.title} {of.start} to {of.end}", others)))

    def power(of: Exponent, value: float | None) -> str:
        return "" if value is None else f"{of.axis.symbol}^{value:.1f}"

    columns = [
        Column("series", series, folds=True),
        Column("implementation", lambda of: of.implementation, folds=True, is_code=True),
        Column("latency ~", lambda of: power(of, of.latency), right),
        Column("memory ~", lambda of: power(of, of.memory), right),
    ]
    yield from (GAP, Lines(["Growth between the last two sizes"], HEAD)) if found else ()
    yield Table(columns, found, indent=2)
