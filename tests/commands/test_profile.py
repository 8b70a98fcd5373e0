"""The command `python -m bench profile`."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from bench.plan.case import Case
from bench.profiling import traces
from bench.profiling.traces import Traced
from bench.store import profile as store
from bench.store import table
from tests import profiles
from tests.show import example_results as made

CASES = [Case(made.point(num_tokens=tokens), name) for tokens in (197, 577) for name in ("eager", "sdpa")]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return a run of two points in which sdpa wins."""
    table.save(made.results(CASES), tmp_path)
    return tmp_path


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Case]:
    """Return the cases that were profiled: stand-ins come from nowhere, and eager can't be profiled."""
    found: list[Case] = []

    def write(cases: Sequence[Case], folder: Path) -> Iterator[Traced]:
        found.extend(cases)
        for case in cases:
            in_stages = case.implementation == "stepwise"
            profile = profiles.stepwise() if in_stages else profiles.profile(case.implementation)
            failed = case.implementation == "eager"
            path = folder / "traces" / f"{case.name}.json.gz"
            yield Traced(case, path, None, "no memory") if failed else Traced(case, path, profile)

    monkeypatch.setattr(traces, "write", write)
    return found


def test_first_baseline_and_stepwise_are_profiled(run: Path, asked: list[Case], printed: Callable[..., str]) -> None:
    """Each prints where its trace is and its tables; where one fails the others go on, and the status is 1."""
    output = printed("profile", run, status=1)
    assert [case.implementation for case in asked] == ["sdpa", "eager", "stepwise"] * 2
    assert [output.count(words) for words in ("eager: no memory", "sdpa.json.gz", "residual")] == [2, 2, 2]


def test_selectors_and_top_are_passed_on(run: Path, asked: list[Case], printed: Callable[..., str]) -> None:
    """One case with the stages of its point, and no more of its operators than were asked for."""
    output = printed("profile", run, "--case", "implementation=sdpa,num_tokens=577", "--top", "1")
    assert asked == [CASES[3], Case(CASES[3].point, "stepwise")]
    assert [words in output for words in ("2 others", "residual", "aten::add ")] == [True, True, False]


def test_what_all_profiles_show_is_drawn_and_put_on_a_page_where_one_is_asked_for(
    run: Path, asked: list[Case], printed: Callable[..., str]
) -> None:
    """Pictures lie with the run's others, and the page in its folder; both hold profiles that were there before."""
    (run / store.TRACES).mkdir()
    store.save(profiles.stepwise(), run)
    words = ["profile", run, "--case", "implementation=sdpa,num_tokens=577"]
    output = printed(*words)
    assert not (run / "profile.html").exists()
    pictures = sorted((run / "plots").iterdir())
    assert {picture.suffix for picture in pictures} == {".png"}
    output += printed(*words, "--report")
    assert "stepwise" in (run / "profile.html").read_text(encoding="utf-8")
    assert all(output.count(str(picture)) == 2 for picture in pictures)
    assert output.count(str(run / "profile.html")) == 1


def test_profiles_of_two_runs_are_set_against_each_other(run: Path, printed: Callable[..., str]) -> None:
    """Nothing is profiled: the profiles are there."""
    (run / store.TRACES).mkdir()
    for tokens in (197, 577):
        store.save(profiles.profile(num_tokens=tokens), run)
    assert "N=577" in printed("profile", "--diff", run, run, "--case", "implementation=sdpa,num_tokens=577")


def test_a_run_without_rows_is_refused(run: Path, refused: Callable[..., str]) -> None:
    """Neither a file with a header alone nor a run of failures can be profiled."""
    results = run / "results.csv"
    results.write_text(results.read_text().splitlines()[0] + "\n")
    assert "holds no rows" in refused("profile", run)
    table.save(made.results(CASES, dict.fromkeys(CASES, ("oom", "too large"))), run)
    assert "holds no case that is ok" in refused("profile", run)


def test_a_trace_folder_that_cannot_be_written_is_refused(run: Path, refused: Callable[..., str]) -> None:
    """The line names the folder, and nothing was run."""
    (run / "traces").write_text("in the way")
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
    run: Path, words: list[str], message: str, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line says what came and what could have come: a folder, a case that it has, or two runs."""
    monkeypatch.chdir(run)
    assert message in refused(*words)
