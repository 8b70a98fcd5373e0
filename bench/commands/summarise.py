"""Write results.csv of a run anew from its journal."""

import argparse
from contextlib import closing

from bench.commands import say
from bench.engine.run_folder import RunFolder
from bench.plan.errors import WrongRequest
from bench.plan.statuses import FINE
from bench.store import plan
from bench.store.journal import JOURNAL
from bench.store.table import RESULTS


def run(arguments: argparse.Namespace) -> int:
    """Write results.csv of each run folder anew.

    Raises WrongRequest for a folder without a journal, and one that can't be written.
    """
    for saved in arguments.run:
        if not (saved.path / JOURNAL).exists():
            raise WrongRequest(f"{saved} holds no {JOURNAL}, from which {RESULTS} could be written")
        planned = plan.load(saved.path)
        if planned is None or not saved.contents.records:
            say(*saved.notices, stderr=True)
            raise WrongRequest(f"{saved.path / JOURNAL} holds no line that counts; {RESULTS} stays as it is")
        with closing(RunFolder(planned, saved.path)) as run_folder:
            run_folder.prepare()
            run_folder.save()
        say(*run_folder.notices, f"{saved.path / RESULTS}: {len(run_folder.records.results())} rows")
    return FINE
