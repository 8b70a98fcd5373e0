"""The verdict on the second side of a duel."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import t

from bench.analyse.change import Change
from bench.analyse.rows import Row
from bench.analyse.standing import Answer
from bench.analyse.verdict import answer, change, may_end, needed
from bench.plan.case import AFTER, BEFORE
from bench.plan.verdicts import AS_FAST, DIFFERENT, FASTER, NOT_MEASURED, OPEN, SLOWER
from bench.stats.contrasts import contrasts, prior, values
from bench.stats.estimates import Interval
from tests.make.points import point

BOUND = 0.01


def side(name: str, *speedup: float | None, status: str = "ok", memory: int | None = 100) -> Row:
    """Return the row of a side; its speed-up is a value and the ends of its interval."""
    ends = dict(zip(("speedup", "speedup_low", "speedup_high"), speedup, strict=False))
    return {"implementation": name, "status": status, "memory_bytes": memory, **ends}


def judged(after: Row, before: Row | None = None, bound: float = BOUND) -> Change:
    """Return the verdict on a side."""
    return change(point(), [before or side(BEFORE, 1.0), after], BEFORE, AFTER, bound)


@pytest.mark.parametrize(
    ("speedup", "kind"),
    [
        ((1.5, 1.4, 1.6), FASTER),
        ((1.002, 1.001, 1.003), FASTER),
        ((1.0, 0.995, 1.005), AS_FAST),
        ((0.999, 0.995, 1.002), AS_FAST),
        ((1.2, 0.995, 1.4), AS_FAST),
        ((1.0, 0.98, 1.02), OPEN),
        ((0.97, 0.90, 1.01), OPEN),
        ((0.995, 0.991, 0.999), AS_FAST),
        ((0.99, 0.98, 0.999), SLOWER),
        ((0.5, 0.4, 0.6), SLOWER),
        ((1.1, math.nan, math.nan), OPEN),
        ((1.1, None, None), OPEN),
        ((1.1, 0.0, math.inf), OPEN),
    ],
)
def test_a_verdict_follows_from_the_interval(speedup: tuple[float | None, ...], kind: str) -> None:
    """Without an interval nothing is known."""
    assert judged(side(AFTER, *speedup)).verdict == kind


def test_a_wider_bound_calls_more_as_fast() -> None:
    """A side that may be 2 % slower is as fast as the other if 3 % don't matter."""
    assert judged(side(AFTER, 1.0, 0.98, 1.02), bound=0.03).verdict == AS_FAST


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        (side(BEFORE, 1.0), side(AFTER, status="incorrect"), DIFFERENT),
        (side(BEFORE, status="skipped"), side(AFTER, status="incorrect"), DIFFERENT),
        (side(BEFORE, 1.0), side(AFTER, status="crashed"), NOT_MEASURED),
        (side(BEFORE, status="incorrect"), side(AFTER, status="skipped"), NOT_MEASURED),
        (side(BEFORE, status="oom"), side(AFTER, None), NOT_MEASURED),
        (side(BEFORE, 1.0), side(AFTER, None), NOT_MEASURED),
    ],
)
def test_a_side_without_a_time_has_no_speed_up(before: Row, after: Row, kind: str) -> None:
    """Only outputs of the second that aren't those of the first are another function."""
    of = judged(after, before)
    assert (of.verdict, of.base, of.new) == (kind, before, after)
    assert not of.ratio.is_known
    assert not of.exceeds(0.0)
    assert of.may_exceed(0.0)


def test_a_point_without_rows_is_not_measured() -> None:
    """A point whose time was up before it began has no rows."""
    of = change(point(), [], BEFORE, AFTER, BOUND)
    assert (of.verdict, of.base, of.new) == (NOT_MEASURED, {}, {})


def test_memory_is_relative_to_the_first_side() -> None:
    """The ratio of memory isn't known if that of one side isn't."""
    good = side(AFTER, 1.0, 0.99, 1.01, memory=50)
    assert judged(good).memory == 0.5
    assert math.isnan(judged(good, side(BEFORE, 1.0, memory=None)).memory)


ratios = st.floats(0.5, 2.0)
shares = st.floats(0.001, 0.3)
half_widths = st.floats(1e-4, 0.3)


def of(log: float, half: float, bound: float = BOUND) -> Change:
    """Return the verdict on a side by its log speed-up."""
    row = side(AFTER, *(math.exp(log + end) for end in (0, -half, half)))
    return judged({**row, "log_ratio_freedom": 1e6}, bound=bound)


