"""The command `python -m bench profile`."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from bench.cli import main
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


def test_winner_baseline_and_stepwise_are_profiled(
    run: Path, asked: list[Case], capsys: pytest.CaptureFixture[str]
) -> None:
    """Each prints where its trace is and its tables; where one fails the others go on, and the status is 1."""
    assert main(["profile", str(run)]) == 1
    assert [case.implementation for case in asked] == ["sdpa", "eager", "stepwise"] * 2
    said = capsys.readouterr().out
    assert said.count("eager: no memory") == 2
    assert said.count("sdpa.json.gz") == 2
    assert said.count("residual") == 2


def test_selectors_and_top_are_passed_on(run: Path, asked: list[Case], capsys: pytest.CaptureFixture[str]) -> None:
    """One case with the stages of its point, and no more of its operators than were asked for."""
    selector = "implementation=sdpa,num_tokens=577"
    assert main(["profile", str(run), "--case", selector, "--top", "1"]) == 0
    assert asked == [CASES[3], Case(CASES[3].point, "stepwise")]
    said = capsys.readouterr().out
    assert "2 others" in said
    assert "residual" in said
    assert "aten::add " not in said


def test_what_all_profiles_show_is_drawn_and_put_on_a_page_where_one_is_asked_for(
    run: Path, asked: list[Case], capsys: pytest.CaptureFixture[str]
) -> None:
    """Pictures lie with the run's others, and the page in its folder; both hold profiles that were there before."""
    (run / store.TRACES).mkdir()
    store.save(profiles.stepwise(), run)
    words = ["profile", str(run), "--case", "implementation=sdpa,num_tokens=577"]
    assert main(words) == 0
    assert not (run / "profile.html").exists()
    pictures = sorted((run / "plots").iterdir())
    assert {picture.suffix for picture in pictures} == {".png", ".svg"}
    assert main([*words, "--report"]) == 0
    assert "stepwise" in (run / "profile.html").read_text(encoding="utf-8")
    said = capsys.readouterr().out
    assert all(said.count(str(picture)) == 2 for picture in pictures)
    assert said.count(str(run / "profile.html")) == 1


def test_profiles_of_two_runs_are_set_against_each_other(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is profiled: the profiles are there."""
    (run / store.TRACES).mkdir()
    for tokens in (197, 577):
        store.save(profiles.profile(num_tokens=tokens), run)
    assert main(["profile", "--diff", str(run), str(run), "--case", "implementation=sdpa,num_tokens=577"]) == 0
    assert "N=577" in capsys.readouterr().out


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Return the one line with which a command ends that can't be carried out."""
    assert main(words) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    return line


def test_a_case_that_the_run_does_not_have_is_refused(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The line says what came and what could have come."""
    said = refused(["profile", str(run), "--case", "num_tokens=6"], capsys)
    assert said.endswith("agrees with num_tokens=6; the others have num_tokens = 197, 577")


def test_a_run_without_rows_is_refused(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither a file with a header alone nor a run of failures can be profiled."""
    results = run / "results.csv"
    results.write_text(results.read_text().splitlines()[0] + "\n")
    assert "holds no rows" in refused(["profile", str(run)], capsys)
    table.save(made.results(CASES, dict.fromkeys(CASES, ("oom", "too large"))), run)
    assert "holds no case that is ok" in refused(["profile", str(run)], capsys)


def test_a_trace_folder_that_cannot_be_written_is_refused(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The line names the folder, and nothing was run."""
    (run / "traces").write_text("in the way")
    assert "traces can't be written" in refused(["profile", str(run)], capsys)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "profile takes a run folder, or --diff RUN_A RUN_B, got neither"),
        (["there", "--diff", "a", "b"], "--diff takes its two runs and nothing to profile, got there too"),
        (["--report", "--diff", "a", "b"], "got --report too"),
        (["--diff", "/no/a", "/no/b"], "/no/a does not exist"),
    ],
)
def test_what_to_profile_must_be_plain(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A run, or two to be set against each other."""
    assert message in refused(["profile", *words], capsys)


def test_a_results_file_alone_is_refused(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Traces need the folder to go into."""
    assert "needs the run folder" in refused(["profile", str(run / "results.csv")], capsys)


def test_no_operators_at_all_cannot_be_asked_for(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A table has at least one line."""
    assert "--top 0 must be at least 1" in refused(["profile", str(run), "--top", "0"], capsys)
