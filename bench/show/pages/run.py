"""The page of a run: it answers first, and can be asked further."""

import math
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from bench.analyse.fastest import Outcome
from bench.analyse.precision import changes
from bench.analyse.ranking import TIE, WINNER
from bench.analyse.scaling.growth import Exponent, scalings
from bench.analyse.scaling.series import AXES, CHANNELS, HEADS, SERIES, TOKENS, Axis, groups, places, point_of
from bench.plan.case import Case, Point
from bench.show import answer as say
from bench.show import intervals
from bench.show.answer import At
from bench.show.control_text import unproven
from bench.show.fastest_text import words
from bench.show.figures import log_axis
from bench.show.figures.winner_map import maps
from bench.show.pages import cells, charts, shell
from bench.show.pages.samples import STEPS, by_case, samples
from bench.show.point_text import counted, parts, shared, symbols, varying
from bench.show.precision_text import in_words
from bench.show.report.page import PAGE as PROFILES
from bench.show.rows import Row, is_measured, measured, plain
from bench.show.terminal.flags import TARGET, legend
from bench.show.terminal.flags import flags as flags_of
from bench.store import units
from bench.store.environment import Environment
from bench.store.saved_run import SavedRun
from bench.store.table import RESULTS

PAGE = "report.html"
"""The name of the page in a run's folder."""

MOST_CASES = 1_500
"""The most cases in a page; of more it has the first points, and says so."""

MOST_CSV_BYTES = 1_000_000
"""The largest packed results.csv that a page carries."""


@dataclass(frozen=True)
class Fact:
    """A fact about the machine or the software."""

    name: str
    value: str


def write(saved: SavedRun) -> Path:
    """Write the page of a run into its folder, and return its file.

    Raises WrongRequest if the run has no rows, or if the file can't be written.
    """
    return shell.write(saved.folder / PAGE, page(saved))


def page(saved: SavedRun) -> str:
    """Return the page of a run; raises WrongRequest if it has no rows."""
    target = saved.effort.target if saved.effort else TARGET
    whole, baseline = saved.whole, saved.baseline
    every = say.points_of(whole)
    shown = _that_fit(every)
    rows = [row for at in shown for row in at.rows]
    names = list(dict.fromkeys(str(row["implementation"]) for row in rows))
    for at in shown:
        cells.complete(at.rows, baseline, target)
    is_quiet, quiet = say.machine(whole, target)
    with charts.unchecked():
        data = _data(saved, shown, names, baseline)
    return shell.render(
        "run.html",
        _title(saved),
        names,
        data,
        unproven=unproven(whole),
        answer=say.answer(every, baseline),
        precisions=_precisions(saved),
        failures=say.failures(every),
        has_failures=any(row["status"] != "ok" for at in every for row in at.rows),
        quiet=quiet,
        is_quiet=is_quiet,
        warnings=[str(each) for each in say.warnings(whole, target)],
        letters=legend([flag for row in rows if is_measured(row) for flag in flags_of(row, target)]),
        shared=shared([at.point for at in shown]),
        symbols=symbols([at.point for at in shown]),
        points=[_line(at, baseline) for at in shown],
        left_out=_left_out(len(shown), len(every), saved),
        columns=cells.COLUMNS,
        table=[(row, cells.cells(row, at.label, baseline)) for at in shown for row in _ordered(at)],
        baseline=baseline,
        facts=list(_facts(saved.folder.resolve().name, saved.environment, saved.table)),
        command=_command(saved.environment),
        documents={name: shell.document(f"{name}.md", saved.folder) for name in ("method", "terms", "comparing")},
        profiles=PROFILES if (saved.folder / PROFILES).exists() else "",
        csv=_csv(saved),
        swatches=[charts.swatch(name) for name in names],
        processes=counted(_numbers_of_processes(saved), "process", "processes"),
    )


def _title(saved: SavedRun) -> str:
    """Return the sweep and where it ran; the name of the folder if the sweep isn't known."""
    folder = saved.folder.resolve().name
    name = saved.environment.context.get("sweep") if saved.environment else None
    devices = list(dict.fromkeys(str(each) for each in saved.table["device_name"].dropna()))
    return f"Sweep {name} on {' and '.join(devices)}" if name and devices else folder


def _precisions(saved: SavedRun) -> list[str]:
    """Return what each other precision brings, none if the run has one dtype."""
    return in_words(saved.whole, changes(saved.records)) if saved.whole["dtype"].nunique() > 1 else []


