"""The command `summarise`: write results.csv of a run anew from its journal."""

import argparse
from pathlib import Path

from bench.engine.ledger import Ledger
from bench.plan.errors import WrongRequest
from bench.show.console import console
from bench.store import plan
from bench.store.journal import JOURNAL
from bench.store.table import RESULTS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("run", metavar="RUN", nargs="+", type=Path, help=f"a run folder with a {JOURNAL}")


def run(arguments: argparse.Namespace) -> int:
    """Write results.csv of each run folder anew, and return the exit status.

    Raises WrongRequest for a folder without a journal, one that can't be written, or one that another process fills.
    """
    for folder in arguments.run:
        stored = plan.load(folder)
        if stored is None or not (folder / JOURNAL).exists():
            raise WrongRequest(f"{folder} holds no {JOURNAL}, from which {RESULTS} could be written")
        ledger = Ledger(stored.sweep, folder)
        ledger.prepare()
        try:
            ledger.save()
        finally:
            ledger.close()
        for line in (*ledger.notices, f"{folder / RESULTS}: {len(ledger.results())} rows"):
            console().print(line, soft_wrap=True, markup=False)
    return 0
