"""Profile cases of a run, to see why they are fast."""

import argparse

from bench.commands import BAD, FINE, say
from bench.plan.errors import WrongRequest
from bench.profiling import traces
from bench.show.charts import catalogue
from bench.show.doubts import control_warning
from bench.show.terminal import profile as show
from bench.show.terminal.console import console, render
from bench.store.saved_run import SavedRun


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_option = parser.add_argument
    add_option("run", metavar="RUN", type=SavedRun, help="a run folder")
    add_option(
        "--case",
        metavar="COLUMN=VALUE,…",
        action="append",
        default=[],
        help="the cases (default: the fastest and the baseline of each point); stepwise is profiled at their "
        "points too, for the stages, even if the run didn't measure it",
    )
    add_option(
        "--top",
        metavar="N",
        type=int,
        default=show.TOP,
        help=f"operators that are printed of a case, the rest in one line (default: {show.TOP})",
    )
    add_option("--report", action="store_true", help="write a page with all profiles of the run too: profile.html")


def run(arguments: argparse.Namespace) -> int:
    """Profile the cases one after the other and print each, then draw the pictures of all profiles of the run.

    BAD if a case could not be profiled.
    """
    if arguments.top < 1:
        raise WrongRequest(f"--top {arguments.top} must be at least 1")
    saved = arguments.run
    table = saved.table
    if not saved.is_folder:
        raise WrongRequest(f"{saved} is a file; profile needs the run folder, to write traces/ into it")
    cases = traces.with_stages(traces.chosen(table, arguments.case, saved.baseline or ""), table)
    status = FINE
    for traced in traces.write(cases, saved.folder):
        say(f"{traced.case.name}: {traced.reason or traced.trace}")
        if traced.profile is None:
            status = BAD
        else:
            row = show.row_of(table, traced.case)
            console().print(render(show.blocks(traced.profile, row, arguments.top)))
        console().print()
    files = catalogue.draw(saved.plots, profiles=saved.profiles)
    if arguments.report and saved.profiles:
        from bench.show.pages import profiles as page  # slow to import

        files.append(page.write(saved.profiles, saved.folder, control_warning(saved.whole)))
    say(*map(str, files))
    return status
