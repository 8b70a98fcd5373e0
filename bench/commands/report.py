"""Write report.html, the page of a run."""

import argparse

from bench.analyse.analysed_run import AnalysedRun
from bench.commands import say
from bench.plan.errors import WrongRequest
from bench.plan.statuses import FINE


def run(arguments: argparse.Namespace) -> int:
    """Write report.html into the folder of a run, and print its path."""
    saved: AnalysedRun = arguments.run
    if saved.path.is_file():
        raise WrongRequest(f"{saved} is a table; expected a run folder, whose journal has more")
    from bench.show.pages import run as page  # slow to import

    say(str(page.write(saved)))
    return FINE
