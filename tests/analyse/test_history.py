"""The history of several runs."""

import pytest

from bench.analyse.history import History, history, run_of
from bench.analyse.summary import summarise
from bench.store.saved_run import SavedRun
from tests.make.records import record
from tests.make.runs import weekly
from tests.refusals import refusal


@pytest.fixture(scope="module")
def weeks(tmp_path_factory: pytest.TempPathFactory) -> History:
    """Return the history of four weeks: sdpa becomes faster in the third."""
    folders = weekly(tmp_path_factory.mktemp("weeks") / "runs", (0.5, 0.5, 0.4, 0.4))
    return history([run_of(folder.name, SavedRun(folder).table) for folder in reversed(folders)])


def test_runs_are_ordered_by_their_beginning(weeks: History) -> None:
    """However they are given; each has its versions."""
    assert [each.name for each in weeks.runs] == ["week-1", "week-2", "week-3", "week-4"]
    assert "2.12.0" in weeks.runs[2].version
    assert weeks.baseline == "eager"


def test_a_step_is_where_a_change_is_shown(weeks: History) -> None:
    """And nowhere else; each case has its speed-up in each run, other than the baseline, whose speed-up is 1."""
    assert {case.implementation for case in weeks.entries} == {"sdpa"}
    for entries in weeks.entries.values():
        assert [entry.speedup.value for entry in entries.values()] == pytest.approx([2, 2, 2.5, 2.5], rel=0.01)
        assert [entry.step for entry in entries.values()] == ["", "", "faster", ""]


def test_runs_with_other_baselines_are_refused() -> None:
    """Speed-ups over different baselines say different things."""
    of = [run_of(name, summarise([record("eager"), record("sdpa")], name)) for name in ("eager", "sdpa")]
    assert "must have one baseline, got eager: eager, sdpa: sdpa" in refusal(history, of)


def test_a_case_that_begins_to_fail_is_lost() -> None:
    """Nobody takes the runs for alike; what was never ok, and what can't be measured, is none."""
    good, bad = (
        summarise(
            [
                *(record("eager", process=number) for number in range(3)),
                *(record("sdpa", status=status, process=number) for number in range(3)),
                record("online", status="oom", detail="memory"),
                record("mha", status="unsupported", detail="a reason"),
            ],
            "eager",
        )
        for status in ("ok", "incorrect")
    )
    of = history([run_of(name, table.assign(started_at=name)) for name, table in (("1", good), ("2", bad))])
    assert [(case.implementation, number, status) for case, number, status in of.lost] == [("sdpa", 1, "incorrect")]
    assert {case.implementation: [*runs.values()] for case, runs in of.failures.items()} == {
        "online": ["oom", "oom"],
        "sdpa": ["incorrect"],
    }
