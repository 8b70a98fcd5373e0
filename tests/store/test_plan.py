"""The plan of a run comes back unchanged, and later requests are compared with it."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from bench.plan.case import AFTER, BEFORE
from bench.plan.errors import WrongRequest
from bench.plan.grid import Shard
from bench.plan.sweep import Effort, Sweep, load_sweep, shipped_names
from bench.store import journal, plan
from bench.store.journal import JOURNAL
from bench.store.plan import continued
from tests.make.points import OF_LAYER, of_layer, point
from tests.make.records import record
from tests.refusals import refusal

SWEEP = Sweep("mine", (point(), point(num_tokens=5)), ("eager", "sdpa"), effort=Effort(processes=2, budget_s=1.5))


RACE = Effort(race=True, bound=0.01, within_s=40.0)

SWEEPS = {
    **{name: load_sweep(name) for name in shipped_names()},
    "every layer": dataclasses.replace(SWEEP, points=tuple(of_layer(layer) for layer in OF_LAYER)),
    "a shard": SWEEP.sharded(Shard(2, 2)),
    "a duel": dataclasses.replace(SWEEP, implementations=(BEFORE, AFTER), baseline=BEFORE, control=True, effort=RACE),
    "a name that is gone": dataclasses.replace(SWEEP, implementations=("eager", "jax")),
}


@pytest.mark.parametrize("name", SWEEPS)
def test_a_plan_comes_back_and_stands_in_the_journal_once(name: str, tmp_path: Path) -> None:
    """It is one line of JSON; its columns that a layer doesn't use are left out, and records may follow it."""
    sweep = SWEEPS[name]
    for _ in range(2):
        plan.keep(sweep, journal.scan(tmp_path))
        journal.scan(tmp_path).append([record("eager")])
    assert plan.load(tmp_path) == sweep
    planned, *records = map(json.loads, (tmp_path / JOURNAL).read_text().splitlines())
    assert all(None not in columns.values() for columns in planned["plan"]["points"])
    assert {record["implementation"] for record in records} == {"eager"}


def test_the_latest_plan_counts(tmp_path: Path) -> None:
    """A plan that was cut off by a kill doesn't count."""
    wider = dataclasses.replace(SWEEP, implementations=("eager", "sdpa", "mha"))
    plan.keep(SWEEP, journal.scan(tmp_path))
    first = (tmp_path / JOURNAL).read_bytes()
    plan.keep(wider, journal.scan(tmp_path))
    assert plan.load(tmp_path) == wider
    both = (tmp_path / JOURNAL).read_bytes()
    (tmp_path / JOURNAL).write_bytes(both[:-20])
    assert plan.load(tmp_path) == SWEEP
    assert [*journal.scan(tmp_path).faults.values()] == [[2]]
    (tmp_path / JOURNAL).write_bytes(first[:-20] + b"\n")
    assert plan.load(tmp_path) is None


def test_a_folder_without_a_run_has_no_plan(tmp_path: Path) -> None:
    """Neither one that isn't there, nor an empty one, nor a file, nor one whose journal is empty."""
    (tmp_path / "file").touch()
    assert [plan.load(tmp_path / name) for name in ("missing", "", "file")] == [None] * 3
    (tmp_path / JOURNAL).touch()
    assert plan.load(tmp_path) is None


def test_the_same_sweep_goes_on_under_any_name_and_in_any_order() -> None:
    """The folder's own is what comes back."""
    same = dataclasses.replace(SWEEP, name="other", points=SWEEP.points[::-1], implementations=("sdpa", "eager"))
    assert continued(same, SWEEP, Path("run")) == SWEEP
    assert continued(SWEEP, None, Path("run")) == SWEEP


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"points": (point(),)}, "points: 2 with .*n5.* against 1"),
        ({"points": (*SWEEP.points, point(num_tokens=9))}, "points: 2 against 3 with .*-n9-.*"),
        ({"implementations": ("eager", "mha")}, "implementations: eager, sdpa against eager, mha"),
        ({"baseline": "sdpa"}, "baseline: eager against sdpa"),
        ({"effort": Effort(processes=3, budget_s=1.5)}, "processes: 2 against 3"),
        ({"name": "other", "effort": Effort(processes=2)}, "sweep: mine against other; budget_s: 1.5 against 12.0"),
    ],
)
def test_another_sweep_is_refused_with_both_values(changes: dict[str, Any], message: str) -> None:
    """Each difference has the folder's and the requested value, and the way out."""
    with pytest.raises(WrongRequest, match=f"^run has a different sweep .*: {message}; use another folder$"):
        continued(dataclasses.replace(SWEEP, **changes), SWEEP, Path("run"))


@pytest.mark.parametrize("wishes", [{"bound": 0.001}, {"within_s": None}, {"bound": 0.5, "within_s": 3600.0}])
def test_a_race_goes_on_with_another_bound_and_another_time(wishes: dict[str, Any]) -> None:
    """Bound and time say when to stop, not how to measure, so the new ones hold and all else stays the folder's own."""
    own = dataclasses.replace(SWEEP, effort=Effort(race=True, bound=0.1, within_s=90))
    asked = dataclasses.replace(own, name="other", effort=dataclasses.replace(own.effort, **wishes))
    assert continued(asked, own, Path("run")) == dataclasses.replace(asked, name="mine")


def test_a_race_or_a_control_makes_another_sweep() -> None:
    """Rows of a race and of equal shares differ in precision, and a run with a control needs one.

    A run that began without a control goes on without it, and one with it keeps it if it is extended.
    """
    raced = dataclasses.replace(SWEEP, effort=dataclasses.replace(SWEEP.effort, race=True))
    assert "race: True against False" in refusal(continued, SWEEP, raced, Path("run"))
    assert "race: False against True" in refusal(continued, raced, SWEEP, Path("run"))
    controlled = dataclasses.replace(SWEEP, control=True)
    assert "control: True against False" in refusal(continued, SWEEP, controlled, Path("run"))
    assert continued(SWEEP, controlled, Path("run"), extend=True) == controlled
    assert continued(controlled, SWEEP, Path("run")) == SWEEP
    assert continued(controlled, SWEEP, Path("run"), extend=True) == SWEEP


def test_an_extended_sweep_is_the_union_of_both() -> None:
    """Nothing of the folder's own goes, the effort is the new one; ratios to another baseline can't be added."""
    asked = Sweep("other", (point(num_tokens=9), point()), ("eager", "mha"), effort=Effort(processes=1, budget_s=4))
    union = continued(asked, SWEEP, Path("run"), extend=True)
    assert union.name == "mine"
    assert [point.num_tokens for point in union.points] == [7, 5, 9]
    assert union.implementations == ("eager", "sdpa", "mha")
    assert union.effort == Effort(processes=2, budget_s=4)
    other = dataclasses.replace(SWEEP, baseline="sdpa")
    assert "baseline eager, but sdpa is requested" in refusal(continued, other, SWEEP, Path("run"), extend=True)
