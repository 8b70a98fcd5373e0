"""A saved run: one reader for a run folder and for a results file, alone or in its folder."""

from pathlib import Path

import pandas as pd
import pytest

import bench
from bench.analyse.analysed_run import AnalysedRun
from bench.plan.case import CONTROL
from bench.plan.errors import WrongRequest
from bench.plan.sweep import Effort, Sweep
from bench.store import environment as environments
from bench.store import journal, plan, profile, table
from bench.store.profile import TRACES
from tests.make import profiles
from tests.make.points import vit_s
from tests.make.records import environment, record
from tests.make.results import summarise

SWEEP = Sweep("mine", (vit_s(),), ("eager", "sdpa"), "sdpa", Effort(bound=0.07))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a run folder with everything in it; its speed-ups refer to sdpa."""
    run = tmp_path / "run"
    (run / TRACES).mkdir(parents=True)
    records = [record("eager"), record("sdpa")]
    environments.save(environment(), run)
    plan.keep(SWEEP, journal.scan(run))
    journal.scan(run).append(records)
    table.save(summarise(records, "sdpa"), run)
    profile.save(profiles.profile(), run)
    return run


@pytest.mark.parametrize("name", ["", table.RESULTS])
def test_a_folder_and_its_results_are_one_run(folder: Path, name: str) -> None:
    """Whichever of both is given, everything of the run is there, the library's `bench.load` too."""
    run = AnalysedRun(folder / name)
    assert run.folder == folder
    assert run.table["implementation"].tolist() == ["eager", "sdpa"]
    assert run.baseline == "sdpa"
    assert run.environment == environment()
    assert (run.planned, run.effort) == (SWEEP, SWEEP.effort)
    assert [each.case.implementation for each in run.records] == ["eager", "sdpa"]
    assert run.notices == []
    assert run.profiles == [profiles.profile()]
    assert (run.plots.parent, run.traces) == (folder, folder / TRACES)
    assert run.is_folder is not bool(name)
    pd.testing.assert_frame_equal(bench.load(str(folder / name))[[*table.FILE]], run.table[[*table.FILE]])


def test_the_table_has_no_rows_of_the_control(folder: Path) -> None:
    """The table holds implementations alone, the library's too; the whole of it has the control."""
    table.save(summarise([record("eager"), record("sdpa"), record(CONTROL)], "sdpa"), folder)
    journal.scan(folder).append([record(CONTROL)])
    run = AnalysedRun(folder)
    assert run.whole["implementation"].tolist() == ["eager", "sdpa", CONTROL]
    assert table.of_rows(run.summary.all_rows()).equals(run.whole)
    for without in (run.table, bench.load(folder)):
        assert without["implementation"].tolist() == ["eager", "sdpa"]


def test_a_file_of_another_name_is_alone(folder: Path, tmp_path: Path) -> None:
    """Of a copy in a run folder only its rows are known, as of a folder that holds a table alone."""
    copy, bare = folder / "copy.csv", tmp_path / "bare"
    copy.write_bytes((folder / table.RESULTS).read_bytes())
    bare.mkdir()
    (bare / table.RESULTS).write_bytes(copy.read_bytes())
    for run in (AnalysedRun(copy), AnalysedRun(bare)):
        assert (run.environment, run.effort, run.records, run.profiles) == (None, None, [], [])
        assert run.baseline == "sdpa"
    assert AnalysedRun(copy).is_alone
    assert AnalysedRun(copy).plots.parent == folder


def test_faults_are_one_line(folder: Path, tmp_path: Path) -> None:
    """A line of the journal that doesn't count has the file and its number; a path without results is named."""
    path = folder / journal.JOURNAL
    path.write_bytes(b"rubbish\n" + path.read_bytes())
    (notice,) = AnalysedRun(folder).notices
    assert notice.startswith(f"{path}: line 1 ")
    with pytest.raises(WrongRequest, match="nowhere"):
        _ = AnalysedRun(tmp_path / "nowhere").table
