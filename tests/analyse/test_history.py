"""The history of runs: their order, their speed-ups, and the steps between them."""

import pytest

from bench.analyse.history import History, history, run_of
from bench.analyse.summary import summarise
from bench.store.saved_run import SavedRun
from tests.examples import record
from tests.refusals import refusal
from tests.show.pages.saved import weekly


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> History:
    """Return the history of four weeks: sdpa becomes faster in the third."""
    folders = weekly(tmp_path_factory.mktemp("weeks") / "runs", (0.5, 0.5, 0.4, 0.4))
    return history([run_of(folder.name, SavedRun(folder).table) for folder in reversed(folders)])


def test_runs_are_ordered_by_their_beginning(found: History) -> None:
    """However they are given; each has its versions."""
    assert [run.name for run in found.runs] == ["week-1", "week-2", "week-3", "week-4"]
    assert found.runs[2].version.startswith("torch 2.12.0, commit ") or "2.12.0" in found.runs[2].version
    assert found.baseline == "eager"


def test_each_case_has_its_speedup_in_each_run(found: History) -> None:
    """The baseline, whose speed-up is 1 by construction, has none."""
    assert {case.implementation for case in found.entries} == {"sdpa"}
    for entries in found.entries.values():
        assert [entry.speedup.value for entry in entries.values()] == pytest.approx([2, 2, 2.5, 2.5], rel=0.01)


def test_a_step_is_where_a_change_is_shown(found: History) -> None:
    """Nowhere else."""
    for entries in found.entries.values():
        assert [entry.step for entry in entries.values()] == ["", "", "faster", ""]


def test_runs_with_other_baselines_are_refused() -> None:
    """Their speed-ups say different things."""
    runs = [run_of(name, summarise([record("eager"), record("sdpa")], name)) for name in ("eager", "sdpa")]
    assert "must have one baseline, got eager: eager, sdpa: sdpa" in refusal(history, runs)
