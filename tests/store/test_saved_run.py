"""A saved run: one reader for a run folder and for a results file, alone or in its folder; what was seen at models."""

import json
from pathlib import Path

import pandas as pd
import pytest

import bench
from bench.analyse.summary import summarise
from bench.plan.case import CONTROL
from bench.plan.errors import CannotWrite, WrongRequest
from bench.plan.sweep import Effort, Sweep
from bench.store import environment as environments
from bench.store import journal, plan, profile, saved_run, table
from bench.store.profile import TRACES
from bench.store.saved_run import SavedRun
from tests import profiles
from tests.advice import POINT, looks
from tests.examples import environment, point, record

SWEEP = Sweep("mine", (point(),), ("eager", "sdpa"), "sdpa", Effort(bound=0.07))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a run folder with everything in it; its speed-ups refer to sdpa."""
    run = tmp_path / "run"
    (run / TRACES).mkdir(parents=True)
    records = [record("eager"), record("sdpa")]
    environments.save(environment(), run)
    plan.save(SWEEP, run)
    journal.append(run, records)
    table.save(summarise(records, "sdpa"), run)
    profile.save(profiles.profile(), run)
    return run


@pytest.mark.parametrize("name", ["", table.RESULTS])
def test_a_folder_and_its_results_are_one_run(folder: Path, name: str) -> None:
    """Whichever of both is given, everything of the run is there, the library's `bench.load` too."""
    run = SavedRun(folder / name)
    assert run.folder == folder
    assert run.table["implementation"].tolist() == ["eager", "sdpa"]
    assert run.baseline == "sdpa"
    assert run.environment == environment()
    assert run.effort == SWEEP.effort
    assert [each.case.implementation for each in run.records] == ["eager", "sdpa"]
    assert run.notices == []
    assert run.profiles == [profiles.profile()]
    assert (run.plots.parent, run.traces) == (folder, folder / TRACES)
    assert run.is_folder is not bool(name)
    pd.testing.assert_frame_equal(bench.load(str(folder / name)), run.table)


def test_the_rows_of_the_control_stand_aside(folder: Path) -> None:
    """The table holds implementations alone, the library's too; the whole of it has the control."""
    table.save(summarise([record("eager"), record("sdpa"), record(CONTROL)], "sdpa"), folder)
    run = SavedRun(folder)
    assert run.whole["implementation"].tolist() == ["eager", "sdpa", CONTROL]
    assert run.table["implementation"].tolist() == ["eager", "sdpa"]
    assert bench.load(folder)["implementation"].tolist() == ["eager", "sdpa"]


def test_a_file_of_another_name_is_alone(folder: Path) -> None:
    """A copy in a run folder is another table, of which only its rows are known."""
    copy = folder / "copy.csv"
    copy.write_bytes((folder / table.RESULTS).read_bytes())
    run = SavedRun(copy)
    assert (run.is_alone, run.environment, run.effort, run.records, run.profiles) == (True, None, None, [], [])
    assert run.baseline == "sdpa"
    assert run.plots.parent == folder


def test_what_is_not_there_is_empty(tmp_path: Path) -> None:
    """A folder that holds a table alone."""
    table.save(summarise([record("eager")], "eager"), tmp_path)
    run = SavedRun(tmp_path)
    assert (run.environment, run.effort, run.records, run.profiles) == (None, None, [], [])
    assert run.baseline == "eager"


def test_each_part_is_read_once_and_only_if_it_is_asked_for(folder: Path) -> None:
    """A broken part disturbs nobody who doesn't need it, and what was read stays."""
    run = SavedRun(folder)
    before = run.table
    for name in (table.RESULTS, environments.ENVIRONMENT, journal.JOURNAL):
        (folder / name).write_text("rubbish")
    assert run.table is before
    assert SavedRun(folder).effort == SWEEP.effort
    with pytest.raises(WrongRequest):
        _ = SavedRun(folder).environment


def test_notices_name_the_lines_that_do_not_count(folder: Path) -> None:
    """Each with the file and the number."""
    path = folder / journal.JOURNAL
    path.write_bytes(b"rubbish\n" + path.read_bytes())
    (notice,) = SavedRun(folder).notices
    assert notice.startswith(f"{path}: line 1 ")


def test_a_path_that_is_not_there_is_a_wrong_request(tmp_path: Path) -> None:
    """When the table is asked for, in one line that names the path."""
    run = SavedRun(tmp_path / "nowhere")
    assert str(run) == str(tmp_path / "nowhere")
    with pytest.raises(WrongRequest, match="nowhere"):
        _ = run.table


def test_it_holds_what_each_process_saw(tmp_path: Path) -> None:
    """By point, in a folder that may be new."""
    saved_run.save_looks({POINT: looks()}, tmp_path / "run")
    (entry,) = json.loads((tmp_path / "run" / saved_run.LOOK).read_text())["looks"]
    assert entry["point"]["layer"] == POINT.layer
    assert len(entry["processes"]) == 3


def test_a_folder_that_can_not_be_written_is_said(tmp_path: Path) -> None:
    """In one line."""
    (tmp_path / "run").write_text("")
    with pytest.raises(CannotWrite, match="can't be written"):
        saved_run.save_looks({POINT: looks()}, tmp_path / "run")
