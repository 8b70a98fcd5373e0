"""Print the table of a run."""

import argparse

from bench.analyse.precision import changes
from bench.commands import FINE
from bench.plan.sweep import load_sweep, shipped_names
from bench.show.terminal.console import console
from bench.show.terminal.failures import failures
from bench.show.terminal.flags import TARGET
from bench.show.terminal.precision import precisions
from bench.show.terminal.references import references
from bench.show.terminal.results import results
from bench.store.saved_run import SavedRun


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("run", metavar="RUN", type=SavedRun, help="a run folder or a results.csv")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--reference", action="store_true", help="our times beside figures that others published")
    kinds.add_argument("--across", choices=["dtype"], help="what a change of precision brings, and its error")


def run(arguments: argparse.Namespace) -> int:
    """Print the results by point and the failures, our times beside published ones, or precisions side by side."""
    saved: SavedRun = arguments.run
    if arguments.across:
        console().print(precisions(saved.table, changes(saved.records)))
        return FINE
    if arguments.reference:
        published = [figure for name in shipped_names() for figure in load_sweep(name).published]
        console().print(references(saved.table, published))
        return FINE
    target = saved.effort.target if saved.effort else TARGET
    console().print(results(saved.whole, saved.baseline, target))
    console().print(failures(saved.whole))
    return FINE
