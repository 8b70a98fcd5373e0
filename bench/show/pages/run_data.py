"""What the script of a run's page reads: rows, series of them, ticks, growth, maps, courses, charts, and samples."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.analyse.course import course
from bench.analyse.scaling.growth import Exponent, scalings
from bench.analyse.scaling.series import AXES, SERIES, TOKENS, Axis, groups, places, point_of
from bench.plan.case import Case
from bench.plan.sweep import Effort
from bench.show import intervals
from bench.show.answer import At
from bench.show.blocks import Column
from bench.show.charts import interactive
from bench.show.charts.interactive import Quantity
from bench.show.charts.winners import cells as cells_of
from bench.show.charts.winners import maps, winners
from bench.show.columns import latency_text, of_metric
from bench.show.pages import shell
from bench.show.pages.shell import STEPS, by_case, samples
from bench.show.point_text import parts, varying
from bench.show.rows import Row, is_measured, measured
from bench.store import units
from bench.store.record import Record
from bench.store.saved_run import SavedRun


@dataclass(frozen=True)
class Shown:
    """A point of the page: the number of its machine, what the run says of it, and its name with that of the machine.

    A run of one machine names none.
    """

    machine: int
    at: At
    label: str


def ordered(at: At) -> list[Row]:
    """Return the rows of a point, the one to use first, and those without a time after them."""
    return sorted(at.rows, key=lambda row: (not is_measured(row), row["rank"] if row["rank"] is not None else math.inf))


def data(
    machines: Mapping[str, SavedRun],
    shown: Sequence[Shown],
    names: Sequence[str],
    baseline: str | None,
    ignored: frozenset[str],
    effort: Effort,
) -> dict[str, Any]:
    """Return what the page's script reads; rows of the table are in the same order as here.

    `ignored` are the columns that tell machines apart: points of one series may differ in them.
    """
    rows = [(number, each, row) for number, each in enumerate(shown) for row in ordered(each.at)]
    values = [row for _, _, row in rows]
    places_of = {id(row): (each.machine, number) for number, each, row in rows}
    quantities = quantities_of(values, baseline)
    texts = {each: of_metric(each.metric, baseline) for each in quantities}
    own_series = [each for axis in AXES for each in _series(values, axis, places_of, ignored)]
    series = [one for one, _ in own_series]
    most = max(Counter(each.machine for each in shown).values(), default=0)
    tooltips = interactive.tooltips(quantities)
    drawn = {each.name: interactive.charts(each, names, most, tooltips) for each in quantities}
    growth = [each for number, (one, group) in enumerate(own_series)
        for each in _exponents(number, one, group, places_of)]  # fmt: skip
    if growth:
        drawn |= {f"growth-{what}": interactive.exponents(names, what) for what in ("latency", "memory")}
    if any(row["compile_cold_s"] for row in values):
        drawn["compile"] = {"any": interactive.compilation(names, tooltips)}
    drawn["samples"] = {"any": interactive.samples()}
    records = [_records(run, shown, machine) for machine, run in enumerate(machines.values())]
    kept, every = _samples(records, rows)
    if steps := list(_course(records, shown, baseline, effort.bound)):
        labels = list(dict.fromkeys(each["label"] for each in steps))
        drawn["course"] = {"any": interactive.course(labels, effort.bound if effort.race else None)}
    return {
        "kind": "run",
        "points": [each.label for each in shown],
        "machines": list(machines),
        "rows": shell.columns([_row(number, each, row, baseline, texts) for number, each, row in rows]),
        "series": series,
        "ticks": [
            {each.name: _ticks(each, group) for each in quantities}
            for group in [*(own for _, own in own_series), values]
        ],
        "growth": shell.columns(growth),
        "maps": list(_maps(machines, shown, names)),
        "course": shell.columns(steps),
        "charts": drawn,
        "samples": shell.packed(shell.as_data(kept)),
        "every": every,
        "steps": STEPS,
        "first": _first_view(series),
        "beside": {each.name: each.columns for each in quantities}
        | {"compile": ["compile_cold_s", "latency_s", "paid"]},
    }


def quantities_of(rows: Sequence[Row], baseline: str | None) -> list[Quantity]:
    """Return the quantities that some of the rows have."""
    measured_rows = [row for row in rows if is_measured(row)]
    return [each for each in interactive.quantities(baseline) if any(row[each.column] for row in measured_rows)]


def _ticks(of: Quantity, rows: Sequence[Row]) -> dict[str, Any]:
    """Return the ticks of a quantity's axis and their labels."""
    values = [float(row[name]) for row in rows if is_measured(row) for name in of.columns if row[name]]
    ticks = of.ticks(values)
    return {"ys": ticks, "labels": [of.tick_label(tick) for tick in ticks]}


def _row(number: int, shown: Shown, row: Row, baseline: str | None, texts: Mapping[Quantity, Column]) -> dict[str, Any]:
    name, is_ok = str(row["implementation"]), is_measured(row)
    numbers = dict.fromkeys(column for each in texts for column in each.columns)
    numbers |= dict.fromkeys(("latency_s", "latency_low_s", "latency_high_s", "compile_cold_s"))
    return {
        "point": number,
        "label": shown.at.label,
        "implementation": name,
        "machine": shown.machine,
        "is_baseline": name == baseline,
        "status": row["status"],
        **{column: _short(row[column]) if is_ok else None for column in numbers},
        **{f"{each.column}_text": text.cell(row).text if is_ok else "" for each, text in texts.items()},
        "latency_text": latency_text(row) if is_ok else "",
    }


