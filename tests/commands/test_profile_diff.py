"""`python -m bench profile --diff`: which profiles are set against each other."""

import dataclasses
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.analyse.summary import summarise
from bench.commands import profile_diff
from bench.plan.case import Case
from bench.plan.errors import WrongRequest
from bench.store import profile as store
from bench.store import table
from bench.store.profile import TRACES, Operator, Profile
from bench.store.saved_run import SavedRun
from tests.examples import point, record
from tests.profiles import MIB, profile

TOKENS = (197, 577)
NAMES = ("eager", "sdpa", "online")
COPY = Operator("aten::copy_", 1, 0.2e-3, 2 * MIB)


def folder(path: Path, *profiled: str, extra: tuple[Operator, ...] = ()) -> Path:
    """Write a run of three implementations at two points, some of them profiled, and return its folder."""
    (path / TRACES).mkdir(parents=True)
    cases = [Case(point(num_tokens=tokens), name) for tokens in TOKENS for name in NAMES]
    table.save(summarise([record(case=case) for case in cases], "eager"), path)
    for case in cases:
        if case.implementation in profiled:
            made = profile(case.implementation, num_tokens=case.point.num_tokens)
            store.save(dataclasses.replace(made, operators=(*made.operators, *extra)), path)
    return path


@pytest.fixture
def before(tmp_path: Path) -> Path:
    """Return a run with profiles of two implementations."""
    return folder(tmp_path / "before", "eager", "sdpa")


@pytest.fixture
def after(tmp_path: Path) -> Path:
    """Return a run with profiles of two implementations, which copy what they didn't before."""
    return folder(tmp_path / "after", "sdpa", "online", extra=(COPY,))


def pairs(a: Path, b: Path, selectors: Sequence[str]) -> list[tuple[Profile, Profile]]:
    """Return the pairs of profiles of two run folders."""
    return profile_diff.pairs(SavedRun(a), SavedRun(b), selectors)


def names(pairs: list[tuple[Profile, Profile]]) -> list[tuple[str, int, str, int]]:
    """Return the implementation and the tokens of both sides."""
    return [
        (a.case.implementation, a.case.point.num_tokens, b.case.implementation, b.case.point.num_tokens)
        for a, b in pairs
    ]


def test_without_a_case_all_are_taken_that_both_runs_have_profiles_of(before: Path, after: Path) -> None:
    """The others are left out."""
    assert names(pairs(before, after, [])) == [("sdpa", 197, "sdpa", 197), ("sdpa", 577, "sdpa", 577)]


def test_one_selector_is_of_both_runs(before: Path, after: Path) -> None:
    """The same case stands on both sides."""
    selector = "implementation=sdpa,num_tokens=577"
    assert names(pairs(before, after, [selector])) == [("sdpa", 577, "sdpa", 577)]


def test_two_selectors_are_one_of_each_run(before: Path, after: Path) -> None:
    """Two implementations are set against each other point by point, also within one run."""
    two = ["implementation=eager", "implementation=online"]
    assert names(pairs(before, after, two)) == [("eager", 197, "online", 197), ("eager", 577, "online", 577)]
    within = ["implementation=eager,num_tokens=197", "implementation=sdpa"]
    assert names(pairs(before, before, within)) == [("eager", 197, "sdpa", 197)]


def test_two_cases_of_different_points_can_be_asked_for(before: Path) -> None:
    """Where each selector names one case alone."""
    two = ["implementation=sdpa,num_tokens=197", "implementation=sdpa,num_tokens=577"]
    assert names(pairs(before, before, two)) == [("sdpa", 197, "sdpa", 577)]


@pytest.mark.parametrize(
    ("selectors", "message"),
    [
        (["implementation=manual"], "no case of the run that is ok agrees"),
        (["implementation"], "must be column=value"),
        (["colour=red"], "unknown column 'colour'"),
        (
            ["implementation=online,num_tokens=197"],
            r"before holds no profile of .*-n197-.*-online; python -m bench profile .*before "
            r"--case implementation=online,num_tokens=197 makes it",
        ),
        (["num_tokens=1"] * 3, "one --case for both runs, or one for each, got 3"),
    ],
)
def test_what_can_not_be_set_against_each_other_is_refused(
    before: Path, after: Path, selectors: list[str], message: str
) -> None:
    """In one line that says how to make what is missing."""
    with pytest.raises(WrongRequest, match=message) as refusal:
        pairs(before, after, selectors)
    assert "\n" not in str(refusal.value)


def test_runs_that_share_no_profile_are_refused(before: Path, tmp_path: Path) -> None:
    """The line says how profiles are made."""
    other = folder(tmp_path / "other", "online")
    with pytest.raises(WrongRequest, match=r"share no profile; python -m bench profile RUN --case … makes"):
        pairs(before, other, [])


def test_cases_that_meet_at_no_point_are_refused(before: Path, tmp_path: Path) -> None:
    """Several of one side, and none of them at the other's point."""
    apart = ["num_tokens=577,implementation=eager", "num_tokens=197"]
    other = folder(tmp_path / "other", *NAMES)
    with pytest.raises(WrongRequest, match=r"share no profile that num_tokens=577,.* and num_tokens=197 names"):
        pairs(before, other, apart)


@pytest.mark.parametrize("side", [0, 1])
def test_a_path_that_holds_no_run_is_refused(before: Path, tmp_path: Path, side: int) -> None:
    """On either side, also where no case is named."""
    sides = [before, before]
    sides[side] = tmp_path / "nowhere"
    with pytest.raises(WrongRequest, match="nowhere"):
        pairs(sides[0], sides[1], [])


def test_every_pair_is_printed(before: Path, after: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From the options of the command, with the copy that the second run makes named for each point."""
    parser = ArgumentParser()
    profile_diff.add_arguments(parser)
    options = parser.parse_args(["--diff", str(before), str(after)])
    profile_diff.run(Namespace(**vars(options), case=[], top=5))
    said = capsys.readouterr().out
    assert said.count("What costs most: aten::copy_ appeared: 1 call, +200 µs, +2.00 MiB.") == len(TOKENS)
