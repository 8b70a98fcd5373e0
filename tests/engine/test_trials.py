"""After a death those under suspicion are set apart: honest implementations come through, and the guilty end."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.engine.trials import MOST, End, Trials
from bench.engine.worker import Died

NAMES = ["eager", "a", "b", "c", "d"]


def death(implementation: str, *, is_outside: bool = False) -> Died:
    """Return a death while an implementation was at work."""
    return Died("crashed", implementation, "killed", is_outside=is_outside)


def groups(trials: Trials, *deaths: Died | None) -> list[list[str]]:
    """Return what each process measures if the first ones die so, or come through, and all later ones come through."""
    measured = []
    ways = [*deaths]
    while trials.group:
        measured.append(sorted(trials.group))
        way = ways.pop(0) if ways else None
        if way is None:
            trials.came_through()
        else:
            trials.died(way)
    return measured


def test_without_a_death_there_is_one_process() -> None:
    """What is missing is measured together, beside the baseline, unless that one failed."""
    assert groups(Trials(["eager", "a"], "eager")) == [["a", "eager"]]
    assert groups(Trials(["a", "b"], "eager")) == [["a", "b", "eager"]]
    assert groups(Trials(["a", "b"], None)) == [["a", "b"]]


def test_one_that_dies_is_set_apart_and_tried_beside_the_baseline() -> None:
    """The others are measured without it first."""
    assert groups(Trials(["eager", "a", "b"], "eager"), death("a")) == [
        ["a", "b", "eager"],
        ["b", "eager"],
        ["a", "eager"],
    ]


@pytest.mark.parametrize("way", [death("a", is_outside=True), death("")])
def test_a_kill_from_outside_or_before_anyone_is_at_work_changes_nothing(way: Died) -> None:
    """The same implementations are tried again together, so that all pairs are there."""
    assert groups(Trials(["eager", "a", "b"], "eager"), way) == [["a", "b", "eager"]] * 2


def test_a_second_death_before_anyone_is_at_work_ends_all() -> None:
    """It is not tried for each one, and none of them is the cause."""
    trials = Trials(["eager", "a"], "eager")
    assert trials.died(death("")) == []
    ended = trials.died(death(""))
    assert [(end.implementation, end.own_cause) for end in ended] == [("eager", False), ("a", False)]
    assert trials.group == []


def test_a_second_death_alone_is_the_result() -> None:
    """It is the implementation's own cause, unless a signal from outside ended it."""
    for is_outside in (False, True):
        trials = Trials(["a"], "eager")
        assert trials.died(death("a", is_outside=is_outside)) == []
        (end,) = trials.died(death("a", is_outside=is_outside))
        assert (end.implementation, end.status, end.own_cause) == ("a", "crashed", not is_outside)


def test_the_baseline_is_not_blamed_for_another_ones_timer() -> None:
    """It comes through alone, then everyone else does but the one beside which it dies."""
    trials = Trials(["eager", "a", "b"], "eager")
    ended = simulate(trials, guilty={"b"}, name=lambda _group: "eager")[0]
    assert [(end.implementation, end.own_cause) for end in ended] == [("b", True)]
    assert "while eager was running" in ended[0].detail


def simulate(trials: Trials, guilty: set[str], name: Callable[[list[str]], str]) -> tuple[list[End], set[str], int]:
    """Return the ends, what came through and the number of processes, if each with a guilty member dies."""
    ended: list[End] = []
    through: set[str] = set()
    processes = 0
    while group := trials.group:
        processes += 1
        if guilty & {*group}:
            ended += trials.died(death(name(group)))
        else:
            through.update(group)
            trials.came_through()
    return ended, through, processes


@given(st.sets(st.sampled_from(NAMES)), st.booleans(), st.randoms(use_true_random=False))
def test_the_guilty_end_and_the_honest_come_through(guilty: set[str], company: bool, rng: random.Random) -> None:
    """It holds for any number of guilty ones and whoever is at work when their process dies."""
    missing = NAMES[1:] if company and "eager" not in guilty else NAMES
    ended, through, processes = simulate(Trials(missing, "eager"), guilty, rng.choice)
    assert sorted(end.implementation for end in ended) == sorted(guilty)
    assert through & {*missing} == {*missing} - guilty
    assert not through & guilty
    assert processes <= MOST * len(NAMES)


@given(st.sets(st.sampled_from(NAMES)))
def test_each_that_dies_at_its_own_work_costs_two_processes(guilty: set[str]) -> None:
    """One is needed for the rest, if there is one."""
    _, _, processes = simulate(Trials(NAMES, "eager"), guilty, lambda group: next(iter(guilty & {*group})))
    assert processes <= 2 * len(guilty) + 1 + ("eager" in guilty)


@given(st.lists(st.tuples(st.integers(0, 6), st.booleans()), max_size=60), st.booleans())
def test_a_visit_ends_however_processes_die(ways: list[tuple[int, bool]], company: bool) -> None:
    """Each missing one comes through or ends, once, in a bounded number of processes."""
    trials = Trials(NAMES[1:] if company else NAMES, "eager")
    ended: list[str] = []
    through: set[str] = set()
    processes = 0
    while group := trials.group:
        at, is_outside = ways[processes % len(ways)] if ways else (6, False)
        processes += 1
        if at == 6:
            through.update(group)
            trials.came_through()
        else:
            name = group[at] if at < len(group) else ""
            ended += [end.implementation for end in trials.died(death(name, is_outside=is_outside))]
        assert processes <= MOST * len(NAMES)
    assert len(ended) == len({*ended})
    assert {*ended} | through >= {*NAMES[1:]}
    assert not {*ended} & through
