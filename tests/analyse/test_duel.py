"""A duel: its changes, the end of its race, and its outcome over all points."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import t

from bench.analyse.change import Change
from bench.analyse.duel import EXCEEDED, KEPT, UNDECIDED, change, may_end
from bench.plan.case import AFTER, BEFORE
from bench.plan.sides import DIFFER
from bench.plan.verdicts import DIFFERENT, FASTER, NOT_MEASURED, OPEN, SLOWER
from bench.stats.estimates import Interval
from tests.make.duels import BOUND, EQUAL, FAST, LOST, SLOW, UNSURE, ended, of, outcome
from tests.make.points import point

# changes


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ("ok", "incorrect", DIFFERENT),
        ("skipped", "incorrect", DIFFERENT),
        ("ok", "crashed", NOT_MEASURED),
        ("incorrect", "skipped", NOT_MEASURED),
        ("oom", "ok", NOT_MEASURED),
    ],
)
def test_a_side_without_a_time_has_no_ratio(before: str, after: str, verdict: str) -> None:
    """Only wrong outputs of the second are another function."""
    each = ended(before, after)
    assert (each.verdict, each.ratio.is_known) == (verdict, False)
    assert (each.base["status"], each.new["status"]) == (before, after)


def test_a_point_without_rows_is_not_measured() -> None:
    """A point whose time was up before it began has no rows; rows of different replicates have no ratio."""
    each = change(point(), [], BEFORE, AFTER, BOUND)
    assert (each.verdict, each.base, each.new) == (NOT_MEASURED, {}, {})
    assert of().verdict == NOT_MEASURED


# the race


def log_of(value: float, half: float) -> Interval:
    """Return a log ratio with the half-width of its interval."""
    return Interval(value, value - half, value + half)


def judged(log: Interval) -> Change:
    """Return the change to a side by its log speed-up."""
    return of(*vars(log.exp()).values())


@given(log=st.floats(-0.7, 0.7), allow=st.floats(0.001, 0.3))
def test_a_race_that_may_end_shows_whether_what_is_allowed_is_kept(log: float, allow: float) -> None:
    """Else the second side may be slower by more, which is not shown."""
    each = log_of(log, BOUND / 3)
    assume(all(abs(end + math.log1p(allow)) > 1e-9 for end in (each.low, each.high)))
    assert may_end(each, BOUND, None)
    assert may_end(each, BOUND, allow) == (outcome(judged(each), allow=allow).allowed != UNDECIDED)


@pytest.mark.parametrize("true", [0.0, -0.05])
def test_a_race_that_may_end_says_what_is_so(true: float) -> None:
    """Of 2000 races of an unchanged side, 6 in 1000 are called slower at most, and 1 in 100 stays open.

    A side that is 5 % slower is found each time.
    """
    logs, counts = np.random.default_rng(11).normal(true, 0.01, (2000, 60)), np.arange(1, 61)
    means = np.cumsum(logs, axis=1) / counts
    squares = np.cumsum(logs**2, axis=1) - counts * means**2
    halves = t.ppf(0.995, counts[3:] - 1) * np.sqrt(squares[:, 3:] / (counts[3:] - 1) / counts[3:])
    kinds = Counter[str]()
    for race in zip(means[:, 3:].tolist(), halves.tolist(), strict=True):
        looks = [log_of(value, half) for value, half in zip(*race, strict=True)]
        kinds[judged(next((look for look in looks if may_end(look, BOUND, None)), looks[-1])).verdict] += 1
    if true:
        assert kinds == {SLOWER: 2000}
    else:
        assert kinds[SLOWER] <= 12
        assert kinds[OPEN] <= 20


# its outcome


@pytest.mark.parametrize(
    ("changes", "verdict", "tokens"),
    [
        ([of(*FAST), of(1.2, 1.1, 1.3, tokens=9)], FASTER, 9),
        ([of(*FAST), of(*SLOW, tokens=9), of(0.9, 0.89, 0.91, tokens=11)], SLOWER, 11),
        ([of(*EQUAL), of(*UNSURE, tokens=9), of(*FAST, tokens=11)], OPEN, 9),
        ([of(1.1, math.nan, math.nan), of(*FAST, tokens=9)], OPEN, 7),
        ([of(*SLOW), ended("skipped", "crashed", tokens=9), ended("ok", "incorrect", tokens=11)], DIFFERENT, 11),
    ],
)
def test_the_verdict_is_the_worst_of_all_points(changes: list[Change], verdict: str, tokens: int) -> None:
    """Of several it is the one with the least speed-up; another function is worse than no time, and that than any."""
    worst = outcome(*changes).worst
    assert (worst.verdict, worst.point.num_tokens) == (verdict, tokens)


@pytest.mark.parametrize(
    ("changes", "allow", "allowed", "unmet", "is_bad"),
    [
        ([of(*FAST), of(*EQUAL)], 0.02, KEPT, 0, False),
        ([of(*SLOW)], None, None, 0, False),
        ([of(*SLOW)], 0.02, EXCEEDED, 1, True),
        ([of(*SLOW)], 0.07, KEPT, 0, False),
        ([of(*FAST), of(*UNSURE), of(*SLOW, tokens=9)], 0.02, EXCEEDED, 1, True),
        ([of(*FAST), of(*UNSURE)], 0.02, UNDECIDED, 1, False),
        *[([of(*FAST), each], allow, None, 0, True) for each in LOST for allow in (None, 0.5)],
    ],
)
def test_what_is_bad(
    changes: list[Change], allow: float | None, allowed: str | None, unmet: int, *, is_bad: bool
) -> None:
    """Another function, a side without a time, and a time that is significantly beyond the limit."""
    shown = outcome(*changes, allow=allow)
    assert (shown.allowed, len(shown.unmet), shown.is_bad) == (allowed, unmet, is_bad)


@pytest.mark.parametrize("allow", [None, 0.5])
def test_a_gate_lets_no_outputs_pass_that_were_not_compared(allow: float | None) -> None:
    """Without a gate it is told; the outputs of two layers are not to be the same."""
    assert outcome(of(*FAST), weights=DIFFER, allow=allow).is_bad is (allow is not None)
    assert not outcome(of(*FAST), weights=None, allow=allow).is_bad
