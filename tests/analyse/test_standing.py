"""The implementation to use at a point: who is named, what that can cost, who is measured on; truth keeps to it."""

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from scipy import stats

from bench.analyse.rows import Row
from bench.analyse.standing import (
    ALONE,
    BEHIND,
    FASTEST,
    NAMED,
    NOT_TOLD,
    NOTHING,
    UNDECIDED,
    Choice,
    Place,
    answer,
    behind,
    choice,
    cost,
    places,
)
from bench.plan.case import CONTROL
from bench.plan.verdicts import OPEN, SLOWER
from bench.stats.best import GOOD
from bench.stats.contrasts import Contrasts, Values, contrasts, prior
from bench.stats.estimates import Array, Interval

NAMES = "abcdef"
COSTS = {name: place for place, name in enumerate(NAMES)}
FREEDOM = 12.0

TRUTHS = {
    "all equal": [0.0] * 6,
    "two equal, the rest far": [0.0, 0.0, 0.3, 0.3, 0.3, 0.3],
    "0, 1, 3 and 10 %": [*np.log([1.1, 1.0, 1.03, 1.01])],
}
"""True log times of the implementations of a point."""


def of(*logs: float, error: float | Array = 0.02) -> Contrasts:
    """Return the contrasts of implementations with these log times; each pair has the same error, or one of its own."""
    difference = np.subtract.outer(np.array(logs), np.array(logs))
    errors = np.where(np.eye(len(logs), dtype=bool), 0.0, np.broadcast_to(error, difference.shape))
    return Contrasts(tuple(NAMES[: len(logs)]), difference, errors, np.full(difference.shape, FREEDOM))


def standings(places_by_name: Mapping[str, Place]) -> list[tuple[str, int, str | None]]:
    """Return name, rank and standing of each place."""
    return [(name, place.rank, place.standing) for name, place in places_by_name.items()]


def slowdown(place: Place) -> Interval:
    """Return the slowdown of a place that has one."""
    assert place.slowdown
    return place.slowdown


def test_the_fastest_is_shown_to_be_faster_than_every_other() -> None:
    """Ten and twenty percent with an error of a tenth of a percent: one is the fastest, the others are slower."""
    by_name = places(of(0.2, 0.0, 0.1, error=0.001), COSTS)
    assert standings(by_name) == [("b", 1, FASTEST), ("c", 2, SLOWER), ("a", 3, SLOWER)]
    assert slowdown(by_name["c"]).value == pytest.approx(math.exp(0.1))
    assert 1 < slowdown(by_name["c"]).low < slowdown(by_name["c"]).value < slowdown(by_name["c"]).high
    assert slowdown(by_name["b"]) == Interval(1, 1, 1)


def test_of_those_that_may_cost_much_the_one_with_the_least_bound_is_named() -> None:
    """With errors of 2 % two may be the fastest, regardless of their costs; the one that is 20 % slower may not.

    Of those within 2 % the cheapest leads though another seems faster; one that may cost more is not asked.
    """
    by_name = places(of(0.01, 0.0, 0.2), COSTS)
    assert standings(by_name) == [("b", 1, NAMED), ("a", 2, OPEN), ("c", 3, SLOWER)]
    by_name = places(of(0.0, 0.004, 0.03, error=0.002), {"a": 2, "b": 1, "c": 0})
    assert standings(by_name) == [("b", 1, NAMED), ("a", 2, OPEN), ("c", 3, SLOWER)]
    assert math.exp(0.004) < slowdown(by_name["b"]).high <= GOOD


def test_what_costs_a_user_least_is_not_compiled_then_small_then_first_in_the_catalogue() -> None:
    """An unchanged model comes first; memory that isn't known comes last, and an implementation of a user's own."""
    rows: list[Row] = [
        {"implementation": "as_is", "memory_bytes": 300},
        {"implementation": "sdpa", "memory_bytes": 100},
        {"implementation": "eager", "memory_bytes": 200},
        {"implementation": "sdpa", "memory_bytes": 200},
        {"implementation": "users.kernel:adapt", "memory_bytes": 200},
        {"implementation": "mha", "memory_bytes": None},
        {"implementation": "compiled_sdpa", "memory_bytes": 100, "compile_cold_s": 3.0},
    ]
    assert sorted(rows[4:] + rows[:4], key=cost) == rows


