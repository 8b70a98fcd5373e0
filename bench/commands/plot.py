"""Draw the pictures of a run."""

import argparse
from pathlib import Path

from bench.commands import say
from bench.plan.statuses import FINE
from bench.store.saved_run import runs_of


def run(arguments: argparse.Namespace) -> int:
    """Draw every kind of picture for which the run has values, and print the files."""
    from bench.show.charts import catalogue  # slow to import

    runs = runs_of(arguments.run)
    files: list[Path] = []
    for name, saved in runs.items():  # pictures of each machine by themselves
        folder = arguments.to / name if arguments.to and len(runs) > 1 else arguments.to
        folder = folder or saved.plots
        files += catalogue.draw(folder, results=saved.table, profiles=saved.profiles, svg=arguments.svg)
    say(*(map(str, files) if files else ["nothing to draw: no column varies over cases that are ok"]))
    return FINE
