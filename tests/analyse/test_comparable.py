"""Results of two machines, or of one machine with other software, can't be compared unasked."""

from pathlib import Path
from typing import Any

import pytest

from bench.analyse import comparable
from bench.analyse.analysed_run import AnalysedRun
from bench.analyse.comparable import is_steady, raw_change
from bench.analyse.comparison import compared
from bench.store import environment as environments
from bench.store import table as store
from bench.store.environment import Environment
from tests.make.records import case, environment
from tests.make.rows import row, table


def unlike_conditions(base: Path, new: Path) -> list[str]:
    """Return how the conditions of two runs differ, each given by its folder or its results file."""
    return comparable.unlike_conditions(AnalysedRun(base), AnalysedRun(new))


def run(folder: Path, where: Environment | None, **changes: Any) -> Path:
    """Return a run folder of one row, with its environment where one is given."""
    folder.mkdir()
    if where:
        environments.save(where, folder)
    store.save(table(row(case("sdpa"), [0.0, 0.1], **changes)), folder)
    return folder


# conditions


def test_runs_differ_in_each_fact_of_their_identities(tmp_path: Path) -> None:
    """With both values, whether the folder or its results.csv is given; another load is the same machine."""
    base = run(tmp_path / "base", environment(torch="2.13.0", cores=2))
    new = run(tmp_path / "new", environment(torch="2.14.0", cores=8))
    for name in ("", store.RESULTS):
        assert unlike_conditions(base / name, new / name) == ["cores: 2 against 8", "torch: '2.13.0' against '2.14.0'"]
    later = run(tmp_path / "later", environment(torch="2.13.0", cores=2, driver=None))
    assert unlike_conditions(base, later) == ["driver: not recorded against None"]
    identity = environment(torch="2.13.0", cores=2).identity
    busy = run(tmp_path / "busy", Environment(identity, {"load_1min": 9.0}, {"host": "elsewhere"}))
    assert unlike_conditions(base, busy) == []


@pytest.mark.parametrize("has_environment", [False, True])
def test_files_without_an_environment_are_compared_by_the_env_id_of_their_rows(
    tmp_path: Path, has_environment: bool
) -> None:
    """A results file that was taken out of its run still carries the identity's short name."""
    base = run(tmp_path / "base", environment() if has_environment else None, env_id="aaaa")
    same, other = (run(tmp_path / env_id, None, env_id=env_id) for env_id in ("aaaa", "bbbb"))
    assert (unlike_conditions(base, same), unlike_conditions(base, other)) == ([], ["env_id aaaa against bbbb"])


# the speed of the machine


@pytest.mark.parametrize(
    ("factor", "changed", "steady"),
    [(1.5, "mha", False), (0.6, "mha", False), (1.1, "mha", True), (1.0, "eager", True)],
)
def test_where_all_took_longer_the_machine_may_have_changed(factor: float, changed: str, *, steady: bool) -> None:
    """The median row counts if it changed by more than everyday drift; a single row doesn't."""
    times = {"eager": 1.0, "sdpa": 0.5, "mha": 0.8}
    new = {name: factor * time_s * (2.0 if name == changed else 1.0) for name, time_s in times.items()}
    tables = (table(*(row(case(name), [0.0, 0.001], latency_s=of[name]) for name in of)) for of in (times, new))
    change = raw_change(compared(*tables))
    assert change == pytest.approx(factor)
    assert raw_change(compared(*(table(row(case("sdpa"), [0.0], latency_s=None)) for _ in range(2)))) is None
    assert is_steady(factor) is steady
