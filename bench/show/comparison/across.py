"""What a change of one column brings: each implementation's ratio to the first value."""

import math
from collections.abc import Sequence

from bench.analyse.across import Setting
from bench.plan.case import Point
from bench.plan.columns import NONE
from bench.show import intervals
from bench.show.blocks import QUIET, Block, Column, Lines, Table, right
from bench.show.comparison.changes import time
from bench.show.text import LONGEST_NAME, names
from bench.store import units

DECIMALS = 3
"""Decimals of an exact ratio: far from 1 two say little."""


def blocks(settings: Sequence[Setting], column: str) -> list[Block]:
    """Return a table of the rows at each value, and what its ratios mean."""

    def value(point: Point) -> str:
        return str(getattr(point, column) or NONE)

    labels, first = names({each.first for each in settings}, LONGEST_NAME), value(settings[0].first)
    columns = [
        *([Column("point", lambda each: labels[each.first])] if len(labels) > 1 else []),
        Column("implementation", lambda each: str(each.row["implementation"])),
        Column(column, lambda each: value(each.point)),
        Column("latency", lambda each: time(each.row), right),
        Column(f"vs {first}", _ratio),
        Column("memory", lambda each: units.size(each.row["memory_bytes"]), right),
    ]
    note = f"vs {first}: times as fast as with {column} = {first} (99% confidence, this run)"
    return [Table(columns, settings), Lines([note], QUIET)]


def _ratio(of: Setting) -> str:
    if of.point == of.first:
        return "baseline"
    return "" if math.isnan(of.ratio.value) else intervals.ratio(of.ratio, DECIMALS)
