"""The table of a change of precision: what it brings and what it costs in error."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bench.analyse.precision import WIDEST, Change
from bench.plan.case import Case, Point
from bench.plan.errors import WrongRequest
from bench.plan.published import PARTS, Published
from bench.plan.shard import machine_columns, without
from bench.show import intervals
from bench.show.choice_text import choice_of, words
from bench.show.rows import Row, by_point, plain
from bench.show.terminal.console import QUIET
from bench.show.text import names, order, parts
from bench.stats.estimates import Interval
from bench.store import units

LEGEND = (
    f"as fast: the time in {WIDEST} over the time in the other precision, paired round by round in the same "
    "replicates, with its 95 % interval; above 1 the other is faster",
    "error: the deviation from float64 that came nearest to its tolerance, relative to the largest value",
)


OF_REFERENCES = (
    "theirs / ours: above 1 we are faster; two machines and often two pieces of work, so an order of magnitude and no "
    "verdict",
    "core alone: attention with q, k and v given; ours is always the whole layer, with its projections",
)


LONGEST_CHOICE = 40
"""The longest words on a point."""

MOST_POINTS = 100
"""The most points of the table; those at which machines disagree come first."""


def precisions(table: pd.DataFrame, changes: Sequence[Change]) -> RenderableType:
    """Return a row for each implementation and change of precision, the shapes one below the other.

    Raises WrongRequest if nothing was measured in several precisions.
    """
    if not changes:
        raise WrongRequest(
            f"no case was measured in {WIDEST} and in another dtype in the same rounds; "
            "a sweep that has both measures them so, for example --dtype float32,bfloat16"
        )
    rows = {Case.from_columns(row): row for row in plain(table)}
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in ("point", "implementation", WIDEST, "error", "in", "", "error", "as fast"):
        is_text = heading in ("point", "implementation", "in")
        grid.add_column(heading, justify="left" if is_text else "right")
    for change in changes:
        speedup = change.speedup
        wide = rows[Case(change.point, change.implementation)]
        narrow = rows[Case(replace(change.point, dtype=change.dtype), change.implementation)]
        grid.add_row(
            " ".join(parts(change.point, ["mode", "batch", "num_tokens", "channels", "num_heads"])),
            change.implementation,
            *_time_and_error(wide),
            change.dtype,
            *_time_and_error(narrow),
            intervals.ratio(Interval(speedup.value, speedup.low, speedup.high)),
        )
    return Group(grid, *(Text(line, QUIET) for line in LEGEND))


def _time_and_error(row: Row) -> tuple[str, str]:
    return units.seconds(row["latency_s"]), "" if row["error"] is None else f"{row['error']:.1e}"


def precision_words(table: pd.DataFrame, changes: Iterable[Change]) -> list[str]:
    """Return a line for each other dtype: what it brings at each shape to the implementation that is fastest in it."""
    rows = {Case.from_columns(row): row for row in plain(table)}
    fastest: dict[str, dict[Point, tuple[Change, Row, Row]]] = {}
    for change in changes:
        wide = rows[Case(change.point, change.implementation)]
        narrow = rows[Case(replace(change.point, dtype=change.dtype), change.implementation)]
        of_dtype = fastest.setdefault(change.dtype, {})
        if change.point not in of_dtype or narrow["latency_s"] < of_dtype[change.point][2]["latency_s"]:
            of_dtype[change.point] = (change, wide, narrow)
    return [_sentence(dtype, [*of_dtype.values()]) for dtype, of_dtype in fastest.items()]


def _sentence(dtype: str, cases: Sequence[tuple[Change, Row, Row]]) -> str:
    """Return what a dtype brings, at one shape with the interval, else from the least to the most."""
    least, most = (choose(cases, key=lambda each: each[0].speedup.value)[0] for choose in (min, max))
    wide = max(row["error"] or 0.0 for _, row, _ in cases)
    narrow = max(row["error"] or 0.0 for _, _, row in cases)
    cost = f"with an error of {narrow:.1e} instead of {wide:.1e}"
    name = least.implementation
    if len(cases) == 1:
        speedup = intervals.ratio(Interval(least.speedup.value, least.speedup.low, least.speedup.high))
        return f"{dtype} instead of {WIDEST}: {name} is {speedup} as fast, {cost}."
    return (
        f"{dtype} instead of {WIDEST}, for what is fastest in it at each of {len(cases)} shapes: "
        f"{least.speedup.value:.2f}x ({name}) to {most.speedup.value:.2f}x ({most.implementation}) as fast, {cost}."
    )


def references(table: pd.DataFrame, published: Iterable[Published]) -> RenderableType:
    """Return a row for each published figure that is for a case of the table, with our time beside it.

    Raises WrongRequest if there is none.
    """
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in ("point", "implementation", "ours", "theirs", "theirs / ours", "called", "what", "on", "source"):
        grid.add_column(heading, justify="right" if heading in ("ours", "theirs", "theirs / ours") else "left")
    figures = list(published)
    for point, rows in by_point(table).items():
        by_name = {row["implementation"]: row for row in rows}
        for figure in figures:
            row = by_name.get(figure.implementation)
            if row is not None and figure.is_for(point):
                text = " ".join(parts(point, ["dtype", "mode", "batch", "num_tokens", "channels", "num_heads"]))
                times = _compared(row, figure, figure.latency_s(point))
                origin = map(Text, (figure.called, PARTS[figure.part], figure.machine, figure.source))
                grid.add_row(text, figure.implementation, *times, *origin)
    if not grid.row_count:
        sources = ", ".join(dict.fromkeys(figure.source for figure in figures))
        raise WrongRequest(f"no published figure is for a case of this run; there are figures of {sources}")
    return Group(grid, *(Text(line, QUIET) for line in OF_REFERENCES))


def _compared(row: dict[str, Any], figure: Published, theirs_s: float) -> tuple[str, str, str]:
    """Return our time or status, their time, and the ratio of theirs to ours."""
    rate = f"{figure.value:g} items/s" if figure.unit == "items_per_s" else ""
    theirs = " = ".join(word for word in (rate, units.seconds(theirs_s)) if word)
    if row["status"] != "ok":
        return str(row["status"]), theirs, ""
    return units.seconds(row["latency_s"]), theirs, units.ratio(theirs_s / row["latency_s"])


def machines(tables: Mapping[str, pd.DataFrame]) -> RenderableType:
    """Return what to use at each point, a column for each machine, with its speed-up over the baseline.

    Columns that follow from the machine don't distinguish points.
    """
    rows = {name: by_point(table) for name, table in tables.items()}
    ignored = machine_columns(rows.values())
    cells = {
        name: {without(point, ignored): _cell(own) for point, own in of_point.items()}
        for name, of_point in rows.items()
    }
    points = list(dict.fromkeys(point for each in cells.values() for point in each))
    labels = names(points)
    ordered = sorted(
        points, key=lambda point: (_agree([each.get(point, ("", ""))[0] for each in cells.values()]), order(point))
    )
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", title_justify="left")
    for title in ("what to use where", *tables):
        grid.add_column(title, overflow="fold")
    for point in ordered[:MOST_POINTS]:
        grid.add_row(labels[point], *(Text(each.get(point, ("", "not measured"))[1]) for each in cells.values()))
    if len(points) > MOST_POINTS:
        grid.add_row(f"… and {len(points) - MOST_POINTS:,} more points")
    return grid


def _agree(names: list[str]) -> bool:
    return len({*names}) == 1


def _cell(rows: list[Row]) -> tuple[str, str]:
    """Return what machines may agree on at a point, and its words."""
    chosen = choice_of(rows)
    if not chosen.name:
        return "", words(chosen)
    first = next(row for row in rows if row["implementation"] == chosen.name)
    speedup = f" {units.ratio(first['speedup'])}" if first["speedup"] is not None else ""
    return chosen.name, f"{words(chosen, LONGEST_CHOICE)}{speedup}"
