"""Draw the pictures of a run."""

import argparse

from bench.commands import say
from bench.plan.statuses import FINE


def run(arguments: argparse.Namespace) -> int:
    """Draw every kind of picture for which the run has values, and print the files."""
    from bench.show.charts import catalogue  # slow to import

    saved = arguments.run
    folder = arguments.to or saved.plots
    files = catalogue.draw(folder, results=saved.table, profiles=saved.profiles, svg=arguments.svg)
    say(*(map(str, files) if files else ["nothing to draw: no column varies over cases that are ok"]))
    return FINE
