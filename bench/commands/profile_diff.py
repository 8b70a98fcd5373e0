"""`python -m bench profile --diff`: the profiles of two runs, compared in pairs."""

import argparse
from collections.abc import Mapping, Sequence

from bench.commands import FINE
from bench.plan.case import Case
from bench.plan.errors import WrongRequest
from bench.profiling import traces
from bench.show.terminal.console import console
from bench.show.terminal.profile_difference import render
from bench.store.profile import Profile
from bench.store.saved_run import SavedRun

Pair = tuple[Profile, Profile]
Profiles = Mapping[Case, Profile]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the option for a difference; `--case` chooses its profiles."""
    parser.add_argument(
        "--diff",
        metavar=("RUN_A", "RUN_B"),
        nargs=2,
        type=SavedRun,
        help="compare existing profiles: the change of each operator from RUN_A to RUN_B; "
        "the first of two --case is for RUN_A, the second for RUN_B",
    )


def run(arguments: argparse.Namespace) -> int:
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
    table = run.table  # a path without results is refused
    profiles = {profile.case: profile for profile in run.profiles}
    if not selectors:
        return profiles
    cases = traces.chosen(table, selectors, "")
    chosen = {case: profiles[case] for case in cases if case in profiles}
    if not chosen:
        raise WrongRequest(
            f"{run} holds no profile of {', '.join(case.name for case in cases)}; "
            f"python -m bench profile {run} --case {selectors[0]} makes it"
        )
    return chosen


def _same_point(a: Profiles, b: Profiles) -> list[Pair]:
    if len(a) == len(b) == 1:
        return list(zip(a.values(), b.values(), strict=True))
    return [(before, after) for case, before in a.items() for other, after in b.items() if case.point == other.point]
