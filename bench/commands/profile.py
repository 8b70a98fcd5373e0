"""Profile cases of a run, to see why they are fast."""

import argparse
from collections.abc import Mapping, Sequence

from bench.commands import BAD, FINE, say
from bench.plan.case import Case
from bench.plan.errors import WrongRequest
from bench.profiling import select, traces
from bench.show.charts import catalogue
from bench.show.control_text import warning
from bench.show.terminal import profile as show
from bench.show.terminal.console import console
from bench.show.terminal.profile_difference import render
from bench.store.profile import Profile
from bench.store.saved_run import SavedRun

Pair = tuple[Profile, Profile]
Profiles = Mapping[Case, Profile]


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
    add_difference_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Profile the cases that the arguments name, or compare profiles; BAD if a case could not be profiled."""
    if arguments.top < 1:
        raise WrongRequest(f"--top {arguments.top} must be at least 1")
    if arguments.diff:
        if arguments.run or arguments.report:
            given = arguments.run or "--report"
            raise WrongRequest(f"--diff takes its two runs and nothing to profile, got {given} too")
        return print_differences(arguments)
    if arguments.run is None:
        raise WrongRequest("profile takes a run folder, or --diff RUN_A RUN_B, got neither")
    return _profile(arguments)


def _profile(arguments: argparse.Namespace) -> int:
    """Profile the cases one after the other and print each, then draw the pictures of all profiles of the run."""
    saved: SavedRun = arguments.run
    table, baseline = saved.table, saved.baseline or ""
    if not saved.is_folder:
        raise WrongRequest(f"{saved} is a file; profile needs the run folder, to write traces/ into it")
    cases = select.with_stages(select.chosen(table, arguments.case, baseline), table)
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


def add_difference_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the option for a difference; `--case` chooses its profiles."""
    parser.add_argument(
        "--diff",
        metavar=("RUN_A", "RUN_B"),
        nargs=2,
        type=SavedRun,
        help="compare existing profiles: the change of each operator from RUN_A to RUN_B; "
        "the first of two --case is for RUN_A, the second for RUN_B",
    )


def print_differences(arguments: argparse.Namespace) -> int:
    """Print the difference of each pair that the arguments name; raises WrongRequest if there is none."""
    for number, (a, b) in enumerate(pairs(arguments.diff[0], arguments.diff[1], arguments.case)):
        console().print(*([""] if number else []), render(a, b, arguments.top), sep="\n")
    return FINE


def pairs(run_a: SavedRun, run_b: SavedRun, selectors: Sequence[str]) -> list[Pair]:
    """Return the profiles of both runs that belong together.

    With one selector or none these are the profiles of the same case. With two they are those of the same point, of the
    first selector's cases in RUN_A and the second's in RUN_B; if each names a single case, those two.
    Raises WrongRequest if there is none.
    """
    if len(selectors) > 2:
        raise WrongRequest(f"--diff takes one --case for both runs, or one for each, got {len(selectors)}")
    a, b = _profiles(run_a, selectors[:1]), _profiles(run_b, selectors[-1:])
    matching = _same_point(a, b) if len(selectors) == 2 else [(a[case], b[case]) for case in a if case in b]
    if not matching:
        of = f" that {' and '.join(selectors)} names" if selectors else ""
        raise WrongRequest(
            f"{run_a} and {run_b} share no profile{of}; python -m bench profile RUN --case … makes those of a run"
        )
    return matching


def _profiles(run: SavedRun, selectors: Sequence[str]) -> Profiles:
    """Return the profiles of a run that a selector names, all without one; raises WrongRequest if it names none."""
    table = print_differences.table  # a path without results is refused
    profiles = {profile.case: profile for profile in print_differences.profiles}
    if not selectors:
        return profiles
    cases = select.chosen(table, selectors, "")
    chosen = {case: profiles[case] for case in cases if case in profiles}
    if not chosen:
        raise WrongRequest(
            f"{print_differences} holds no profile of {', '.join(case.name for case in cases)}; "
            f"python -m bench profile {print_differences} --case {selectors[0]} makes it"
        )
    return chosen


def _same_point(a: Profiles, b: Profiles) -> list[Pair]:
    if len(a) == len(b) == 1:
        return list(zip(a.values(), b.values(), strict=True))
    return [(before, after) for case, before in a.items() for other, after in b.items() if case.point == other.point]
