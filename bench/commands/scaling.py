"""Fit how latency and memory grow."""

import argparse

from bench.commands import say
from bench.plan.statuses import FINE
from bench.show.terminal import scaling
from bench.show.terminal.console import console, render
from bench.store.saved_run import SavedRun


def run(arguments: argparse.Namespace) -> int:
    """Print the fits of every series and draw them, and the maps of winners."""
    from bench.show.charts import catalogue  # slow to import

    saved: SavedRun = arguments.run
    console().print(render(scaling.blocks(scaling.series(saved.table))))
    folder, kinds = arguments.to or saved.plots, ("scaling", "winners")
    say(*map(str, catalogue.draw(folder, kinds, results=saved.table, svg=arguments.svg)))
    return FINE
