"""Profile cases of a run, to see why they are fast."""

import argparse

from bench.commands import BAD, FINE, profile_diff, say
from bench.plan.case import Case
from bench.plan.errors import WrongRequest
from bench.profiling import traces
from bench.show.charts import catalogue
from bench.show.control_text import warning
from bench.show.terminal import profile as show
from bench.show.terminal.console import console
from bench.store.saved_run import SavedRun


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("run", metavar="RUN", type=SavedRun, nargs="?", help="a run folder")
    parser.add_argument(
        "--case",
        metavar="COLUMN=VALUE,…",
        action="append",
        default=[],
        help="the cases (default: the fastest and the baseline of each point); stepwise is profiled at their "
        "points too, for the stages, even if the run didn't measure it",
    )
    parser.add_argument(
        "--top",
        metavar="N",
        type=int,
        default=show.TOP,
        help=f"operators that are printed of a case, the rest in one line (default: {show.TOP})",
    )
    parser.add_argument(
        "--report", action="store_true", help="write a page with all profiles of the run too: profile.html"
    )
    profile_diff.add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Profile the cases that the arguments name, or compare profiles; BAD if a case could not be profiled."""
    if arguments.top < 1:
        raise WrongRequest(f"--top {arguments.top} must be at least 1")
    if arguments.diff:
        if arguments.run or arguments.report:
            given = arguments.run or "--report"
            raise WrongRequest(f"--diff takes its two runs and nothing to profile, got {given} too")
        return profile_diff.run(arguments)
    if arguments.run is None:
        raise WrongRequest("profile takes a run folder, or --diff RUN_A RUN_B, got neither")
    return _profile(arguments)


def _profile(arguments: argparse.Namespace) -> int:
    """Profile the cases one after the other and print each, then draw the pictures of all profiles of the run."""
    saved: SavedRun = arguments.run
    table, baseline = saved.table, saved.baseline or ""
    if not saved.is_folder:
        raise WrongRequest(f"{saved} is a file; profile needs the run folder, to write traces/ into it")
    cases = traces.with_stages(traces.chosen(table, arguments.case, baseline), table)
    failures = _print_each(cases, saved, arguments.top)
    files = catalogue.draw(saved.plots, profiles=saved.profiles)
    if arguments.report and saved.profiles:
        from bench.show.pages import profiles as page  # slow to import

        files.append(page.write(saved.profiles, saved.folder, warning(saved.whole)))
    say(*map(str, files))
    return BAD if failures else FINE


def _print_each(cases: list[Case], saved: SavedRun, top: int) -> int:
    """Profile the cases and print each; return how many could not be profiled."""
    failures = 0
    for traced in traces.write(cases, saved.folder):
        say(f"{traced.case.name}: {traced.reason or traced.trace}")
        if traced.profile is None:
            failures += 1
        else:
            console().print(show.render(traced.profile, show.row_of(saved.table, traced.case), top=top))
        console().print()
    return failures