def test_without_errors_the_least_value_is_named() -> None:
    """A single process rules out nothing; a lone implementation is the first of one, and none has no place."""
    by_name = places(of(0.5, 0.0, error=math.nan), COSTS)
    assert standings(by_name) == [("b", 1, NAMED), ("a", 2, OPEN)]
    assert slowdown(by_name["a"]).value == pytest.approx(math.exp(0.5))
    assert not slowdown(by_name["a"]).is_known
    assert (places(of(0.0), COSTS), places(of(), COSTS)) == ({"a": Place(1)}, {})


@pytest.mark.slow
@pytest.mark.parametrize("truth", TRUTHS.values(), ids=[*TRUTHS])
def test_bounds_keep_their_level(truth: Sequence[float]) -> None:
    """Over 300 points, of a run where points and rows scatter unequally; chance adds three standard errors.

    The named one's bound, and all upper ones of a point, are broken at no more than half a per cent for each rival, a
    row's lower one too, and a `fastest` that isn't is called so at no more than 1 %.
    """
    rng, count, logs = np.random.default_rng(1), 300, np.array(truth)
    sds = 0.008 * np.exp(rng.normal(0, 0.3, (count, len(logs), 1))) * np.geomspace(0.7, 2, count)[:, None, None]
    drawn = logs[:, None] + rng.normal(0, sds, (count, len(logs), 4))
    points = [Values(tuple(NAMES[: len(logs)]), own, np.full(own.shape, 2e-5)) for own in drawn]
    pooled, wrong = prior(points), np.zeros(4)
    for each in points:
        by_name = places(contrasts(each, pooled), COSTS)
        first, *others = (place.standing for place in by_name.values())
        assert first in (FASTEST, NAMED)
        assert {*others} <= ({SLOWER} if first == FASTEST else {SLOWER, OPEN})
        true = np.exp([logs[NAMES.index(name)] - logs.min() for name in by_name])
        low, high = np.array([(slowdown(place).low, slowdown(place).high) for place in by_name.values()]).T
        beyond, below = true > high * (1 + 1e-9), true < low * (1 - 1e-9)
        wrong += first == FASTEST and true[0] >= true[1:].min(), beyond[0], beyond.any(), below.mean()
    fastest, *of_bounds = wrong / count
    assert fastest <= 0.01 + 3 * math.sqrt(0.01 * 0.99 / count)
    level = 0.005 * (len(logs) - 1)
    assert max(of_bounds) <= level + 3 * math.sqrt(level * (1 - level) / count)


# the choice by the rows of a table


def row(name: str, rank: int, standing: str | None = None, high: float | None = None) -> Row:
    """Return the columns that are read here; `high` is the upper bound of the slowdown."""
    cells = {"implementation": name, "rank": rank, "standing": standing, "slowdown_high": high}
    return {"status": "ok", "latency_s": 0.02, **cells}


@pytest.mark.parametrize(
    ("rows", "chosen"),
    [
        ([row("c", 3, SLOWER, 1.4), row("a", 1, FASTEST, 1.0)], Choice(FASTEST, "a", 1.0)),
        (
            [row("d", 4, SLOWER, 1.6), row("c", 3, OPEN, 1.04), row("b", 2, OPEN, 1.02), row("a", 1, NAMED, 1.1)],
            Choice(NAMED, "a", 1.1, ("b", "c")),
        ),
        ([row("b", 2, OPEN, 1.02), row("a", 1, NAMED, 1.11)], Choice(UNDECIDED, "a", 1.11, ("b",))),
        ([row("a", 1, NAMED, 1.01)], Choice(NAMED, "a", 1.01)),
        ([row("b", 2, OPEN, 1.05)], Choice(NOT_TOLD)),
        ([], Choice(NOTHING)),
        ([row("a", 1)], Choice(ALONE, "a")),
    ],
    ids=["fastest", "named", "not decided", "rivals left out", "named one left out", "nothing", "alone"],
)
def test_the_rows_of_a_point_say_what_to_use(rows: list[Row], chosen: Choice) -> None:
    """Ranks decide, not the order of rows; an implementation that may cost more than 10 % is not recommended."""
    assert choice(rows) == chosen
    assert chosen.is_decided == (chosen.standing in (FASTEST, NAMED))