def _numbers_of_processes(saved: SavedRun) -> list[int]:
    """Return the number of processes of each case that has a time."""
    measured = saved.table[saved.table["status"] == "ok"]
    return [int(number) for number in measured["processes"].dropna()]


def _that_fit(points: Sequence[At]) -> list[At]:
    """Return the first points whose cases fit into a page; one at least."""
    kept: list[At] = []
    cases = 0
    for at in points:
        cases += len(at.rows)
        if kept and cases > MOST_CASES:
            break
        kept.append(at)
    return kept


def _left_out(shown: int, points: int, saved: SavedRun) -> str:
    if shown == points:
        return ""
    return (
        f"This page shows the first {shown:,} of {points:,} points. The sentences above count all of them. "
        f"All rows are in {RESULTS}; python -m bench show {shlex.quote(saved.folder.name)} prints them."
    )


def _ordered(at: At) -> list[Row]:
    """Return the rows of a point, the fastest first, and those without a time after them."""
    return sorted(at.rows, key=lambda row: (not is_measured(row), row["rank"] if row["rank"] is not None else math.inf))


@dataclass(frozen=True)
class Line:
    """A point in one line: its outcome in words, then of the first that is named speed-up, latency and memory."""

    label: str
    words: str
    first: str
    speedup: str
    latency: str
    memory: str
    failed: str


def _line(at: At, baseline: str | None) -> Line:
    first = at.first
    failed: dict[str, list[str]] = {}
    for row in at.rows:
        if row["status"] != "ok":
            failed.setdefault(str(row["status"]), []).append(str(row["implementation"]))
    return Line(
        at.label,
        words(at.outcome),
        str(first["implementation"]) if first else "",
        say.speedup_cell(first, baseline),
        cells.latency_text(first) if first else "",
        cells.memory_text(first) if first else "",
        "; ".join(f"{status}: {', '.join(names)}" for status, names in failed.items()),
    )


def _data(saved: SavedRun, shown: Sequence[At], names: Sequence[str], baseline: str | None) -> dict[str, Any]:
    """Return what the page's script reads; rows of the table are in the same order as here."""
    rows = [(number, at, row) for number, at in enumerate(shown) for row in _ordered(at)]
    machines = _machines([row for _, _, row in rows])
    number_of = {at.point: number for number, at in enumerate(shown)}
    values = [row for _, _, row in rows]
    quantities = [
        each for each in charts.quantities(baseline) if any(row[each.column] for row in values if is_measured(row))
    ]
    found_series = [each for axis in AXES for each in _series(values, axis, number_of)]
    series = [one for one, _ in found_series]
    drawn = {each.name: charts.of_quantity(each, names, len(shown)) for each in quantities}
    growth = [each for number, one in enumerate(found_series) for each in _exponents(number, *one)]
    if growth:
        drawn |= {f"growth-{what}": charts.exponents(names, what) for what in ("latency", "memory")}
    if any(row["compile_cold_s"] for row in values):
        drawn["compile"] = {"any": charts.compilation(names)}
    if has_maps := list(_maps(saved.table, number_of, names)):
        drawn["winners"] = {axis.name: charts.winners(axis) for axis in (HEADS, CHANNELS)}
    drawn["samples"] = {"any": charts.samples()}
    found, every = _samples(saved, rows)
    return {
        "kind": "run",
        "names": list(names),
        "points": [at.label for at in shown],
        "machines": [*machines.values()],
        "rows": _columns([_row(number, at, row, machines, baseline) for number, at, row in rows]),
        "series": series,
        "ticks": [
            {each.name: _ticks(each, group) for each in quantities}
            for group in [*(own for _, own in found_series), values]
        ],
        "growth": _columns(growth),
        "maps": has_maps,
        "charts": drawn,
        "samples": shell.packed(shell.as_data(found)),
        "every": every,
        "steps": STEPS,
        "first": _first_view(series),
        "swatches": [charts.swatch(name) for name in names],
    }


def _ticks(of: charts.Quantity, rows: Sequence[Row]) -> list[float]:
    """Return the ticks of a quantity's axis, where the matplotlib pictures have them."""
    columns = [name for name in (of.column, of.low, of.high, of.second) if name]
    values = [float(row[name]) for row in rows if is_measured(row) for name in columns if row[name]]
    if not values or of.name not in TICKS:
        return []
    low, high = log_axis.padded(min(values), max(values))
    if of.name == "speedup":
        low, high = min(low, 1 / log_axis.LEAST_SPAN), max(high, log_axis.LEAST_SPAN)
    return TICKS[of.name](low, high)


