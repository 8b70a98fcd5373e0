"""Write results.csv of a run anew from its journal."""

import argparse

from bench.commands import say
from bench.plan.errors import CannotWrite, WrongRequest, refusing
from bench.plan.statuses import FINE
from bench.store import table
from bench.store.files import Lock
from bench.store.journal import JOURNAL
from bench.store.table import RESULTS


def run(arguments: argparse.Namespace) -> int:
    """Write results.csv of each run folder anew.

    Raises WrongRequest for a folder without a journal, and CannotWrite for one that can't be written.
    """
    for saved in arguments.run:
        if not (saved.path / JOURNAL).exists():
            raise WrongRequest(f"{saved} holds no {JOURNAL}, from which {RESULTS} could be written")
        if saved.planned is None or not saved.contents.records:
            say(*saved.notices, stderr=True)
            raise WrongRequest(f"{saved.path / JOURNAL} holds no line that counts; {RESULTS} stays as it is")
        with Lock(saved.path), refusing(f"{saved.path / RESULTS} can't be written", CannotWrite):
            table.save(saved.results, saved.path)
        say(*saved.notices, f"{saved.path / RESULTS}: {len(saved.results)} rows")
    return FINE
