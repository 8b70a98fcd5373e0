"""Results of two machines, or of one machine with other software, are told apart."""

from pathlib import Path
from typing import Any

import pytest

from bench.plan.errors import NotComparable, WrongRequest
from bench.store import comparable
from bench.store import environment as environments
from bench.store import table as store
from bench.store.comparable import StateDifference, state_differences
from bench.store.environment import Environment
from bench.store.saved_run import SavedRun
from tests.analyse.tables import row, table
from tests.examples import case, environment


def unlike_conditions(base: Path, new: Path) -> list[str]:
    """Return how the conditions of two runs differ, each given by its folder or its results file."""
    return comparable.unlike_conditions(SavedRun(base), SavedRun(new))


def test_runs_of_one_identity_are_alike(tmp_path: Path) -> None:
    """The same machine at another hour, under another load, is the same machine."""
    here = environment()
    busy = Environment(here.identity, {"load_1min": 9.0}, {"host": "elsewhere"})
    assert unlike_conditions(run(tmp_path / "base", here), run(tmp_path / "new", busy)) == []


def test_runs_of_two_identities_differ_in_what_is_told(tmp_path: Path) -> None:
    """Each key that differs is told with both values, whether the folder or its results.csv is given."""
    base = run(tmp_path / "base", environment(torch="2.13.0", cores=2))
    new = run(tmp_path / "new", environment(torch="2.14.0", cores=8))
    for name in ("", store.RESULTS):
        assert unlike_conditions(base / name, new / name) == ["cores: 2 against 8", "torch: '2.13.0' against '2.14.0'"]


def test_a_fact_that_one_run_did_not_record_is_said_to_be_missing(tmp_path: Path) -> None:
    """A run from before a fact was part of the identity doesn't say None."""
    base, new = run(tmp_path / "base", environment()), run(tmp_path / "new", environment(driver=None))
    assert unlike_conditions(base, new) == ["driver: not recorded against None"]


@pytest.mark.parametrize("alone", ["both", "one"])
def test_files_without_an_environment_are_compared_by_the_env_id_of_their_rows(tmp_path: Path, alone: str) -> None:
    """A results file that was taken out of its run still carries the identity's short name."""
    base = run(tmp_path / "base", None if alone == "both" else environment(), env_id="aaaa")
    same, other = run(tmp_path / "same", None, env_id="aaaa"), run(tmp_path / "other", None, env_id="bbbb")
    assert unlike_conditions(base, same) == []
    assert unlike_conditions(base, other) == ["env_id aaaa against bbbb"]


def test_files_in_one_folder_are_told_apart_by_their_rows(tmp_path: Path) -> None:
    """One environment.json can't be that of two machines' files."""
    folder = run(tmp_path / "run", environment(), env_id="aaaa")
    new = folder / "new.csv"
    table(row(case("sdpa"), [0.0], env_id="bbbb")).to_csv(new, index=False)
    assert unlike_conditions(folder / store.RESULTS, new) == ["env_id aaaa against bbbb"]


def test_a_row_that_was_measured_elsewhere_is_found_among_others(tmp_path: Path) -> None:
    """A file put together from two machines is alike itself, and not alike either machine's."""
    mixed, pure = tmp_path / "mixed.csv", tmp_path / "pure.csv"
    rows = {name: row(case("sdpa", threads=threads), [0.0], env_id=name) for threads, name in enumerate("ab", start=1)}
    table(*rows.values()).to_csv(mixed, index=False)
    table(rows["a"], {**rows["b"], "env_id": "a"}).to_csv(pure, index=False)
    assert unlike_conditions(mixed, mixed) == []
    assert unlike_conditions(mixed, pure) == ["env_id b against a"]


def test_what_holds_no_results_is_a_wrong_request(tmp_path: Path) -> None:
    """A path that doesn't exist is not a question of machines."""
    with pytest.raises(WrongRequest, match="does not exist") as refused:
        unlike_conditions(run(tmp_path / "base", environment()), tmp_path / "nowhere")
    assert not isinstance(refused.value, NotComparable)


def run(folder: Path, where: Environment | None, **changes: Any) -> Path:
    """Return a run folder of one row, with its environment where one is given."""
    folder.mkdir()
    if where:
        environments.save(where, folder)
    store.save(table(row(case("sdpa"), [0.0, 0.1], **changes)), folder)
    return folder


QUIET: dict[str, Any] = {
    "load_1min": 0.4,
    "available_bytes": 8 << 30,
    "preflight": {"others_cores": 0.02, "switches": 3, "spread": 0.04},
    "clock_hz": 1.98e9,
    "throttle": [],
}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"load_1min": 3.9}, ("load_1min", 0.4, 3.9)),
        ({"preflight": {**QUIET["preflight"], "others_cores": 1.0}}, ("preflight.others_cores", 0.02, 1.0)),
        ({"preflight": {**QUIET["preflight"], "spread": 0.31}}, ("preflight.spread", 0.04, 0.31)),
        ({"clock_hz": 1.41e9}, ("clock_hz", 1.98e9, 1.41e9)),
        ({"throttle": ["power"]}, ("throttle", [], ["power"])),
    ],
)
def test_a_notable_difference_is_told(change: dict[str, Any], told: tuple[str, Any, Any]) -> None:
    """Load, neighbours, an unsteady clock, another clock: each with both values."""
    assert state_differences(at(), at(**change)) == [StateDifference(*told)]


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"load_1min": 1.1},
        {"available_bytes": 1 << 30},
        {"preflight": {"others_cores": 0.2, "switches": 900, "spread": 0.09}},
        {"clock_hz": 1.95e9},
        {"selfcheck": {"detectable": {"1": 0.01}}},
        {"load_1min": None, "something_new": 7},
    ],
)
def test_what_differs_between_any_two_runs_is_not_told(change: dict[str, Any]) -> None:
    """Small differences, memory that is free, switches, and facts that only one side recorded."""
    changed = {name: value for name, value in {**QUIET, **change}.items() if value is not None}
    assert state_differences(at(), Environment({}, changed, {})) == []


def test_differences_stand_in_the_order_of_base() -> None:
    """Several are told one by one; an environment that says nothing warns of nothing."""
    changed = at(load_1min=9.0, clock_hz=1e9)
    assert [each.name for each in state_differences(at(), changed)] == ["load_1min", "clock_hz"]
    assert state_differences(Environment({}, {}, {}), at()) == []


def at(**changes: Any) -> Environment:
    """Return an environment in a state, some of it changed."""
    return Environment({}, {**QUIET, **changes}, {})
