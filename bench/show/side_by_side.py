"""Times side by side: in two precisions, beside published figures, and on several machines."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from bench.analyse.precision import WIDEST, Change
from bench.plan.case import Case, Point
from bench.plan.errors import WrongRequest
from bench.plan.grid import machine_columns, without_columns
from bench.plan.published import AGREES, PARTS, Published, core_flops
from bench.plan.verdicts import EQUIVALENT
from bench.show import intervals
from bench.show.answer import choice_of, words
from bench.show.blocks import QUIET, Block, Lines, Table, of_texts
from bench.show.rows import Row, by_point, measured, plain
from bench.show.text import names, order, parts
from bench.store import units

OF_PRECISIONS = (
    f"as fast: the time in {WIDEST} over the time in the other precision, paired round by round in the same "
    "replicates, with its 99 % interval; above 1 the other is faster",
    "error: the deviation from float64 that came nearest to its tolerance, relative to the largest value",
)

OF_REFERENCES = (
    "ratio: published over measured, above 1 we are faster; a verdict needs the figure's own card and work, else it is "
    f"an order of magnitude; {EQUIVALENT}: neither time is more than {AGREES} times the other",
    "core alone: attention with q, k and v given; ours is the whole layer, with its projections, unless that is core",
    "FLOP/s of a core: 4·B·H·N·M·D operations forward, half of them with a causal mask, 2.5 times as many backward, as "
    "papers count; the column rate counts 2 times as many backward",
)

SHAPE = (
    *("mode", "batch", "num_tokens", "channels", "num_heads", "num_kv_tokens", "num_kv_heads"),
    *("qk_norm", "rope", "attn_bias", "window_size", "mask"),
)
"""The columns that name a point here."""

LONGEST_CHOICE = 40
"""The longest words on a point."""

MOST_POINTS = 100
"""The most points of the table; those at which machines disagree come first."""


def precisions(table: pd.DataFrame, changes: Sequence[Change]) -> list[Block]:
    """Return a row for each implementation and change of precision, the shapes one below the other.

    Raises WrongRequest if nothing was measured in several precisions.
    """
    if not changes:
        raise WrongRequest(
            f"no case was measured in {WIDEST} and in another dtype in the same rounds; "
            "a sweep that has both measures them so, for example --dtype float32,bfloat16"
        )
    rows = {Case.from_columns(row): row for row in measured(plain(table))}
    lines = []
    for change in changes:
        points = change.point, replace(change.point, dtype=change.dtype)
        wide, narrow = (rows.get(Case(point, change.implementation)) for point in points)
        if wide and narrow:  # neither failed later
            point, ratio = " ".join(parts(change.point, SHAPE)), intervals.ratio(change.speedup)
            times = *_time_and_error(wide), change.dtype, *_time_and_error(narrow)
            lines.append([point, change.implementation, *times, ratio])
    headings = ("point", "implementation", WIDEST, "error", "in", "", "error", "as fast")
    return [of_texts(headings, lines, numbers=(WIDEST, "error", "", "as fast")), Lines(OF_PRECISIONS, QUIET)]


def _time_and_error(row: Row) -> tuple[str, str]:
    return units.seconds(row["latency_s"]), "" if row["error"] is None else f"{row['error']:.1e}"


def references(table: pd.DataFrame, published: Iterable[Published]) -> list[Block]:
    """Return a row for each published figure that is for a case of the table, with our time and a verdict beside it.

    Raises WrongRequest if there is none.
    """
    figures = list(published)
    rows = [
        [
            " ".join(parts(point, ("layer", "dtype", *SHAPE))),
            figure.implementation,
            *_compared(row, figure, point),
            *(figure.called, PARTS[figure.part], figure.machine, figure.source),
        ]
        for point, of_point in by_point(table).items()
        for figure in figures
        for row in of_point
        if row["implementation"] == figure.implementation and figure.is_for(point)
    ]
    if not rows:
        sources = ", ".join(dict.fromkeys(figure.source for figure in figures))
        raise WrongRequest(f"no published figure is for a case of this run; there are figures of {sources}")
    times = ("published", "measured", "ratio")
    headings = ("point", "implementation", *times, "verdict", "called", "what", "on", "source")
    return [of_texts(headings, rows, numbers=times), Lines(OF_REFERENCES, QUIET)]


def _compared(row: Row, figure: Published, point: Point) -> tuple[str, str, str, str]:
    """Return their time, our time or status, the ratio of both and the verdict; with rates if theirs is one."""
    theirs_s, ours_s = figure.latency_s(point), row["latency_s"]
    theirs = units.seconds(theirs_s)
    if figure.unit == "items_per_s":
        theirs = f"{figure.value:g} items/s = {theirs}"
    if figure.unit == "core_flops_per_s":
        theirs = f"{units.rate(figure.value, 'FLOP/s')} = {theirs}"
    if row["status"] != "ok":
        return theirs, str(row["status"]), "", ""
    ours = units.seconds(ours_s)
    if figure.unit == "core_flops_per_s" and point.layer == "core":
        ours = f"{units.rate(core_flops(point) / ours_s, 'FLOP/s')} = {ours}"
    return theirs, ours, units.ratio(theirs_s / ours_s), figure.verdict(point, row["device_name"] or "", ours_s)


def machines(tables: Mapping[str, pd.DataFrame]) -> Table:
    """Return what to use at each point, a column for each machine, with its speed-up over the baseline.

    Columns that follow from the machine don't distinguish points.
    """
    rows = [by_point(table) for table in tables.values()]
    ignored = machine_columns(rows)
    cells = [{without_columns(point, ignored): _cell(own) for point, own in of_point.items()} for of_point in rows]
    points = list(dict.fromkeys(point for each in cells for point in each))
    labels = names(points)

    def rank(point: Point) -> tuple[object, ...]:
        return len({each.get(point, ("", ""))[0] for each in cells}) == 1, order(point)

    lines = [
        [labels[point], *(each.get(point, ("", "not measured"))[1] for each in cells)]
        for point in sorted(points, key=rank)[:MOST_POINTS]
    ]
    if len(points) > MOST_POINTS:
        lines.append([f"… and {len(points) - MOST_POINTS:,} more points", *[""] * len(cells)])
    return of_texts(["what to use where", *tables], lines)


def _cell(rows: list[Row]) -> tuple[str, str]:
    """Return what machines may agree on at a point, and its words."""
    chosen = choice_of(rows)
    if not chosen.name:
        return "", words(chosen)
    first = next(row for row in rows if row["implementation"] == chosen.name)
    speedup = f" {units.ratio(first['speedup'])}" if first["speedup"] is not None else ""
    return chosen.name, f"{words(chosen, LONGEST_CHOICE)}{speedup}"