TICKS: Mapping[str, Callable[[float, float], list[float]]] = {
    "speedup": log_axis.ratios,
    "latency": log_axis.decimal,
    "memory": log_axis.binary,
}
"""Where the ticks of each quantity stand."""


def _row(number: int, at: At, row: Row, machines: Mapping[str, str], baseline: str | None) -> dict[str, Any]:
    name, is_ok = str(row["implementation"]), is_measured(row)
    numbers = ("speedup", "speedup_low", "speedup_high", "latency_s", "latency_low_s", "latency_high_s", "memory_bytes",
        "predicted_bytes", "roofline_share", "compile_cold_s")  # fmt: skip
    return {
        "point": number,
        "label": at.label,
        "implementation": name,
        "machine": list(machines).index(str(row["env_id"])),
        "is_baseline": name == baseline,
        "status": row["status"],
        **{column: _short(row[column]) if is_ok else None for column in numbers},
        "speedup_text": say.speedup_cell(row, baseline) if is_ok else "",
        "latency_text": cells.latency_text(row) if is_ok else "",
        "memory_text": cells.memory_text(row) if is_ok else "",
    }


def _short(value: float | None) -> float | None:
    """Return a number with six digits, which is more than a picture shows."""
    return None if value is None else float(f"{float(value):.6g}")


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return rows as columns, which repeat no name."""
    return {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}


def _machines(rows: Sequence[Row]) -> dict[str, str]:
    """Return the machines of some rows by their env_id, in words."""
    found = {str(row["env_id"]): str(row["device_name"] or "a machine") for row in rows}
    several = len(set(found.values())) < len(found)
    return {env_id: f"{name} ({env_id[:6]})" if several else name for env_id, name in found.items()}


def _series(
    rows: Sequence[Row], axis: Axis, number_of: Mapping[Point, int]
) -> Iterator[tuple[dict[str, Any], list[Row]]]:
    """Yield each series along an axis: its words and the place of each of its points, and its rows."""
    for group in groups(rows, axis):
        if not measured(group):
            continue
        at = {number_of[point_of(row)]: row[axis.column] for row in group}
        fixed = _fixed_words(group, rows, axis)
        label = f"{axis.name} {', '.join(map(str, places(group, axis)))}{f' at {fixed}' if fixed else ''}"
        xs = list(places(group, axis))
        yield {"axis": axis.name, "symbol": axis.symbol, "label": label, "at": at, "xs": xs}, group


def _fixed_words(group: Sequence[Row], rows: Sequence[Row], axis: Axis) -> str:
    """Return what a series holds fixed, of that in which the points of the run differ."""
    different = varying(dict.fromkeys(map(point_of, rows)))
    moving = varying(dict.fromkeys(map(point_of, group)))
    return " ".join(parts(point_of(group[0]), different - moving - {axis.column}))


def _first_view(series: Sequence[Mapping[str, Any]]) -> int:
    """Return the number of the series that a page shows first: the longest, along tokens if it has one.

    It is -1, a row for each point, if no series has three places.
    """
    long = [number for number, one in enumerate(series) if len(one["xs"]) >= SERIES]
    return min(long, key=lambda n: (series[n]["axis"] != TOKENS.name, -len(series[n]["xs"])), default=-1)


def _exponents(number: int, one: Mapping[str, Any], group: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Yield the local exponents of latency and memory along a series, which has a number."""
    for each in scalings(row for row in group if is_measured(row)):
        if each.axis.name != one["axis"]:
            continue
        for growth in each.growths:
            for what, found in (("latency", growth.latency), ("memory", growth.memory)):
                yield from (_segment(number, one["symbol"], growth.implementation, what, of) for of in found)


def _segment(number: int, symbol: str, implementation: str, what: str, of: Exponent) -> dict[str, Any]:
    has_interval = of.slope.is_known and of.slope.low < of.slope.high
    return {
        "series": number,
        "implementation": implementation,
        "what": what,
        "start": of.start,
        "end": of.end,
        "middle": _short(math.sqrt(of.start * of.end)),
        "slope": _short(of.slope.value),
        "low": _short(of.slope.low) if has_interval else None,
        "high": _short(of.slope.high) if has_interval else None,
        "text": intervals.number(of.slope),
        "from_to": f"{symbol}={of.start} and {of.end}",
    }


