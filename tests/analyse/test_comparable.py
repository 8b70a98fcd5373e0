"""Results of two machines, or of one machine with other software, can't be compared unasked."""

from pathlib import Path
from typing import Any

import pytest

from bench.analyse import comparable
from bench.analyse.change import Change
from bench.analyse.comparable import is_steady, raw_change, state_differences
from bench.store import environment as environments
from bench.store import table as store
from bench.store.environment import Environment
from bench.store.saved_run import SavedRun
from tests.make.comparisons import compare
from tests.make.records import case, environment
from tests.make.rows import at, baseline, failed, row, table


def unlike_conditions(base: Path, new: Path) -> list[str]:
    """Return how the conditions of two runs differ, each given by its folder or its results file."""
    return comparable.unlike_conditions(SavedRun(base), SavedRun(new))


def run(folder: Path, where: Environment | None, **changes: Any) -> Path:
    """Return a run folder of one row, with its environment where one is given."""
    folder.mkdir()
    if where:
        environments.save(where, folder)
    store.save(table(row(case("sdpa"), [0.0, 0.1], **changes)), folder)
    return folder


# conditions


def test_runs_of_one_identity_are_alike(tmp_path: Path) -> None:
    """The same machine at another hour, under another load, is the same machine."""
    here = environment()
    busy = Environment(here.identity, {"load_1min": 9.0}, {"host": "elsewhere"})
    assert unlike_conditions(run(tmp_path / "base", here), run(tmp_path / "new", busy)) == []


def test_runs_of_two_identities_differ_in_each_fact(tmp_path: Path) -> None:
    """With both values, whether the folder or its results.csv is given; a fact may not have been recorded."""
    base = run(tmp_path / "base", environment(torch="2.13.0", cores=2))
    new = run(tmp_path / "new", environment(torch="2.14.0", cores=8))
    for name in ("", store.RESULTS):
        assert unlike_conditions(base / name, new / name) == ["cores: 2 against 8", "torch: '2.13.0' against '2.14.0'"]
    later = run(tmp_path / "later", environment(torch="2.13.0", cores=2, driver=None))
    assert unlike_conditions(base, later) == ["driver: not recorded against None"]


@pytest.mark.parametrize("has_environment", [False, True])
def test_files_without_an_environment_are_compared_by_the_env_id_of_their_rows(
    tmp_path: Path, has_environment: bool
) -> None:
    """A results file that was taken out of its run still carries the identity's short name."""
    base = run(tmp_path / "base", environment() if has_environment else None, env_id="aaaa")
    same, other = (run(tmp_path / env_id, None, env_id=env_id) for env_id in ("aaaa", "bbbb"))
    assert (unlike_conditions(base, same), unlike_conditions(base, other)) == ([], ["env_id aaaa against bbbb"])


def test_files_in_one_folder_are_told_apart_by_their_rows(tmp_path: Path) -> None:
    """One environment.json can't be that of two machines' files; a file of both is alike itself alone."""
    folder = run(tmp_path / "run", environment(), env_id="a")
    rows = {name: row(case("sdpa", threads=threads), [0.0], env_id=name) for threads, name in enumerate("ab", start=1)}
    files = {
        "mixed": rows.values(),
        "pure": (rows["a"], {**rows["b"], "env_id": "a"}),
        "new": [{**rows["a"], "env_id": "b"}],
    }
    for name, of in files.items():
        table(*of).to_csv(folder / f"{name}.csv", index=False)
    mixed = folder / "mixed.csv"
    assert unlike_conditions(folder / store.RESULTS, folder / "new.csv") == ["env_id a against b"]
    assert unlike_conditions(mixed, mixed) == []
    assert unlike_conditions(mixed, folder / "pure.csv") == ["env_id b against a"]


# the state of the machine

QUIET: dict[str, Any] = {
    "load_1min": 0.4,
    "available_bytes": 8 << 30,
    "preflight": {"others_cores": 0.02, "switches": 3, "spread": 0.04},
    "clock_hz": 1.98e9,
    "throttle": [],
}


def state(**changes: Any) -> Environment:
    """Return an environment in a state, some of it changed."""
    return Environment({}, {**QUIET, **changes}, {})


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"load_1min": 3.9}, ("load_1min", 0.4, 3.9)),
        ({"preflight": {**QUIET["preflight"], "others_cores": 1.0}}, ("preflight.others_cores", 0.02, 1.0)),
        ({"preflight": {**QUIET["preflight"], "spread": 0.31}}, ("preflight.spread", 0.04, 0.31)),
        ({"clock_hz": 1.41e9}, ("clock_hz", 1.98e9, 1.41e9)),
        ({"throttle": ["power"]}, ("throttle", [], ["power"])),
    ],
)
def test_a_notable_difference_has_both_values(change: dict[str, Any], difference: tuple[str, Any, Any]) -> None:
    """Load, neighbours, an unsteady clock, another clock."""
    name, *values = difference
    assert state_differences(state(), state(**change)) == {name: tuple(values)}


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"load_1min": 1.1},
        {"available_bytes": 1 << 30},
        {"preflight": {"others_cores": 0.2, "switches": 900, "spread": 0.09}},
        {"clock_hz": 1.95e9},
        {"load_1min": None, "something_new": 7},
    ],
)
def test_what_differs_between_any_two_runs_is_no_difference(change: dict[str, Any]) -> None:
    """Small differences, memory that is free, switches, and facts that only one side recorded."""
    changed = {name: value for name, value in {**QUIET, **change}.items() if value is not None}
    assert state_differences(state(), Environment({}, changed, {})) == {}


def test_differences_stand_in_the_order_of_base() -> None:
    """An environment that says nothing differs in nothing."""
    changed = state(load_1min=9.0, clock_hz=1e9)
    assert [*state_differences(state(), changed)] == ["load_1min", "clock_hz"]
    assert state_differences(Environment({}, {}, {}), state()) == {}


# shifts that rows have in common


def compared(changes: dict[str, float], failing: tuple[str, int] | None = None) -> list[Change]:
    """Return a comparison in which each implementation changed by a factor at three points."""
    tokens = (50, 197, 577)
    of = [case(name, num_tokens=number) for name in changes for number in tokens]
    eager = [baseline(num_tokens=number) for number in tokens]
    new = [
        failed(one)
        if (one.implementation, one.point.num_tokens) == failing
        else at(one, 1.5 * changes[one.implementation])
        for one in of
    ]
    return compare(table(*eager, *(at(one, 1.5) for one in of)), table(*eager, *new))


@pytest.mark.parametrize(
    ("factor", "changed", "steady"),
    [(1.5, "mha", False), (0.6, "mha", False), (1.1, "mha", True), (1.0, "eager", True)],
)
def test_where_all_took_longer_the_machine_may_have_changed(factor: float, changed: str, *, steady: bool) -> None:
    """What most rows did counts, as far as it is more than everyday drift; one row is no other speed."""
    times = {"eager": 1.0, "sdpa": 0.5, "mha": 0.8}
    new = {name: factor * time_s * (2.0 if name == changed else 1.0) for name, time_s in times.items()}
    tables = (table(*(row(case(name), [0.0, 0.001], latency_s=of[name]) for name in of)) for of in (times, new))
    change = raw_change(compare(*tables))
    assert change == pytest.approx(factor)
    assert is_steady(factor) is steady


def test_without_times_on_both_sides_no_speed_is_known() -> None:
    """A case that failed has none."""
    base = table(baseline(), row(case("sdpa"), [0.1, 0.2], latency_s=None))
    assert raw_change(compare(base, table(failed(case("eager")), failed(case("sdpa"))))) is None


# which cases shared the rounds