def log_of(value: float, half: float) -> Interval:
    """Return a log ratio with the half-width of its interval."""
    return Interval(value, value - half, value + half)


@given(log=ratios.map(math.log), allow=shares)
def test_a_race_that_may_end_shows_or_excludes_what_is_not_allowed(log: float, allow: float) -> None:
    """Else the second side may be slower by more, which is not shown."""
    half = BOUND / 3
    assume(all(abs(log + end + math.log1p(allow)) > 1e-9 for end in (-half, half)))
    each, of_ratio = of(log, half), log_of(log, half)
    assert each.exceeds(allow) <= each.may_exceed(allow)
    assert may_end(of_ratio, BOUND, None)
    assert may_end(of_ratio, BOUND, allow) == (each.exceeds(allow) or not each.may_exceed(allow))


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
        last = next((look for look in looks if may_end(look, BOUND, None)), looks[-1])
        kinds[of(last.value, last.high - last.value).verdict] += 1
    if true:
        assert kinds == {SLOWER: 2000}
    else:
        assert kinds[SLOWER] <= 12
        assert kinds[OPEN] <= 20


@given(log=st.floats(-0.05, 0.05), half=half_widths, bound=shares)
def test_what_is_still_needed_decides(log: float, half: float, bound: float) -> None:
    """An interval narrows with the root of the time: with a little more than needed it is decided, with less not."""
    before = of(log, half, bound)
    assume(before.verdict == OPEN)
    times = needed(before, bound)
    assume(math.isfinite(times))
    assert of(log, half / math.sqrt(times * 1.01), bound).verdict != OPEN
    assert of(log, half / math.sqrt(times / 1.02), bound).verdict == OPEN


@given(log=ratios.map(math.log), half=half_widths, allow=shares)
def test_what_is_needed_decides_what_is_allowed_too(log: float, half: float, allow: float) -> None:
    """With a little more than needed the interval lies on one side of it; a point that is decided needs no more."""
    before = of(log, half)
    times = needed(before, BOUND, allow)
    assume(math.isfinite(times))
    after = of(log, half / math.sqrt(times * 1.01))
    assert after.verdict != OPEN
    assert after.exceeds(allow) or not after.may_exceed(allow)
    is_decided = before.verdict != OPEN and (before.exceeds(allow) or not before.may_exceed(allow))
    assert (times == 1) >= is_decided


def test_nothing_is_needed_of_what_is_not_known() -> None:
    """Without an interval nothing tells how long it takes."""
    assert math.isinf(needed(judged(side(AFTER, 1.1, math.nan, math.nan)), BOUND))


def test_a_race_goes_on_between_both_sides_until_it_may_end() -> None:
    """Its answer is how well the ratio is known; sides that share no replicate have none."""
    rng = np.random.default_rng(3)
    rounds = {process: dict(enumerate(rng.normal(1.0, 0.002, 5).tolist())) for process in range(4)}
    halved = {process: {number: time_s / 2 for number, time_s in own.items()} for process, own in rounds.items()}
    unsteady = {process: {number: time_s * (1 + process / 50) for number, time_s in own.items()}
        for process, own in rounds.items()}  # fmt: skip

    def answered(after: dict[int, dict[int, float]], allow: float | None = None, name: str = AFTER) -> Answer:
        found = values({BEFORE: rounds, AFTER: after})
        return answer(contrasts(found, prior([found])), BEFORE, name, BOUND, allow, 4)

    good = answered(halved)
    assert (good.named, good.is_good, good.replicates) == (BEFORE, True, 4)
    assert 0 <= good.bound < 0.2
    unsure = answered(unsteady)
    assert unsure.candidates == (BEFORE, AFTER)
    assert unsure.needed[0] == unsure.needed[1] > 0
    assert unsure.bound > BOUND
    assert not answered(halved, name="other").named
    assert not answered({process + 4: own for process, own in halved.items()}).named


def test_a_race_goes_on_if_one_replicate_tells_no_interval() -> None:
    """Nothing is decided by it."""
    found = values({BEFORE: {0: {0: 1.0, 1: 1.0}}, AFTER: {0: {0: 2.0, 1: 2.0}}})
    of = answer(contrasts(found, prior([found])), BEFORE, AFTER, BOUND, None, 1)
    assert (of.candidates, of.is_good) == ((BEFORE, AFTER), False)
