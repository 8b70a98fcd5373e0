"""What a change of one column brings: each implementation's ratio to the first value."""

import math
from collections.abc import Sequence

import pandas as pd

from bench.analyse.across import Setting, settings
from bench.analyse.analysed_run import AnalysedRun
from bench.plan.across import text
from bench.show import intervals
from bench.show.blocks import QUIET, Block, Column, Lines, Table, right
from bench.show.rows import time
from bench.show.text import LONGEST_NAME, names
from bench.store import units
from bench.store.table import FILE, of_rows

DECIMALS = 3
"""Decimals of an exact ratio: far from 1 two say little."""


def blocks(run: AnalysedRun) -> list[Block]:
    """Return a table of the rows at each value, and a note on its ratios; empty if the run isn't across a column."""
    told = settings(run)
    return _blocks(told, run.planned.across) if told and run.planned else []


def _blocks(settings: Sequence[Setting], column: str) -> list[Block]:
    labels = names({each.first for each in settings}, LONGEST_NAME)
    firsts = {text(each.first, column) for each in settings}
    first = firsts.pop() if len(firsts) == 1 else "first"
    columns = [
        *([Column("point", lambda each: labels[each.first])] if len(labels) > 1 else []),
        Column("implementation", lambda each: str(each.row["implementation"])),
        Column(column, lambda each: text(each.point, column)),
        Column("latency", lambda each: time(each.row), right),
        Column(f"vs {first}", _ratio),
        Column("memory", lambda each: units.size(each.row["memory_bytes"]), right),
    ]
    note = f"vs {first}: times as fast as with {f'the first {column}' if firsts else f'{column} = {first}'}"
    return [Table(columns, settings), Lines([f"{note} (99% confidence, this run)"], QUIET)]


def table(run: AnalysedRun) -> pd.DataFrame:
    """Return the rows with the columns of results.csv and their ratios to the first value."""
    told = settings(run)
    ratios = [each.ratio for each in told]
    return of_rows([each.row for each in told])[[*FILE]].assign(
        across=[ratio.value for ratio in ratios],
        across_low=[ratio.low for ratio in ratios],
        across_high=[ratio.high for ratio in ratios],
    )


def _ratio(of: Setting) -> str:
    if of.point == of.first:
        return "baseline"
    if math.isnan(of.ratio.value):
        return ""
    return intervals.ratio(of.ratio, DECIMALS) + " disturbed" * of.is_disturbed