def _short(value: float | None) -> float | None:
    """Return a number with six digits, which is more than a picture shows."""
    return None if value is None else float(f"{float(value):.6g}")


def _series(
    rows: Sequence[Row], axis: Axis, places_of: Mapping[int, tuple[int, int]], ignored: frozenset[str]
) -> Iterator[tuple[dict[str, Any], list[Row]]]:
    """Yield each series along an axis: its words and the place of each of its points, and its rows, of all machines."""
    for group in groups(rows, axis, ignored):
        if not measured(group):
            continue
        at = {places_of[id(row)][1]: row[axis.column] for row in group}
        fixed = _fixed_words(group, rows, axis, ignored)
        label = f"{axis.name} {', '.join(map(str, places(group, axis)))}{f' at {fixed}' if fixed else ''}"
        xs = list(places(group, axis))
        yield {"axis": axis.name, "symbol": axis.symbol, "label": label, "at": at, "xs": xs}, group


def _fixed_words(group: Sequence[Row], rows: Sequence[Row], axis: Axis, ignored: frozenset[str]) -> str:
    """Return, in words, the columns that are constant in this series but vary in the run."""
    different = varying(dict.fromkeys(map(point_of, rows))) - ignored
    moving = varying(dict.fromkeys(map(point_of, group)))
    return " ".join(parts(point_of(group[0]), different - moving - {axis.column}))


def _first_view(series: Sequence[Mapping[str, Any]]) -> int:
    """Return the number of the series that a page shows first: the longest, along tokens if it has one.

    It is -1, a row for each point, if no series has three places.
    """
    long = [number for number, one in enumerate(series) if len(one["xs"]) >= SERIES]
    return min(long, key=lambda n: (series[n]["axis"] != TOKENS.name, -len(series[n]["xs"])), default=-1)


def _exponents(
    number: int, one: Mapping[str, Any], group: Sequence[Row], places_of: Mapping[int, tuple[int, int]]
) -> Iterator[dict[str, Any]]:
    """Yield the local exponents of latency and memory along a series, which has a number, on each machine."""
    for machine in sorted({places_of[id(row)][0] for row in group}):
        own = [row for row in group if is_measured(row) and places_of[id(row)][0] == machine]
        for each in scalings(own):
            if each.axis.name != one["axis"]:
                continue
            for growth in each.growths:
                for what, exponents in (("latency", growth.latency), ("memory", growth.memory)):
                    place = {
                        "series": number,
                        "machine": machine,
                        "implementation": growth.implementation,
                        "what": what,
                    }
                    yield from ({**place, **_segment(one["symbol"], of)} for of in exponents)


def _segment(symbol: str, of: Exponent) -> dict[str, Any]:
    has_interval = of.slope.is_known and of.slope.low < of.slope.high
    return {
        "start": of.start,
        "end": of.end,
        "middle": _short(math.sqrt(of.start * of.end)),
        "slope": _short(of.slope.value),
        "low": _short(of.slope.low) if has_interval else None,
        "high": _short(of.slope.high) if has_interval else None,
        "text": intervals.number(of.slope),
        "from_to": f"{symbol}={of.start} and {of.end}",
    }


def _maps(machines: Mapping[str, SavedRun], shown: Sequence[Shown], names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield each map of winners whose points are in the page: its words, its chart, and its cells."""
    for machine, (name, saved) in enumerate(machines.items()):
        number_of = {each.at.point: number for number, each in enumerate(shown) if each.machine == machine}
        for each in maps(saved.table):
            points = {(row[TOKENS.column], row[each.axis.column]): number_of.get(point_of(row)) for row in each.rows}
            if None in points.values():
                continue
            words_of = parts(each.point, without=each.varying)
            yield {
                "label": " · ".join([*([name] if len(machines) > 1 else []), *words_of]),
                "chart": winners(each),
                "cells": [{**cell, "point": points[cell["x"], cell["y"]]} for cell in cells_of(each, names)],
            }


def _records(run: SavedRun, shown: Sequence[Shown], machine: int) -> list[Record]:
    """Return the records of the points that the page shows of a machine; those of others are not read."""
    points = {each.at.point for each in shown if each.machine == machine}
    return list(run.loaded(entry for entry in run.entries if entry.case.point in points))


def _course(
    records: Sequence[Sequence[Record]], shown: Sequence[Shown], baseline: str | None, bound: float
) -> Iterator[dict[str, Any]]:
    """Yield the looks at the points of each machine, with the seconds of its run."""
    numbers = {(each.machine, each.at.point): (number, each.at.label) for number, each in enumerate(shown)}
    for machine, own in enumerate(records):
        for step in course(own, baseline or "", bound):
            number, label = numbers[machine, step.point]
            yield {
                "point": number,
                "label": label,
                "machine": machine,
                "end_s": round(step.end_s, 1),
                "bound": _short(max(step.look.bound, interactive.LEAST_BOUND)),
                "bound_text": units.percent(step.look.bound),
                "replicates": step.look.replicates,
                "named": step.look.named,
                "left": len(step.look.left),
                "answers": step.answers,
            }


def _samples(records: Sequence[Sequence[Record]], rows: Sequence[tuple[int, Shown, Row]]) -> tuple[dict[int, Any], int]:
    """Return the samples of the cases of the page."""
    cases = {number: (shown.machine, Case.from_columns(row)) for number, (_, shown, row) in enumerate(rows)
        if is_measured(row)}  # fmt: skip
    by_machine = [by_case(own) for own in records]
    return samples({
        number: (float(rows[number][2]["latency_s"]), by_machine[machine].get(case, []))
        for number, (machine, case) in cases.items()
    })  # fmt: skip
