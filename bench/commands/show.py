"""Print the table of a run."""

import argparse
import sys

import pandas as pd

from bench.analyse.analysed_run import AnalysedRun
from bench.analyse.selection import most_important, point_count, went_wrong, where
from bench.commands import put, say
from bench.commands.arguments import MOST_POINTS, TOP
from bench.plan.errors import WrongRequest
from bench.plan.statuses import FINE
from bench.show.failures import blocks
from bench.show.terminal.results import results
from bench.store.table import without_control


def run(arguments: argparse.Namespace) -> int:
    """Print the results by point, and the failures."""
    if arguments.top is not None and arguments.top < 1:
        raise WrongRequest(f"--top {arguments.top} must be at least 1")
    _show(arguments.run, arguments)
    return FINE


def _show(saved: AnalysedRun, arguments: argparse.Namespace) -> None:
    if not saved.is_alone:
        say(*(f"warning: {notice}" for notice in saved.notices), stderr=True)
    chosen = where(saved.whole, arguments.where) if arguments.where else saved.whole
    count = point_count(chosen)
    top = arguments.top or (TOP if sys.stdout.isatty() and count > MOST_POINTS else count)
    shown = most_important(chosen, top) if arguments.top or top < count else chosen
    planned = saved.planned if shown is saved.whole else None
    by_point = results(shown, saved.baseline, saved.whole, planned.points if planned else ())
    put([*by_point, *blocks(shown, planned)])
    if top < count:
        _tell_the_rest(chosen, top, count)


def _tell_the_rest(table: pd.DataFrame, top: int, count: int) -> None:
    """Say how much is not shown, and how to see it."""
    rows = without_control(table)
    wrong = int(went_wrong(rows).sum())
    failed = f"; of all {len(rows):,} cases {wrong:,} went wrong" if wrong else ""
    say(
        f"Shown: {top:,} of {count:,} points, the most important first{failed}. "
        "More: --top N, --where EXPRESSION, or results.csv, which has all."
    )
