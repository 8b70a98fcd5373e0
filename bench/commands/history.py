"""Print how speed-ups changed from run to run, or make a page of it."""

import argparse
from pathlib import Path

from bench.analyse.analysed_run import AnalysedRun
from bench.analyse.history import history, run_of
from bench.commands import FINE, say
from bench.plan.errors import WrongRequest
from bench.show import side_by_side
from bench.show.terminal.console import console, render
from bench.store.table import RESULTS


def run(arguments: argparse.Namespace) -> int:
    """Print the speed-ups of each case in the latest runs, and write the page if that is asked for."""
    folders = [folder for path in arguments.runs for folder in _folders(path)]
    if len(folders) < 2:
        raise WrongRequest(
            f"a history needs two runs or more, got {len(folders)}; expected run folders, or a folder of them"
        )
    over_time = history([run_of(folder.resolve().name, AnalysedRun(folder).table) for folder in folders])
    console().print(render(side_by_side.history(over_time)))
    if arguments.report:
        from bench.show.pages import comparison as page  # slow to import

        say(str(page.write_history(arguments.report, over_time)))
    return FINE


def _folders(path: Path) -> list[Path]:
    """Return a run folder, or the run folders in a folder."""
    if (path / RESULTS).exists() or not path.is_dir():
        return [path]
    return sorted(file.parent for file in path.glob(f"*/{RESULTS}"))
