"""Print the table of a run."""

import argparse
import sys
from collections.abc import Sequence

import pandas as pd

from bench.analyse.analysed_run import AnalysedRun
from bench.analyse.selection import LISTED, most_important, point_count, went_wrong, where
from bench.commands import in_format, put, say
from bench.commands.arguments import MOST_POINTS, TOP
from bench.plan.errors import WrongRequest, unknown_names
from bench.plan.statuses import FINE
from bench.show import columns
from bench.show.results import results
from bench.store.table import COLUMNS, FILE, as_csv, without_control


def run(arguments: argparse.Namespace) -> int:
    """Print the results by point, and the failures."""
    if arguments.top is not None and arguments.top < 1:
        raise WrongRequest(f"--top {arguments.top} must be at least 1")
    names = _columns(arguments.columns)
    saved: AnalysedRun = arguments.run
    if not saved.is_alone:
        say(*(f"warning: {notice}" for notice in saved.notices), stderr=True)
    chosen = where(saved.whole, arguments.where) if arguments.where is not None else saved.whole
    count, is_brief = point_count(chosen), arguments.format == "text" and sys.stdout.isatty()
    top = arguments.top or (TOP if is_brief and count > MOST_POINTS else count)
    shown = most_important(chosen, top) if arguments.top or top < count else chosen
    planned = saved.planned if shown is saved.whole else None
    of_rows = columns.chosen(names, saved.baseline) if names else columns.default(saved.baseline)
    blocks = results(shown, of_rows, saved.whole, planned)
    rows = without_control(shown)[[*dict.fromkeys(["point", "implementation", *names])] if names else [*FILE]]
    data = {
        "csv": lambda: as_csv(rows, [*rows]).decode(),
        "json": lambda: rows.to_json(orient="records", indent=2, double_precision=15, force_ascii=False) + "\n",
    }
    put(in_format(arguments.format, blocks, data))
    if is_brief and top < count:
        _tell_the_rest(chosen, top, count)
    return FINE


def _columns(names: str | None) -> Sequence[str]:
    """Return the names of columns that were asked for; raises WrongRequest for one that there is not."""
    asked = [name.strip() for name in names.split(",")] if names else []
    for name in asked:
        if name not in COLUMNS:
            raise WrongRequest(unknown_names("column", [name], COLUMNS, LISTED))
    return asked


def _tell_the_rest(table: pd.DataFrame, top: int, count: int) -> None:
    """Say how much is not shown, and how to see it."""
    rows = without_control(table)
    wrong = int(went_wrong(rows).sum())
    failed = f"; of all {len(rows):,} cases {wrong:,} went wrong" if wrong else ""
    say(
        f"Shown: {top:,} of {count:,} points, the most important first{failed}. "
        "More: --top N, --where EXPRESSION, or results.csv, which has all."
    )
