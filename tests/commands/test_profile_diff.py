"""`python -m bench profile --diff`: which profiles are set against each other."""

import dataclasses
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from bench.analyse.summary import summarise
from bench.commands import profile_diff
from bench.plan.case import Case
from bench.store import profile as store
from bench.store import table
from bench.store.profile import TRACES, Operator, Profile
from bench.store.saved_run import SavedRun
from tests.examples import point, record
from tests.profiles import MIB, profile
from tests.refusals import refusal

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


@pytest.mark.parametrize(
    ("second", "selectors", "expected"),
    [
        ("after", [], [("sdpa", 197, "sdpa", 197), ("sdpa", 577, "sdpa", 577)]),
        ("after", ["implementation=sdpa,num_tokens=577"], [("sdpa", 577, "sdpa", 577)]),
        (
            "after",
            ["implementation=eager", "implementation=online"],
            [("eager", 197, "online", 197), ("eager", 577, "online", 577)],
        ),
        (
            "before",
            ["implementation=eager,num_tokens=197", "implementation=sdpa"],
            [("eager", 197, "sdpa", 197)],
        ),
        (
            "before",
            ["implementation=sdpa,num_tokens=197", "implementation=sdpa,num_tokens=577"],
            [("sdpa", 197, "sdpa", 577)],
        ),
    ],
    ids=["all that both have", "one case of both", "point by point", "within one run", "different points"],
)
def test_cases_are_set_against_each_other(
    before: Path, after: Path, second: str, selectors: list[str], expected: list[tuple[str, int, str, int]]
) -> None:
    """Without a selector all profiles of both runs are taken; one is of both runs, two are one of each."""
    found = pairs(before, after if second == "after" else before, selectors)
    sides = [(a.case.implementation, a.case.point, b.case.implementation, b.case.point) for a, b in found]
    assert [(a, at.num_tokens, b, other.num_tokens) for a, at, b, other in sides] == expected


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
    line = refusal(pairs, before, after, selectors)
    assert re.search(message, line)
    assert "\n" not in line


@pytest.mark.parametrize("side", [0, 1])
def test_a_path_that_holds_no_run_is_refused(before: Path, tmp_path: Path, side: int) -> None:
    """On either side, also where no case is named."""
    assert "nowhere" in refusal(pairs, *[tmp_path / "nowhere", before, tmp_path / "nowhere"][side : side + 2], [])


def test_runs_that_share_no_profile_are_refused(before: Path, tmp_path: Path) -> None:
    """The line says how profiles are made, or which selectors name none at a shared point."""
    other = folder(tmp_path / "other", "online")
    assert "share no profile; python -m bench profile RUN --case … makes" in refusal(pairs, before, other, [])
    apart = ["num_tokens=577,implementation=eager", "num_tokens=197"]
    line = refusal(pairs, before, folder(tmp_path / "all", *NAMES), apart)
    assert re.search("share no profile that num_tokens=577,.* and num_tokens=197 names", line)


def test_every_pair_is_printed(before: Path, after: Path, printed: Callable[..., str]) -> None:
    """The copy that the second run makes is named for each point."""
    output = printed("profile", "--diff", before, after)
    assert output.count("What costs most: aten::copy_ appeared: 1 call, +200 µs, +2.00 MiB.") == len(TOKENS)
