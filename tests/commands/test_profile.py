"""The command `python -m bench profile`: what is profiled, and which profiles of two runs are compared."""

import dataclasses
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from bench.commands.profile import pairs
from bench.plan.case import Case
from bench.profiling import traces
from bench.profiling.traces import Traced
from bench.store import profile as store
from bench.store import table
from bench.store.profile import TRACES, Operator
from bench.store.saved_run import SavedRun
from tests.profiles import MIB, profile, stepwise
from tests.refusals import refusal
from tests.show.example_results import point, results

TOKENS = (197, 577)
CASES = [Case(point(num_tokens=tokens), name) for tokens in TOKENS for name in ("eager", "sdpa", "online")]
COPY = Operator("aten::copy_", 1, 0.2e-3, 2 * MIB)

Printed = Callable[..., str]


def folder(path: Path, *profiled: str, extra: tuple[Operator, ...] = ()) -> Path:
    """Write a run of three implementations at two points, some of them profiled, and return its folder."""
    (path / TRACES).mkdir(parents=True)
    table.save(results(CASES), path)
    for case in CASES:
        if case.implementation in profiled:
            of = profile(case.implementation, num_tokens=case.point.num_tokens)
            store.save(dataclasses.replace(of, operators=(*of.operators, *extra)), path)
    return path


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return a run of two points in which sdpa wins; nothing is profiled."""
    return folder(tmp_path)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Case]:
    """Return the cases that were profiled: stand-ins come from nowhere, and eager can't be profiled."""
    asked: list[Case] = []

    def write(cases: Sequence[Case], folder: Path) -> Iterator[Traced]:
        asked.extend(cases)
        for case in cases:
            of = stepwise() if case.implementation == "stepwise" else profile(case.implementation)
            failed = case.implementation == "eager"
            path = folder / "traces" / f"{case.name}.json.gz"
            yield Traced(case, path, None, "no memory") if failed else Traced(case, path, of)

    monkeypatch.setattr(traces, "write", write)
    return asked


def test_first_baseline_and_stepwise_are_profiled(run: Path, asked: list[Case], printed: Printed) -> None:
    """Each prints where its trace is and its tables; where one fails the others go on, and the status is 1."""
    output = printed("profile", run, status=1)
    assert [case.implementation for case in asked] == ["sdpa", "eager", "stepwise"] * 2
    assert [output.count(words) for words in ("eager: no memory", "sdpa.json.gz", "residual")] == [2, 2, 2]


def test_selectors_and_top_are_passed_on(run: Path, asked: list[Case], printed: Printed) -> None:
    """One case with the stages of its point, and no more of its operators than were asked for."""
    output = printed("profile", run, "--case", "implementation=sdpa,num_tokens=577", "--top", "1")
    assert asked == [CASES[4], Case(CASES[4].point, "stepwise")]
    assert [words in output for words in ("2 others", "residual", "aten::add ")] == [True, True, False]


def test_pictures_of_all_profiles_are_drawn_and_a_page_where_it_is_asked_for(
    run: Path, asked: list[Case], printed: Printed
) -> None:
    """Pictures lie with the run's others, and the page in its folder; both hold profiles that were there before."""
    store.save(stepwise(), run)
    words = ["profile", run, "--case", "implementation=sdpa,num_tokens=577"]
    output = printed(*words)
    assert not (run / "profile.html").exists()
    pictures = sorted((run / "plots").iterdir())
    assert {picture.suffix for picture in pictures} == {".png"}
    output += printed(*words, "--report")
    assert "stepwise" in (run / "profile.html").read_text(encoding="utf-8")
    assert all(output.count(str(picture)) == 2 for picture in pictures)
    assert output.count(str(run / "profile.html")) == 1


def test_a_run_without_a_case_that_is_ok_is_refused(run: Path, refused: Printed) -> None:
    """A run of failures can't be profiled."""
    table.save(results(CASES, dict.fromkeys(CASES, ("oom", "too large"))), run)
    assert "holds no case that is ok" in refused("profile", run)