def _maps(table: pd.DataFrame, number_of: Mapping[Point, int], names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield each map of winners whose points are in the page: its axis, its words, and its cells."""
    for each in maps(table):
        points = {(row[TOKENS.column], row[each.axis.column]): number_of.get(point_of(row)) for row in each.rows}
        if None in points.values():
            continue
        yield {
            "axis": each.axis.name,
            "label": " · ".join(parts(each.point, without=each.varying)),
            "cells": [
                {
                    "x": x,
                    "y": y,
                    "point": points[x, y],
                    "label": f"N={x} {each.axis.symbol}={y}",
                    "words": words(of),
                    "lines": _cell_lines(of),
                    "names": ",".join(of.names),
                    **_paint(of, names),
                }
                for (x, y), of in each.cells.items()
            ],
        }


def _cell_lines(of: Outcome) -> list[str]:
    """Return the few words of a cell: the winner and by how much, or those that may be the fastest."""
    if of.says == WINNER and of.relative:
        return [of.names[0], units.ratio(of.relative.value)]
    names = (
        [*of.names]
        if len(of.names) <= MOST_NAMES
        else [*of.names[: MOST_NAMES - 1], f"{len(of.names) - MOST_NAMES + 1} others"]
    )
    return names or ["nothing"]


MOST_NAMES = 3
"""The most names in a cell of a map."""


def _paint(of: Outcome, names: Sequence[str]) -> dict[str, str]:
    """Return the colour of a cell and that of its text."""
    if of.says == WINNER:
        number = names.index(of.names[0])
        return {"fill": charts.variable(number), "ink": f"var(--on{number})"}
    return {"fill": "var(--tie)" if of.says == TIE else "var(--open)", "ink": "var(--ink)"}


def _samples(saved: SavedRun, rows: Sequence[tuple[int, At, Row]]) -> tuple[dict[int, Any], int]:
    records = by_case(saved.records)
    return samples({
        number: (float(row["latency_s"]), records.get(Case.from_columns(row), []))
        for number, (_, _, row) in enumerate(rows)
        if is_measured(row)
    })  # fmt: skip


def _facts(folder: str, environment: Environment | None, table: pd.DataFrame) -> Iterator[Fact]:
    """Yield what is known of the machine and the software."""
    rows = plain(table)
    yield Fact("run", folder)
    for name, column in (("device", "device_name"), ("torch", "torch_version"), ("commit", "commit")):
        yield Fact(name, ", ".join(dict.fromkeys(str(row[column]) for row in rows if row[column])))
    started = sorted(str(row["started_at"]) for row in rows if row["started_at"])
    if started:
        yield Fact("measured", f"{started[0][:16].replace('T', ' ')} to {started[-1][11:16]} UTC")
    if environment is None:
        return
    identity, state = environment.identity, environment.state
    yield Fact("cores", f"{identity.get('cores')} logical, {identity.get('physical_cores')} physical")
    yield Fact("memory", f"{identity.get('memory_gib')} GiB")
    for name in ("system", "python", "blas", "cpu_capability", "cuda", "driver"):
        if identity.get(name):
            yield Fact(name.replace("_", " "), str(identity[name]))
    for name, version in environment.runtimes.items():
        yield Fact(name, version)
    before = state.get("preflight") or {}
    if "others_cores" in before:
        yield Fact("other work before the run", f"{before['others_cores']:.1f} cores")
    if "spread" in before:
        yield Fact("speed before the run", f"varied by {units.percent(before['spread'])}")


def _command(environment: Environment | None) -> str:
    """Return the command that measures the run again, into a new folder; empty if it isn't known."""
    words = environment.context.get("command") if environment else None
    if not isinstance(words, list) or not words:
        return ""
    kept, skip = [], False
    for word in map(str, words[1:]):
        if skip or word == "--run" or word.startswith("--run="):
            skip = word == "--run"
            continue
        kept.append(word)
    return f"python -m pytest {shlex.join(kept)}"


def _csv(saved: SavedRun) -> str:
    """Return the packed results.csv; empty if it is too large for a page."""
    path = saved.path if not saved.is_folder else saved.folder / RESULTS
    found = shell.packed(path.read_bytes().decode())
    return found if len(found) <= MOST_CSV_BYTES else ""
