"""Profile cases of a run, to see why they are fast."""

import argparse
import itertools
from collections.abc import Sequence

from bench.commands import BAD, FINE, say
from bench.plan.case import Case
from bench.plan.errors import WrongRequest
from bench.plan.invocation import suite
from bench.profiling import traces
from bench.show.answer import control_warning
from bench.show.blocks import GAP
from bench.show.charts import catalogue
from bench.show.terminal import profile as show
from bench.show.terminal.console import console, render
from bench.store.profile import Profile
from bench.store.saved_run import SavedRun

Pair = tuple[Profile, Profile]
"""The profiles of a case of RUN_A and of one of RUN_B."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_option = parser.add_argument
    add_option("run", metavar="RUN", type=SavedRun, nargs="?", help="a run folder")
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
    add_option(
        "--diff",
        metavar=("RUN_A", "RUN_B"),
        nargs=2,
        type=SavedRun,
        help="compare existing profiles: the change of each operator from RUN_A to RUN_B; "
        "the first of two --case is for RUN_A, the second for RUN_B",
    )


def run(arguments: argparse.Namespace) -> int:
    """Profile the cases that the arguments name, or compare profiles; BAD if a case could not be profiled."""
    if arguments.top < 1:
        raise WrongRequest(f"--top {arguments.top} must be at least 1")
    if not arguments.diff:
        if arguments.run is None:
            raise WrongRequest("profile takes a run folder, or --diff RUN_A RUN_B, got neither")
        return _profile(arguments.run, arguments)
    if given := arguments.run or ("--report" if arguments.report else ""):
        raise WrongRequest(f"--diff takes its two runs and nothing to profile, got {given} too")
    for number, (a, b) in enumerate(pairs(arguments.diff[0], arguments.diff[1], arguments.case)):
        console().print(render([*[GAP] * bool(number), *show.difference_blocks(a, b, arguments.top)]))
    return FINE


def _profile(saved: SavedRun, arguments: argparse.Namespace) -> int:
    """Profile the cases one after the other and print each, then draw the pictures of all profiles of the run."""
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


def pairs(run_a: SavedRun, run_b: SavedRun, selectors: Sequence[str]) -> list[Pair]:
    """Return the profiles of both runs that belong together.

    With one selector or none these are the profiles of the same case. With two they are those of the same point, of the
    first selector's cases in RUN_A and the second's in RUN_B; if each names a single case, those two.
    Raises WrongRequest if there is none.
    """
    if len(selectors) > 2:
        raise WrongRequest(f"--diff takes one --case for both runs, or one for each, got {len(selectors)}")
    a, b = _profiles(run_a, selectors[:1]), _profiles(run_b, selectors[-1:])
    is_alone = len(a) == len(b) == 1
    matching = [
        (a[case], b[other])
        for case, other in itertools.product(a, b)
        if (case == other if len(selectors) < 2 else is_alone or case.point == other.point)
    ]
    if not matching:
        of = f" that {' and '.join(selectors)} names" if selectors else ""
        raise WrongRequest(
            f"{run_a} and {run_b} share no profile{of}; {suite()} profile RUN --case … makes those of a run"
        )
    return matching


def _profiles(run: SavedRun, selectors: Sequence[str]) -> dict[Case, Profile]:
    """Return the profiles of a run that a selector names, all without one; raises WrongRequest if it names none."""
    table = run.table  # a path without results is refused
    profiles = {profile.case: profile for profile in run.profiles}
    if not selectors:
        return profiles
    cases = traces.chosen(table, selectors, "")
    chosen = {case: profiles[case] for case in cases if case in profiles}
    if not chosen:
        raise WrongRequest(
            f"{run} holds no profile of {', '.join(case.name for case in cases)}; "
            f"{suite()} profile {run} --case {selectors[0]} makes it"
        )
    return chosen
