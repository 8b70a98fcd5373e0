"""The verdicts that intervals give, for two runs and for the sides of a duel."""

import math
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bench.analyse.change import Change, judge
from bench.plan.case import AFTER, Case
from bench.plan.verdicts import EQUIVALENT, FASTER, OPEN, SLOWER
from bench.stats.estimates import Interval
from tests.make.points import point

RUNS: dict[str, Any] = {"margin": 0.01, "bound": 0.02}
DUEL: dict[str, Any] = {"margin": 0.0, "bound": 0.01, "one_sided": True}


@pytest.mark.parametrize(
    ("low", "high", "of_runs", "of_sides"),
    [
        (1.4, 1.6, FASTER, FASTER),
        (1.001, 1.003, EQUIVALENT, FASTER),
        (1.005, 1.04, OPEN, FASTER),
        (0.995, 1.005, EQUIVALENT, EQUIVALENT),
        (0.995, 1.4, OPEN, EQUIVALENT),
        (0.991, 0.999, EQUIVALENT, EQUIVALENT),
        (0.98, 1.02, OPEN, OPEN),
        (0.982, 1.015, EQUIVALENT, OPEN),
        (0.98, 0.999, OPEN, SLOWER),
        (0.982, 0.988, SLOWER, SLOWER),
        (0.4, 0.6, SLOWER, SLOWER),
        (0.0, math.inf, OPEN, OPEN),
        (math.nan, math.nan, OPEN, OPEN),
    ],
)
def test_a_verdict_follows_from_the_interval(low: float, high: float, of_runs: str, of_sides: str) -> None:
    """Runs have a margin of 1 %; of a duel's side counts whether it may be slower by more than 1 %."""
    ratio = Interval(1.0, low, high)
    assert (judge(ratio, **RUNS), judge(ratio, **DUEL)) == (of_runs, of_sides)


ends = st.floats(0.5, 2.0)
shares = st.floats(0.001, 0.3)


@given(ends=st.tuples(ends, ends).map(sorted), shares=st.tuples(shares, shares).map(sorted))
def test_a_change_is_that_of_each_value_in_the_interval(ends: list[float], shares: list[float]) -> None:
    """The inverse ratio has the inverse verdict, unless rounding moves an end over a limit."""
    (low, high), (margin, bound) = ends, shares
    verdict = judge(Interval(1.0, low, high), margin, bound)
    if verdict in (FASTER, SLOWER):
        assert {judge(Interval(end, end, end), margin, bound) for end in ends} == {verdict}
    limits = [limit**power for limit in (1 + margin, 1 + bound) for power in (1, -1)]
    assume(all(not math.isclose(end, limit) for end in ends for limit in limits))
    inverse = judge(Interval(1.0, 1 / high, 1 / low), margin, bound)
    assert inverse == {FASTER: SLOWER, SLOWER: FASTER}.get(verdict, verdict)


def test_memory_is_relative_to_the_first_side() -> None:
    """The ratio of memory is unknown if one side's memory is."""

    def memory(before: int | None, after: int | None) -> float:
        return Change(Case(point(), AFTER), OPEN, {"memory_bytes": before}, {"memory_bytes": after}).memory

    assert memory(100, 50) == 0.5
    assert math.isnan(memory(None, 50))
