"""The results as tables: by point, fastest first."""

from collections.abc import Iterator, Sequence

import pandas as pd

from bench.analyse.flags import flags, legend
from bench.analyse.standing import by_rank
from bench.plan.case import Point
from bench.show.answer import OF_RATIOS, choice_of, tone, words
from bench.show.blocks import BAD, GAP, HEAD, PLAIN, QUIET, WARNING, Block, Column, Lines, Table, definitions
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


def results(
    table: pd.DataFrame, baseline: str | None, whole: pd.DataFrame | None = None, planned: Sequence[Point] = ()
) -> Iterator[Block]:
    """Yield the results by point: what to use, the implementations in their order, and the reasons of failures.

    `table` has the rows to show, `whole` those of the run if they are others. Rows of the control are not shown; if
    these differ too much, the first line says so. Points are counted, and named by what differs, with those that are
    `planned`.
    """
    if table.empty:
        yield Lines(["no results"])
        return
    points = by_point(without_control(table))
    for rows in points.values():
        complete(rows, baseline)
    every = {**points, **dict.fromkeys(planned)}
    waiting: list[Sequence[Row]] = [[]] * (len(every) - len(points))
    differs = control_warning(table if whole is None else whole)
    warning = " ".join(filter(None, [*of_baseline([*points.values(), *waiting], baseline), differs]))
    everything = [row for rows in points.values() for row in rows]
    times, different = measured(everything), varying(every)
    about = filter(None, [*devices(everything), gpu_state(times), *versions(everything), _processes(times)])
    yield Lines([warning] if warning else [], BAD)
    yield Lines([shared(every)], HEAD)
    yield Lines([" · ".join(about), *against_data_sheets(times)])
    shown = columns(baseline)
    for point, rows in points.items():
        yield from _point(differences(point, different), rows, shown, times)
    yield from _legend(times, baseline)


def _processes(rows: Sequence[Row]) -> str:
    number = process_count(rows)
    intervals = any(row["latency_low_s"] is not None for row in rows)
    return f"intervals over {number}" if number and intervals else number


def _point(name: str, rows: list[Row], shown: Sequence[Column], among: Sequence[Row]) -> Iterator[Block]:
    """Yield the rows of a point below its name and what to use, in columns that fit the rows of all points."""
    chosen, others = choice_of(rows), unmeasured(rows)
    of_chosen = tone(chosen)
    head = Column("", lambda _: name, tone=lambda _: HEAD), Column("", words, tone=lambda _: of_chosen)
    yield from (GAP, Table(head, [chosen]))
    yield Table(
        shown,
        by_rank(measured(rows)),
        indent=INDENT,
        tone=lambda row: of_chosen if row["implementation"] == chosen.name else PLAIN,
        head=QUIET,
        among=among,
    )
    if others:
        yield of_point(others, len(rows), max((len(str(row["implementation"])) for row in among), default=0))


def _legend(rows: Sequence[Row], baseline: str | None) -> Iterator[Block]:
    if any(row["slowdown_high"] is not None for row in rows):
        yield from (GAP, Lines([READING], QUIET))
    if letters := {flag.letter: flag.meaning for flag in legend([flag for row in rows for flag in flags(row)])}:
        yield from (GAP, definitions(letters, tone=WARNING))
    if baseline is None and any(row["speedup"] is not None for row in rows):
        yield from (GAP, Lines([UNKNOWN_BASELINE], WARNING))
