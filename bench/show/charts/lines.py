"""Pictures of one metric along one axis: a line for each implementation, and below them what has no time."""

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any

import pandas as pd

from bench.analyse.axes import AXES, TOKENS, Axis, groups, moving
from bench.analyse.rows import by, point_of
from bench.plan.case import HUGE
from bench.show.charts.quantity import Quantity, along, quantities
from bench.show.figures.marks import LABEL_GAP
from bench.show.palette import style
from bench.show.picture import Marks, Panel, Picture, Scale, Shape
from bench.show.rows import UNTRIED, Row, facts, is_measured, origins, plain, process_count
from bench.store.table import baseline_of
from impls.catalogue import DOTTED, LONG, Style

HEIGHT, ROW_HEIGHT = 3.5, 0.2
"""In inches: the least height of lines, and that of a row of failures."""

ALLOCATOR = "allocator"

ALLOCATOR_DASHES = {"system": DOTTED, HUGE: LONG}
"""The dashes of lines under another allocator than the usual one."""


def pictures(table: pd.DataFrame) -> Iterator[Picture]:
    """Yield every picture that the table has values for: each shows a series along its axis.

    Points that differ in the allocator alone are also drawn together, a line for each.
    """
    rows, every = plain(table), quantities(baseline_of(table))
    for axis in AXES:
        for quantity in (each for each in every if axis.name in each.axis.over):
            yield from filter(None, (picture(group, quantity, axis) for group in groups(rows, axis)))
    for quantity in (each for each in every if each.axis.by_allocator):
        for group in groups(rows, TOKENS, {ALLOCATOR}):
            if len(by(group, ALLOCATOR)) > 1:
                yield from filter(None, [picture(group, quantity, TOKENS, by_allocator=True)])


def picture(group: Sequence[Row], quantity: Quantity, axis: Axis, *, by_allocator: bool = False) -> Picture | None:
    """Return the picture of a series, None if nothing of this quantity was measured."""
    together = {ALLOCATOR} if by_allocator else set()
    group = [{**row, "series": ", ".join([row["implementation"], *(row[name] for name in together)])} for row in group]
    ordered = sorted(filter(is_measured, group), key=itemgetter(axis.column))
    rows = [{**row, **quantity.drawn(row)} for row in ordered]
    point, of = point_of(group[0]), ", by allocator" if by_allocator else ""
    names = [name for name, own in by(rows, "series").items() if any(row[quantity.column] is not None for row in own)]
    if not names:
        return None
    varying = moving(axis, point) | together
    styles = {row["series"]: _style(row) for row in rows} if by_allocator else {}
    x = along(axis, group, varying)
    height = max(HEIGHT, LABEL_GAP * (len(names) + quantity.axis.relative + 1))
    main = Panel(x=x, y=quantity.scale(rows), marks=quantity.along(axis.column, "series", styles), height=height,
        rows=[row for row in rows if row["series"] in names])  # fmt: skip
    short = f"{'-allocator' if by_allocator else ''}-{point.short_name(varying)}"
    return Picture(
        name=f"{quantity.name}-{axis.name}{short}",
        heading=f"{quantity.filled(quantity.axis.title)} against {axis.name}{of}",
        facts=facts(point, group, varying),
        notes=[*interval(quantity, rows), *origins(group)],
        stacks=[[main, *_strip([row for row in group if row["status"] != "ok"], axis, x)]],
    )


def interval(quantity: Quantity, rows: Sequence[Row], what: str = "band") -> Iterator[str]:
    """Yield what the bands of measured rows are."""
    if quantity.axis.low:
        percent, processes = 99 if quantity.axis.relative else 95, process_count(rows)
        has_band = any(row[quantity.axis.low] is not None for row in rows)
        yield f"{what}: {percent} % interval over {processes}" if has_band else f"{processes}, so no interval"


def _style(row: Row) -> Style:
    """Return the implementation's style; another allocator than the usual one has its own dash, and hollow markers."""
    own, dash = style(row["implementation"]), ALLOCATOR_DASHES.get(row[ALLOCATOR])
    return Style(own.colour, dash, own.marker, hollow=True) if dash else own


def _strip(failed: Sequence[Row], axis: Axis, x: Scale) -> Iterator[Panel]:
    """Yield the panel of what has no time, if there is any: a row for each implementation and status."""
    rows = [
        {**row, "row": (row["series"], row["status"]), "kind": "untried" if row["status"] in UNTRIED else "failed"}
        for row in failed
    ]
    if not rows:
        return
    first = {row["row"]: row for row in reversed(rows)}
    at = [*dict.fromkeys(row["row"] for own in by(rows, "series").values() for row in own)]
    own: dict[str, Any] = {"y": "row", "by": "implementation"}
    marks = [
        Marks(shape=Shape.POINT, x=axis.column, kind="failed", marker="X", size=7.5, **own),
        Marks(shape=Shape.POINT, x=axis.column, kind="untried", marker="o", size=5, is_hollow=True, **own),
        Marks(shape=Shape.TEXT, rows=[*first.values()], text="series", beside=True, **own),
    ]
    y = Scale.places("", at, [status for _, status in at])
    yield Panel(x=x, y=y, marks=marks, height=ROW_HEIGHT * len(at), rows=rows)
