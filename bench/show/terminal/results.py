"""The results as a table in the terminal: by point, fastest first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd
from rich.console import Console, ConsoleOptions, RenderableType
from rich.text import Text

from bench.analyse.flags import flags, legend
from bench.analyse.standing import by_rank
from bench.plan.case import Point
from bench.show.answer import OF_RATIOS, choice_of, tone, words
from bench.show.blocks import BAD, GAP, HEAD, PLAIN, QUIET, WARNING, Block, Lines, definitions
from bench.show.columns import columns, complete
from bench.show.doubts import control_warning
from bench.show.failures import of_baseline, of_point
from bench.show.rows import (
    Row,
    against_data_sheets,
    by_point,
    devices,
    gpu_state,
    measured,
    process_count,
    unmeasured,
    versions,
)
from bench.show.terminal.console import Fitted, fit, render, row_line
from bench.show.text import differences, shared, varying
from bench.store.table import without_control

INDENT = 2

READING = (
    "slower by: than the fastest of the point, from the least to the most that the run allows; 0 may be the fastest. "
    f"{OF_RATIOS}. ±: the 95 % interval of a latency; it is wide "
    "because the machine's speed changes all times of a point alike. That cancels in ratios, which are taken round by "
    "round: they are not the quotients of latencies, and give the order of the rows"
)
"""How the columns are to be read."""

UNKNOWN_BASELINE = (
    "The baseline of these speed-ups is not known: an older results.csv alone doesn't name it, its run folder does."
)


@dataclass(frozen=True)
class Results:
    """A table of results that fits itself to the width of the console; it begins with `warning` if there is any."""

    points: dict[Point, list[Row]]
    baseline: str | None
    warning: str
    planned: Sequence[Point] = ()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield the table, line by line."""
        everything = [row for rows in self.points.values() for row in rows]
        times = measured(everything)
        fitted = fit(columns(self.baseline), times, options.max_width - INDENT) if times else []
        every = {**self.points, **dict.fromkeys(self.planned)}
        different = varying(every)
        about = filter(None, [*devices(everything), gpu_state(times), *versions(everything), _processes(times)])
        head = (Lines([self.warning] * bool(self.warning), BAD), Lines([shared(every)], HEAD))
        yield render([*head, Lines([" · ".join(about), *against_data_sheets(times)])])
        for point, rows in self.points.items():
            yield from _point(differences(point, different), rows, fitted)
        yield render(_legend(times, self.baseline))


def results(
    table: pd.DataFrame, baseline: str | None, whole: pd.DataFrame | None = None, planned: Sequence[Point] = ()
) -> RenderableType:
    """Return the results by point: what to use, the implementations in their order, and the reasons of failures.

    `table` has the rows to show, `whole` those of the run if they are others. Rows of the control are not shown; if
    these differ too much, the first line says so. Points are counted, and named by what differs, with those that are
    `planned`.
    """
    if table.empty:
        return Text("no results")
    points = by_point(without_control(table))
    for rows in points.values():
        complete(rows, baseline)
    waiting: list[Sequence[Row]] = [[] for point in planned if point not in points]
    warnings = *of_baseline([*points.values(), *waiting], baseline), control_warning(table if whole is None else whole)
    return Results(points, baseline, " ".join(filter(None, warnings)), planned)


def _processes(rows: Sequence[Row]) -> str:
    number = process_count(rows)
    intervals = any(row["latency_low_s"] is not None for row in rows)
    return f"intervals over {number}" if number and intervals else number


def _point(name: str, rows: list[Row], fitted: Sequence[Fitted]) -> Iterator[RenderableType]:
    chosen, times, others = choice_of(rows), measured(rows), unmeasured(rows)
    yield Text()
    yield Text.assemble((f"{name}  " if name else "", HEAD), (words(chosen), tone(chosen)))
    if times:
        yield row_line(fitted, None, tone=QUIET, indent=INDENT)
    for row in by_rank(times):
        own = tone(chosen) if row["implementation"] == chosen.name else PLAIN
        yield row_line(fitted, row, tone=own, indent=INDENT)
    if others:
        yield render([of_point(others, len(rows), fitted[0].width if fitted else 0)])


def _legend(rows: Sequence[Row], baseline: str | None) -> Iterator[Block]:
    if any(row["slowdown_high"] is not None for row in rows):
        yield from (GAP, Lines([READING], QUIET))
    if letters := {flag.letter: flag.meaning for flag in legend([flag for row in rows for flag in flags(row)])}:
        yield from (GAP, definitions(letters, tone=WARNING))
    if baseline is None and any(row["speedup"] is not None for row in rows):
        yield from (GAP, Lines([UNKNOWN_BASELINE], WARNING))