# who is measured on


def test_a_point_is_answered_when_the_named_one_costs_no_more_than_the_bound() -> None:
    """Two equally fast ones can't be told apart, but the cost of the named one is bounded."""
    high = math.exp(float(stats.t.ppf(0.995, FREEDOM)) * 0.01) - 1
    alike = of(0.0, 0.0, error=0.01)
    answered = answer(alike, COSTS, 1.001 * high)
    assert (answered.named, answered.candidates) == ("a", ())
    assert answered.bound == pytest.approx(high)
    assert answer(alike, COSTS, 0.999 * high).candidates == ("a", "b")


def test_those_that_may_be_faster_by_more_than_the_bound_are_left() -> None:
    """The second may be, the third may be faster by less, the last is slower; the named one stays for the ratios."""
    logs, most = (0.0, 0.005, 0.045, 0.5), float(stats.t.ppf(0.995, FREEDOM)) * 0.02
    assert most - logs[1] > math.log1p(0.02) > most - logs[2] > 0 > most - logs[3]
    result = answer(of(*logs), COSTS, 0.02)
    assert (result.named, result.candidates, result.is_good) == ("a", ("a", "b"), False)
    assert result.bound == pytest.approx(math.exp(most - logs[1]) - 1)
    assert answer(of(*logs), COSTS, 0.01).candidates == ("a", "b", "c")


def test_a_model_as_it_is_stays_until_it_is_known_whether_to_change_it() -> None:
    """The named one costs no more than the bound, and the unchanged model may be much slower, or as fast."""
    steps = of(0.0, 0.0, 0.045, error=np.array([[0, 0.005, 0.02], [0.005, 0, 0.02], [0.02, 0.02, 0]]))
    assert answer(steps, COSTS, 0.02).is_good
    model, costs = dataclasses.replace(steps, names=("eager", "sdpa", "as_is")), {"eager": 1, "sdpa": 2, "as_is": 0}
    assert answer(model, costs, 0.02).candidates == ("eager", "as_is")
    assert answer(model, costs, 0.2).is_good


def test_after_so_much_more_measuring_a_rival_is_no_longer_left() -> None:
    """An error falls with the root of the data; the named one is needed as long as any rival.

    It is first, the others keep their order, and each growth belongs to the implementation at the same index.
    """
    mixed = answer(of(0.004, 0.008, 0.0), COSTS, 0.02)
    assert (mixed.candidates, mixed.needed[0]) == (("c", "a", "b"), max(mixed.needed[1:]))
    logs = 0.0, 0.004, 0.008
    _, *growths = answer(of(*logs), COSTS, 0.02).needed
    for name, growth in zip("bc", growths, strict=True):
        before, after = (
            answer(of(*logs, error=0.02 / math.sqrt(1 + share * growth)), COSTS, 0.02) for share in (0.99, 1.01)
        )
        assert (name in before.candidates, name in after.candidates) == (True, False)


def test_who_is_far_behind_in_the_first_replicate_is_behind() -> None:
    """A later replicate says nothing of it, and neither does the lack of the first."""
    near, far = math.log(0.99 * BEHIND), math.log(1.01 * BEHIND)
    logs = np.array([[near, far], [0.0, 0.0], [far, 0.0], [math.nan, far]]) + 7.0
    assert behind(Values(tuple("abcd"), logs, np.ones_like(logs))) == {"c"}
    assert behind(Values(tuple("abcd"), logs, np.ones_like(logs)), {"c"}) == set()
    assert behind(Values((), np.empty((0, 0)), np.empty((0, 0)))) == set()


def test_the_fastest_keeps_a_rival() -> None:
    """The nearest one far behind is kept unless another one is near; the control isn't a rival."""
    logs = np.array([[0.0], [1.0], [0.5], [0.0]])
    names = ("eager", "mha", "sdpa", CONTROL)
    assert behind(Values(names, logs, np.ones_like(logs))) == {"mha"}
    assert behind(Values(names, logs, np.ones_like(logs)), {"mha"}) == {"sdpa"}
    assert behind(Values(names[2:], logs[2:], np.ones_like(logs[2:]))) == set()