def test_a_trace_folder_that_cannot_be_written_is_refused(run: Path, refused: Printed) -> None:
    """The line names the folder, and nothing was run."""
    (run / TRACES).rmdir()
    (run / TRACES).write_text("in the way")
    assert "traces can't be written" in refused("profile", run)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["profile"], "profile takes a run folder, or --diff RUN_A RUN_B, got neither"),
        (["profile", "there", "--diff", "a", "b"], "--diff takes its two runs and nothing to profile, got there too"),
        (["profile", "--report", "--diff", "a", "b"], "got --report too"),
        (["profile", "--diff", "/no/a", "/no/b"], "/no/a does not exist"),
        (["profile", ".", "--case", "num_tokens=6"], "num_tokens=6; the others have num_tokens = 197, 577"),
        (["profile", "results.csv"], "needs the run folder"),
        (["profile", ".", "--top", "0"], "--top 0 must be at least 1"),
    ],
)
def test_what_cannot_be_profiled_is_refused(
    run: Path, words: list[str], message: str, refused: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line says what came and what could have come: a folder, a case that it has, or two runs."""
    monkeypatch.chdir(run)
    assert message in refused(*words)


# the profiles of two runs


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run with profiles of two implementations."""
    return folder(tmp_path_factory.mktemp("runs") / "before", "eager", "sdpa")


@pytest.fixture(scope="module")
def after(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run with profiles of two implementations, which copy what they didn't before."""
    return folder(tmp_path_factory.mktemp("runs") / "after", "sdpa", "online", extra=(COPY,))


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
        ("before", ["implementation=eager,num_tokens=197", "implementation=sdpa"], [("eager", 197, "sdpa", 197)]),
        (
            "before",
            ["implementation=sdpa,num_tokens=197", "implementation=sdpa,num_tokens=577"],
            [("sdpa", 197, "sdpa", 577)],
        ),
    ],
    ids=["all that both have", "one case of both", "point by point", "within one run", "different points"],
)
def test_cases_are_compared_in_pairs(
    before: Path, after: Path, second: str, selectors: list[str], expected: list[tuple[str, int, str, int]]
) -> None:
    """Without a selector all profiles of both runs are taken; one is of both runs, two are one of each."""
    both = pairs(SavedRun(before), SavedRun(after if second == "after" else before), selectors)
    sides = [(a.case.implementation, a.case.point, b.case.implementation, b.case.point) for a, b in both]
    assert [(a, at.num_tokens, b, other.num_tokens) for a, at, b, other in sides] == expected


@pytest.mark.parametrize(
    ("selectors", "message"),
    [
        (["implementation=manual"], "no case of the run that is ok agrees"),
        (["implementation"], "must be column=value"),
        (["colour=red"], "unknown column 'colour'"),
        (
            ["implementation=online,num_tokens=197"],
            r"before holds no profile of .*-n197-.*-online; .*python -m bench profile .*before "
            r"--case implementation=online,num_tokens=197 makes it",
        ),
        (["num_tokens=1"] * 3, "one --case for both runs, or one for each, got 3"),
    ],
)
def test_selectors_that_name_no_profile_are_refused(
    before: Path, after: Path, selectors: list[str], message: str
) -> None:
    """In one line that says how to make what is missing."""
    line = refusal(pairs, SavedRun(before), SavedRun(after), selectors)
    assert re.search(message, line)
    assert "\n" not in line


def test_runs_that_share_no_profile_are_refused(before: Path, tmp_path: Path) -> None:
    """The line says how to make profiles, or which selectors name none at a shared point; or a path is no run."""
    run, nowhere = SavedRun(before), SavedRun(tmp_path / "nowhere")
    other = SavedRun(folder(tmp_path / "other", "online"))
    assert "-m bench profile RUN --case … makes" in refusal(pairs, run, other, [])
    selectors = ["num_tokens=577,implementation=eager", "num_tokens=197"]
    line = refusal(pairs, run, SavedRun(folder(tmp_path / "all", "eager", "sdpa", "online")), selectors)
    assert re.search("share no profile that num_tokens=577,.* and num_tokens=197 names", line)
    assert all("nowhere" in refusal(pairs, *sides, []) for sides in ((run, nowhere), (nowhere, run)))


def test_every_pair_is_printed(before: Path, after: Path, printed: Printed) -> None:
    """The copy that the second run makes is named for each point."""
    output = printed("profile", "--diff", before, after)
    assert output.count("What costs most: aten::copy_ appeared: 1 call, +200 µs, +2.00 MiB.") == len(TOKENS)
