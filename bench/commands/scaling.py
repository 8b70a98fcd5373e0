"""Fit how latency and memory grow, and at how many tokens the winner changes."""

import argparse
from pathlib import Path

from bench.commands import FINE
from bench.show.figures import catalogue
from bench.show.terminal import scaling
from bench.show.terminal.console import console
from bench.store.saved_run import SavedRun


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("run", metavar="RUN", type=SavedRun, help="a run folder or a results.csv")
    parser.add_argument(
        "--to", metavar="DIR", type=Path, help="the folder for the pictures (default: plots/ beside the results)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the fits of every series and draw them, and the maps of winners."""
    saved: SavedRun = arguments.run
    console().print(scaling.render(scaling.series(saved.table)))
    for file in catalogue.draw(arguments.to or saved.plots, ("scaling", "winners"), results=saved.table):
        console().print(str(file), soft_wrap=True, markup=False)
    return FINE
