"""The seconds of rounds that each point gets."""

import pytest

from bench.engine.time_budget import MOST_TIMES, TimeBudget
from bench.plan.sweep import Effort


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return a clock that is set by hand."""
    times = [100.0]
    monkeypatch.setattr("bench.engine.time_budget.time.monotonic", lambda: times[0])
    return times


def budgets(time_budget: TimeBudget, clock: list[float], beside_s: list[float]) -> list[float]:
    """Return the budgets of points that take so long beside their rounds."""
    found = []
    for seconds in beside_s:
        time_budget.begin()
        found.append(time_budget.budget_s)
        clock[0] += seconds + time_budget.budget_s
        time_budget.end(time_budget.budget_s)
    return found


def test_without_a_limit_every_point_has_its_budget(clock: list[float]) -> None:
    """However quick the points are."""
    assert budgets(TimeBudget(Effort(budget_s=4), 3), clock, [0.0, 9.0, 1.0]) == [4, 4, 4]


def test_what_would_be_left_goes_to_rounds(clock: list[float]) -> None:
    """Ten points of 2 s beside their rounds in 100 s: the first has its 4, and 94 s for nine leave about 8.4 each."""
    found = budgets(TimeBudget(Effort(budget_s=4, within_s=100), 10), clock, [2.0] * 10)
    assert found[0] == 4
    assert found[1:] == pytest.approx([94 / 9 - 2] * 9)
    assert clock[0] - 100.0 == pytest.approx(100)


def test_a_slow_machine_takes_what_the_budgets_take(clock: list[float]) -> None:
    """Where nothing is left over the budget is the least that a point gets."""
    assert budgets(TimeBudget(Effort(budget_s=4, within_s=10), 3), clock, [20.0] * 3) == [4, 4, 4]


def test_one_point_alone_does_not_take_all_of_it(clock: list[float]) -> None:
    """A sweep of two points is not drawn out to the limit."""
    assert budgets(TimeBudget(Effort(budget_s=4, within_s=1000), 2), clock, [1.0] * 2) == [4, MOST_TIMES * 4]


def test_a_slow_point_is_not_taken_for_the_rule(clock: list[float]) -> None:
    """Of 80 s the first point took 44 and two more 7 each: 22 are left to the last, less the 3 that most take."""
    found = budgets(TimeBudget(Effort(budget_s=4, within_s=80), 4), clock, [40.0, 3.0, 3.0, 3.0])
    assert found == pytest.approx([4, 4, 4, 22 - 3])
