"""The door of `python -m bench profile`: why a row of a run is as fast as it is."""

import argparse
from pathlib import Path

import pandas as pd

from bench import differing
from bench.plan.case import Case
from bench.plan.errors import WrongRequest
from bench.profiling import select, traces
from bench.show import profile as show
from bench.show import report, stage_pictures
from bench.show.console import console
from bench.show.rows import baseline_of
from bench.store import profile as store
from bench.store.table import load


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("run", metavar="RUN", type=Path, nargs="?", help="a run folder")
    parser.add_argument(
        "--case",
        metavar="COLUMN=VALUE,…",
        action="append",
        default=[],
        help="which cases (default: the fastest and the baseline of each point); stepwise is profiled at each of "
        "their points too, for the stages, whether or not the run measured it",
    )
    parser.add_argument(
        "--top",
        metavar="N",
        type=int,
        default=show.TOP,
        help=f"so many operators a case, the rest in one line (default: {show.TOP})",
    )
    parser.add_argument(
        "--report", action="store_true", help=f"show all profiles of the run on one page too: {report.PAGE}"
    )
    differing.add_options(parser)


def run(options: argparse.Namespace) -> bool:
    """Profile the cases that the options name, or set profiles against each other; return whether all could be done."""
    if options.top < 1:
        raise WrongRequest(f"--top {options.top} must be at least 1")
    if options.diff:
        if options.run or options.report:
            given = options.run or "--report"
            raise WrongRequest(f"--diff takes its two runs and nothing to profile, got {given} too")
        differing.run(options)
        return True
    if options.run is None:
        raise WrongRequest("profile takes a run folder, or --diff RUN_A RUN_B, got neither")
    return _profile(options)


def _profile(options: argparse.Namespace) -> bool:
    """Profile the cases one after the other, print each as it is done, then draw what all profiles of the run show."""
    table = load(options.run)
    if not options.run.is_dir():
        raise WrongRequest(f"{options.run} is a file; profile needs the run folder, to write traces/ into it")
    cases = select.with_stages(select.chosen(table, options.case, baseline_of(table) or ""), table)
    failed = _print_each(cases, table, options)
    profiles = store.load(options.run)
    files = stage_pictures.draw(profiles, options.run / "plots")
    if options.report and profiles:
        files.append(report.write(profiles, options.run))
    for path in files:
        console().print(str(path), soft_wrap=True, markup=False)
    return not failed


def _print_each(cases: list[Case], table: pd.DataFrame, options: argparse.Namespace) -> int:
    """Return how many cases could not be profiled."""
    failed = 0
    for traced in traces.write(cases, options.run):
        said = f"{traced.case.name}: {traced.reason or traced.trace}"
        console().print(said, soft_wrap=True, markup=False)
        if traced.profile is None:
            failed += 1
        else:
            console().print(show.render(traced.profile, show.row_of(table, traced.case), top=options.top))
        console().print()
    return failed
