"""The door of `python -m bench profile`: why a row of a run is as fast as it is."""

import argparse
from pathlib import Path

from bench.plan.errors import WrongRequest
from bench.profiling import select, traces
from bench.show import profile as show
from bench.show.console import console
from bench.show.rows import baseline_of
from bench.store.table import load


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("run", metavar="RUN", type=Path, help="a run folder")
    parser.add_argument(
        "--case",
        metavar="COLUMN=VALUE,…",
        action="append",
        default=[],
        help="which cases (default: the winner and the baseline of each point, and stepwise for the stages; "
        "stepwise can be chosen at every point of the run, whether or not the run measured it)",
    )
    parser.add_argument(
        "--top",
        metavar="N",
        type=int,
        default=show.TOP,
        help=f"so many operators a case, the rest in one line (default: {show.TOP})",
    )


def run(options: argparse.Namespace) -> bool:
    """Profile the cases that the options name, print each as it is done, and return whether all could be profiled."""
    if options.top < 1:
        raise WrongRequest(f"--top {options.top} must be at least 1")
    table = load(options.run)
    if not options.run.is_dir():
        raise WrongRequest(f"{options.run} is a file; profile needs the run folder, to write traces/ into it")
    cases = select.chosen(table, options.case, baseline_of(table) or "")
    failed = 0
    for number, traced in enumerate(traces.write(cases, options.run)):
        console().print(
            "\n" * (number > 0) + f"{traced.case.name}: {traced.objection or traced.trace}",
            soft_wrap=True,
            markup=False,
        )
        if traced.profile is None:
            failed += 1
        else:
            console().print(show.render(traced.profile, show.row_of(table, traced.case), top=options.top))
    return not failed
