"""Results of two machines, or of one machine with other software, are told apart."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from bench.analyse import comparable
from bench.analyse.comparable import (
    CommonShift,
    StateDifference,
    common_shift,
    speed_change,
    state_differences,
    unmatched,
)
from bench.analyse.comparison import compare
from bench.plan.errors import NotComparable, WrongRequest
from bench.store import environment as environments
from bench.store import table as store
from bench.store.environment import Environment
from bench.store.saved_run import SavedRun
from tests.analyse.tables import at, baseline, cases, failed, of_layers, row, table
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
    ("change", "message"),
    [
        ({"load_1min": 3.9}, ("load_1min", 0.4, 3.9)),
        ({"preflight": {**QUIET["preflight"], "others_cores": 1.0}}, ("preflight.others_cores", 0.02, 1.0)),
        ({"preflight": {**QUIET["preflight"], "spread": 0.31}}, ("preflight.spread", 0.04, 0.31)),
        ({"clock_hz": 1.41e9}, ("clock_hz", 1.98e9, 1.41e9)),
        ({"throttle": ["power"]}, ("throttle", [], ["power"])),
    ],
)
def test_a_notable_difference_is_told(change: dict[str, Any], message: tuple[str, Any, Any]) -> None:
    """Load, neighbours, an unsteady clock, another clock: each with both values."""
    assert state_differences(state(), state(**change)) == [StateDifference(*message)]


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
    assert state_differences(state(), Environment({}, changed, {})) == []


def test_differences_stand_in_the_order_of_base() -> None:
    """Several are told one by one; an environment that says nothing warns of nothing."""
    changed = state(load_1min=9.0, clock_hz=1e9)
    assert [each.name for each in state_differences(state(), changed)] == ["load_1min", "clock_hz"]
    assert state_differences(Environment({}, {}, {}), state()) == []


def state(**changes: Any) -> Environment:
    """Return an environment in a state, some of it changed."""
    return Environment({}, {**QUIET, **changes}, {})


TOKENS = (50, 197, 577)


@pytest.mark.parametrize(("change", "verdict"), [(0.9, "slower"), (1.1, "faster")])
def test_most_rows_in_one_direction_are_noticed(change: float, verdict: str) -> None:
    """Three implementations that all lost a tenth at all points, against eager: eager may be what changed."""
    found = common_shift(compared({"sdpa": change, "mha": change * 0.99, "flex": change * 1.03}))
    assert found == CommonShift(verdict, 9, 9, 3, "sdpa")


def test_the_other_baseline_moved_like_the_others() -> None:
    """An implementation that changed by itself as well would mislead: sdpa is the one in the middle."""
    found = common_shift(compared({"mha": 0.5, "sdpa": 0.9, "flex": 0.93}))
    assert found
    assert found.baseline == "sdpa"


def test_the_other_baseline_has_the_most_rows() -> None:
    """One that failed at a point judges nothing there."""
    changes = {"sdpa": 0.9, "mha": 0.88, "flex": 0.93}
    found = common_shift(compared(changes, failing=("sdpa", 50)))
    assert found
    assert found.baseline != "sdpa"
    assert found.judged == 8


@pytest.mark.parametrize(
    "changes",
    [
        {"sdpa": 1.0, "mha": 1.0, "flex": 1.0},
        {"sdpa": 0.9, "mha": 1.0, "flex": 1.0},
        {"sdpa": 0.9, "mha": 1.1},
        {"sdpa": 0.9, "mha": 0.9, "flex": 1.1, "online": 1.0},
        {"sdpa": 0.9},
    ],
)
def test_rows_that_went_their_own_ways_point_nowhere(changes: dict[str, float]) -> None:
    """If no more than half of the rows moved in one direction they changed themselves; so does a single one."""
    assert common_shift(compared(changes)) is None
    unjudged = [row(case(name), [0.0]) for name in changes]
    assert common_shift(compare(table(*unjudged), table(*unjudged))) is None


@pytest.mark.parametrize(
    ("factor", "own", "shift"),
    [
        (1.5, {"mha": 2.0}, 1.5),
        (0.6, {"mha": 2.0}, 0.6),
        (1.1, {"mha": 2.0}, None),
        (0.95, {"mha": 2.0}, None),
        (1.0, {"eager": 2.0}, None),
    ],
)
def test_where_all_took_longer_the_machine_may_have_changed(
    factor: float, own: dict[str, float], shift: float | None
) -> None:
    """What most rows did counts, as far as it is more than everyday drift; one row is no other speed."""
    change = speed_change(timed({"eager": 1.0, "sdpa": 0.5, "mha": 0.8}, factor, own))
    assert change == (shift if shift is None else pytest.approx(shift))


def test_without_times_on_both_sides_no_speed_is_known() -> None:
    """A case that failed has none."""
    base = table(baseline(), row(case("sdpa"), [0.1, 0.2], latency_s=None))
    assert speed_change(compare(base, table(failed(case("eager")), failed(case("sdpa"))))) is None


def timed(times: dict[str, float], factor: float, own: dict[str, float]) -> pd.DataFrame:
    """Return a comparison in which all raw times changed by a factor, and some by another of their own."""
    base, new = (
        table(*(row(case(name), [0.0, 0.001], latency_s=time_s * by.get(name, 1.0)) for name, time_s in times.items()))
        for by in ({}, {name: factor * own.get(name, 1.0) for name in times})
    )
    return compare(base, new)


def compared(changes: dict[str, float], failing: tuple[str, int] | None = None) -> pd.DataFrame:
    """Return a comparison in which each implementation changed by a factor at all points."""
    points = [(name, tokens) for name in changes for tokens in TOKENS]
    base = [at(case(name, num_tokens=tokens), 1.5) for name, tokens in points]
    new = [
        failed(case(name, num_tokens=tokens))
        if (name, tokens) == failing
        else at(case(name, num_tokens=tokens), 1.5 * changes[name])
        for name, tokens in points
    ]
    eager = [baseline(num_tokens=tokens) for tokens in TOKENS]
    return compare(table(*eager, *base), table(*eager, *new))


def test_the_same_implementations_are_no_strangers() -> None:
    """Neither the order of rows, nor columns that are empty for some layers, nor points of one side alone matter."""
    rows = [row(of, [0.1, 0.1]) for of in of_layers()]
    elsewhere = row(case("online", num_tokens=577), [0.3, 0.3])
    assert unmatched(table(*rows), table(*reversed(rows), elsewhere)) == ([], [])


def test_who_stands_on_one_side_alone_is_named_once() -> None:
    """Two points, one implementation more on each side."""
    shared = [row(of, [0.1, 0.2]) for of in cases(2)]
    base = table(*shared, *(row(of, [0.3, 0.3]) for of in cases(2, "online")))
    new = table(*shared, *(row(of, [0.3, 0.3]) for of in cases(2, "manual")))
    assert unmatched(base, new) == (["online"], ["manual"])


def test_who_failed_was_no_company() -> None:
    """Only what took its turns in the rounds was beside the others."""
    beside = [baseline(), row(case("sdpa"), [0.1, 0.2])]
    base = table(*beside, row(case("online"), [0.3, 0.4]))
    new = table(*beside, failed(case("online")), failed(case("mha")))
    assert unmatched(base, new) == (["online"], [])
