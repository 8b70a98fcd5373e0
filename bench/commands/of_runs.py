"""The commands that read runs: a function for each."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pandas as pd

from bench.analyse.analysed_run import AnalysedRun
from bench.analyse.comparable import unlike_conditions
from bench.analyse.comparison import compared, is_compared
from bench.analyse.selection import LISTED, most_important, point_count, went_wrong, where
from bench.commands import in_format, put, say
from bench.commands.arguments import MOST_POINTS, TOP
from bench.commands.options import LOCAL
from bench.engine.merge import merge as merged
from bench.machine.signals import held
from bench.plan.across import check
from bench.plan.columns import ValueKind, read
from bench.plan.errors import CannotWrite, NotComparable, WrongRequest, refusing, unknown_names
from bench.plan.statuses import BAD, FINE
from bench.plan.sweep import Sweep
from bench.plan.verdicts import named
from bench.show import across, columns
from bench.show.comparison import report as comparison
from bench.show.doubts import control_warning
from bench.show.results import results
from bench.store import table
from bench.store.files import Lock
from bench.store.journal import JOURNAL
from bench.store.table import RESULTS


def show(arguments: argparse.Namespace) -> int:
    """Print the results by point, and the failures."""
    if arguments.top is not None and arguments.top < 1:
        raise WrongRequest(f"--top {arguments.top} must be at least 1")
    names = [name.strip() for name in arguments.columns.split(",")] if arguments.columns else []
    for name in names:
        if name not in table.COLUMNS:
            raise WrongRequest(unknown_names("column", [name], table.COLUMNS, LISTED))
    saved: AnalysedRun = arguments.run
    if not saved.is_alone:
        say(*(f"warning: {notice}" for notice in saved.notices), stderr=True)
    if arguments.across:
        if arguments.columns or arguments.where is not None or arguments.top is not None:
            raise WrongRequest("--across shows all rows, so it takes no --columns, --where or --top")
        return _show_across(saved, arguments.across, arguments.format)
    chosen = where(saved.whole, arguments.where) if arguments.where is not None else saved.whole
    count, is_brief = point_count(chosen), arguments.format == "text" and sys.stdout.isatty()
    top = arguments.top or (TOP if is_brief and count > MOST_POINTS else count)
    shown = most_important(chosen, top) if arguments.top or top < count else chosen
    planned = saved.planned if shown is saved.whole else None
    of_rows = columns.chosen(names, saved.baseline) if names else columns.default(saved.baseline)
    rows = table.without_control(shown)
    rows = rows[[*dict.fromkeys(["point", "implementation", *names])] if names else [*table.FILE]]
    put(in_format(arguments.format, results(shown, of_rows, saved.whole, planned), _data(rows)))
    if is_brief and top < count:
        cases = table.without_control(chosen)
        wrong = int(went_wrong(cases).sum())
        failed = f"; {wrong:,} of all {len(cases):,} cases failed" if wrong else ""
        say(
            f"Shown: {top:,} of {count:,} points, the most important first{failed}. "
            "For more use --top N or --where EXPRESSION; results.csv has all."
        )
    return FINE


def _show_across(saved: AnalysedRun, column: str, form: str) -> int:
    """Print the ratios between the values of a column."""
    check(column)
    blocks = across.blocks(saved)
    if saved.planned is None or saved.planned.across != column or not blocks:
        raise WrongRequest(f"{saved} has no rounds across {column}; measure it with run --across {column}")
    put(in_format(form, blocks, _data(across.table(saved))))
    return FINE


def _data(rows: pd.DataFrame) -> dict[str, Callable[[], str]]:
    """Return functions that write rows in the formats of data."""
    return {
        "csv": lambda: table.as_csv(rows, [*rows]).decode(),
        "json": lambda: rows.to_json(orient="records", indent=2, double_precision=15, force_ascii=False) + "\n",
    }


def compare(arguments: argparse.Namespace) -> int:
    """Compare two runs; BAD if a row has a verdict of `--fail-on`."""
    failing, margin = named(arguments.fail_on), float(read(ValueKind.SHARE, "--margin", arguments.margin))
    base, new = _sides(arguments.runs)
    unlike = unlike_conditions(base, new)
    if unlike and not arguments.force:
        raise NotComparable(
            f"BASE and NEW were measured under different conditions: {'; '.join(unlike)}; --force compares them anyway"
        )
    changes = compared(base.table, new.table, margin=margin)
    if not is_compared(changes):
        raise NotComparable("BASE and NEW share no case, besides the baseline, that has a speed-up in both")
    sides = (("BASE", base), ("NEW", new))
    doubts = [f"{side}: {words}" for side, of in sides if (words := control_warning(of.whole))]
    remarks, headline = [*doubts, *comparison.notes(base, new, changes)], comparison.headline(changes)
    if arguments.format == "csv":  # CSV has no place for them
        say(headline, *remarks, stderr=True)
    data = {
        "csv": partial(comparison.as_csv, changes),
        "json": partial(comparison.as_json, changes, unlike, remarks, margin),
    }
    blocks = comparison.blocks(changes, unlike, remarks, shows_all=arguments.all)
    put(in_format(arguments.format, blocks, data), arguments.to, headline)
    return BAD if any(change.verdict in failing for change in changes) else FINE


def _sides(given: Sequence[AnalysedRun]) -> tuple[AnalysedRun, AnalysedRun]:
    """Return the base and the new run; one run, by default the last in results/, is new, and its base came before it.

    Raises WrongRequest for more than two runs, or without an earlier run of the same sweep.
    """
    if len(given) > 2:
        raise WrongRequest(f"compare takes BASE and NEW, got {len(given)} runs")
    if given[1:]:
        return given[0], given[1]
    runs = given or [AnalysedRun(folder) for folder in _runs(LOCAL)]
    if not runs:
        raise WrongRequest(f"{LOCAL}/ has no runs; give BASE and NEW")
    new = runs[-1]
    _ = new.table  # refuses what is no run
    folders, folder = _runs(new.folder.resolve().parent), new.folder.resolve()
    earlier = folders[: folders.index(folder)] if new.is_folder and folder in folders else []
    base = next((run for run in map(AnalysedRun, reversed(earlier)) if _is_same_sweep(run.planned, new.planned)), None)
    if base is None:
        raise WrongRequest(f"{new} has no earlier run of its sweep beside it; give BASE and NEW")
    say(f"BASE {os.path.relpath(base.path)}", f"NEW  {new}", stderr=True)
    return base, new


def _runs(folder: Path) -> list[Path]:
    """Return the run folders in a folder, the one measured last at the end."""
    journals = sorted(folder.glob(f"*/{JOURNAL}"), key=lambda path: path.stat().st_mtime_ns)
    return [path.parent for path in journals]


def _is_same_sweep(one: Sweep | None, other: Sweep | None) -> bool:
    return one is not None and other is not None and (one.name, one.points) == (other.name, other.points)


def report(arguments: argparse.Namespace) -> int:
    """Write report.html into the folder of a run, and print its path."""
    saved: AnalysedRun = arguments.run
    if saved.path.is_file():
        raise WrongRequest(f"{saved} is a file, but the report needs the run folder")
    with held():
        from bench.show.pages import run as page  # slow to import

    say(str(page.write(saved)))
    return FINE


def plot(arguments: argparse.Namespace) -> int:
    """Draw every kind of picture for which the run has values, and print the files."""
    with held():
        from bench.show.charts import catalogue  # slow to import

    saved: AnalysedRun = arguments.run
    folder = arguments.to or saved.plots
    files = catalogue.draw(folder, results=saved.table, profiles=saved.profiles, svg=arguments.svg)
    say(*(map(str, files) if files else ["nothing to draw, because no column varies among the cases that are ok"]))
    return FINE


def summarise(arguments: argparse.Namespace) -> int:
    """Write results.csv of each run folder anew.

    Raises WrongRequest for a folder without a journal, and CannotWrite for one that can't be written.
    """
    for saved in arguments.run:
        if not (saved.path / JOURNAL).exists():
            raise WrongRequest(f"{saved} has no {JOURNAL} to write {RESULTS} from")
        if saved.planned is None or not saved.contents.records:
            say(*saved.notices, stderr=True)
            raise WrongRequest(f"{saved.path / JOURNAL} has no valid line; {RESULTS} is unchanged")
        with Lock(saved.path), refusing(f"{saved.path / RESULTS} can't be written", CannotWrite):
            table.save(saved.results, saved.path)
        say(*saved.notices, f"{saved.path / RESULTS}: {len(saved.results)} rows")
    return FINE


def merge(arguments: argparse.Namespace) -> int:
    """Merge runs, and print what the merged run holds now."""
    done = merged(arguments.out, arguments.shards)
    say(*(f"warning: {notice}" for notice in done.notices))
    say(
        f"{arguments.out}: {done.before + done.added} records of {done.points} of {done.planned} points, "
        f"{done.added} of them new"
    )
    return FINE
