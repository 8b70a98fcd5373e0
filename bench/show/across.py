"""What a change of one column brings: each implementation's ratio to the first value."""

from collections.abc import Sequence

from bench.analyse.across import Setting
from bench.show import intervals
from bench.show.blocks import QUIET, Block, Column, Lines, Table, right
from bench.show.text import LONGEST_NAME, names
from bench.store import units

DECIMALS = 3
"""Decimals of an exact ratio: far from 1 two say little."""


def blocks(settings: Sequence[Setting], column: str) -> list[Block]:
    """Return a table of the rows at each value, and what its ratios mean."""
    firsts = {each.point: each for each in settings if each.value == each.first}
    labels = names(firsts, LONGEST_NAME)
    groups, label = len(firsts), ""
    shown = []
    for each in settings:
        label = labels.get(each.point, label)
        shown.append((label, each))
    columns = [
        *([Column("point", lambda row: row[0])] if groups > 1 else []),
        Column("implementation", lambda row: str(row[1].row["implementation"])),
        Column(column, lambda row: _value(row[1].value)),
        Column("latency", lambda row: _latency(row[1]), right),
        Column(f"vs {_value(settings[0].first)}", lambda row: _ratio(row[1])),
        Column("memory", lambda row: units.size(row[1].row["memory_bytes"]), right),
    ]
    note = f"vs {_value(settings[0].first)}: times as fast as with {column} = {_value(settings[0].first)}"
    return [Table(columns, shown), Lines([f"{note} (99% confidence, this run)"], QUIET)]


def _value(value: object) -> str:
    return "none" if value is None else str(value)


def _latency(of: Setting) -> str:
    return units.seconds(of.row["latency_s"]) if of.row["status"] == "ok" else str(of.row["status"])


def _ratio(of: Setting) -> str:
    if of.value == of.first:
        return "baseline"
    return intervals.ratio(of.ratio, DECIMALS) if of.ratio.value == of.ratio.value else ""
