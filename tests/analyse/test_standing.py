"""The implementation to use at a point: who is named, what that can cost, and that simulated truth keeps to it."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy import stats

from bench.analyse.series import Row
from bench.analyse.standing import (
    ALONE,
    BEHIND,
    FASTEST,
    NAMED,
    NOT_TOLD,
    NOTHING,
    OPEN,
    SLOWER,
    Choice,
    Look,
    Place,
    behind,
    choice,
    cost,
    look,
    places,
)
from bench.stats.best import GOOD
from bench.stats.contrasts import Contrasts, Values, contrasts, prior
from bench.stats.estimates import Array

NAMES = ("eager", "sdpa", "mha", "online", "flex", "compiled_sdpa")

FIELDS = {
    "all equal": [0.0] * 6,
    "two equal, the rest far": [0.0, 0.0, 0.3, 0.3, 0.3, 0.3],
    "0, 1, 3 and 10 %": [*np.log([1.1, 1.0, 1.03, 1.01])],
}
"""True log times of the implementations of a point."""


FREEDOM = 12.0
COSTS = {name: place for place, name in enumerate("abcdef")}


def placed(logs: Sequence[float], error: float, costs: Sequence[Any] = range(6)) -> dict[str, Place]:
    """Return the places of implementations with these log times, each pair with the same error."""
    names = NAMES[: len(logs)]
    errors = np.full((len(logs), len(logs)), error)
    of = Contrasts(names, np.subtract.outer(np.array(logs), np.array(logs)), errors, np.full_like(errors, 12.0))
    return places(of, dict(zip(names, costs, strict=False)))


def standings(found: dict[str, Place]) -> dict[str, tuple[int, str | None]]:
    """Return rank and standing of each."""
    return {name: (place.rank, place.standing) for name, place in found.items()}


def test_the_fastest_is_shown_to_be_faster_than_every_other() -> None:
    """Ten and twenty percent with an error of a tenth of a percent: one is the fastest, the others are slower."""
    found = placed([0.2, 0.0, 0.1], 0.001)
    assert standings(found) == {"sdpa": (1, FASTEST), "mha": (2, SLOWER), "eager": (3, SLOWER)}
    assert list(found) == ["sdpa", "mha", "eager"]
    slowdown = found["mha"].slowdown
    assert slowdown
    assert slowdown.value == pytest.approx(math.exp(0.1))
    assert 1 < slowdown.low < slowdown.value < slowdown.high
    assert found["sdpa"].slowdown
    assert (found["sdpa"].slowdown.low, found["sdpa"].slowdown.high) == (1, 1)


def test_of_those_that_may_cost_much_the_one_with_the_least_bound_is_named() -> None:
    """Errors of 2 % leave two open, whatever else they cost, and the one that is 20 % slower out."""
    found = placed([0.01, 0.0, 0.2], 0.02, costs=[1, 2, 3])
    assert standings(found) == {"sdpa": (1, NAMED), "eager": (2, OPEN), "mha": (3, SLOWER)}
    assert found["sdpa"].further > 0


def test_of_those_within_two_percent_the_one_that_costs_least_is_named() -> None:
    """The cheapest leads though another seems faster, and one that may cost more than 2 % is not asked."""
    found = placed([0.0, 0.004, 0.03], 0.002, costs=[2, 1, 0])
    assert standings(found) == {"sdpa": (1, NAMED), "eager": (2, OPEN), "mha": (3, SLOWER)}
    assert found["sdpa"].slowdown
    assert math.exp(0.004) < found["sdpa"].slowdown.high <= GOOD
    assert found["sdpa"].further == 0


def test_what_costs_a_user_least_is_not_compiled_then_small_then_first_in_the_catalogue() -> None:
    """Memory that isn't known comes last, and so does an implementation of a user's own."""
    rows: list[Row] = [
        {"implementation": "sdpa", "memory_bytes": 100},
        {"implementation": "eager", "memory_bytes": 200},
        {"implementation": "sdpa", "memory_bytes": 200},
        {"implementation": "users.kernel:adapt", "memory_bytes": 200},
        {"implementation": "mha", "memory_bytes": None},
        {"implementation": "compiled_sdpa", "memory_bytes": 100, "compile_cold_s": 3.0},
    ]
    assert sorted(rows[3:] + rows[:3], key=cost) == rows


def test_without_errors_the_least_value_is_named() -> None:
    """One process shows nobody to be slower."""
    found = placed([0.5, 0.0], math.nan)
    assert standings(found) == {"sdpa": (1, NAMED), "eager": (2, OPEN)}
    assert found["eager"].slowdown
    assert found["eager"].slowdown.value == pytest.approx(math.exp(0.5))
    assert not found["eager"].slowdown.is_known


def test_without_a_rival_there_is_no_standing() -> None:
    """One alone is the first of one, and nobody has no place."""
    assert placed([0.0], 0.01) == {"eager": Place(1)}
    assert placed([], 0.01) == {}


@pytest.mark.slow
@pytest.mark.parametrize("field", list(FIELDS))
def test_bounds_keep_their_level(field: str) -> None:
    """Over 600 points, of a run where points and rows scatter unequally; chance adds three standard errors.

    The named one's bound, and all bounds of a point, are broken at no more than 5 % of points, and a `fastest` that
    isn't is called so at no more than 1 %.
    """
    rng, truth, count = np.random.default_rng(1), np.array(FIELDS[field]), 600
    sds = 0.008 * np.exp(rng.normal(0, 0.3, (count, len(truth), 1))) * np.geomspace(0.7, 2, count)[:, None, None]
    logs = truth[:, None] + rng.normal(0, sds, (count, len(truth), 4))
    points = [Values(NAMES[: len(truth)], own, np.full(own.shape, 2e-5)) for own in logs]
    lent, wrong = prior(points), np.zeros(3)
    for each in points:
        found = places(contrasts(each, lent), dict(zip(NAMES, range(6), strict=True)))
        standing = [place.standing for place in found.values()]
        assert standing[0] in (FASTEST, NAMED)
        assert {*standing[1:]} <= ({SLOWER} if standing[0] == FASTEST else {SLOWER, OPEN})
        true = np.exp([truth[NAMES.index(name)] - truth.min() for name in found])
        low, high = np.array(
            [(place.slowdown.low, place.slowdown.high) for place in found.values() if place.slowdown]
        ).T
        broken = (true < low * (1 - 1e-9)) | (true > high * (1 + 1e-9))
        wrong += standing[0] == FASTEST and true[0] >= true[1:].min(), broken[0], broken.any()
    fastest, *of_bounds = wrong / count
    assert fastest <= 0.01 + 3 * math.sqrt(0.01 * 0.99 / count)
    assert max(of_bounds) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / count)


# the choice of the rows of a table


def row(name: str, rank: int, standing: str | None = None, *slowdown: float | None, further_s: Any = None) -> Row:
    """Return the columns that are read here."""
    ends = dict(zip(("slowdown", "slowdown_low", "slowdown_high"), slowdown or [None] * 3, strict=True))
    return {"implementation": name, "rank": rank, "standing": standing, "further_s": further_s, **ends}


def test_a_fastest_is_chosen_with_its_lead_over_the_nearest() -> None:
    """Each bound is the least of all rivals, whoever stands where in the table."""
    found = choice([
        row("c", 3, SLOWER, 1.2, 1.05, 1.4), row("a", 1, FASTEST, 1.0, 1.0, 1.0), row("b", 2, SLOWER, 1.1, 1.08, 1.12)
    ])  # fmt: skip
    assert (found.standing, found.name, found.names, found.high) == (FASTEST, "a", ("a",), 1)
    assert found.ahead
    assert (found.ahead.value, found.ahead.low, found.ahead.high) == (1.1, 1.05, 1.12)


def test_a_named_one_is_chosen_with_those_that_may_be_faster() -> None:
    """In the order of their ranks; one whose own bound is within 2 % is as good."""
    found = choice([
        row("d", 4, SLOWER, 1.5, 1.4, 1.6),
        row("c", 3, OPEN, 1.01, 1.0, 1.04),
        row("b", 2, OPEN, 1.0, 1.0, 1.02),
        row("a", 1, NAMED, 1.0, 1.0, 1.015, further_s=40.0),
    ])  # fmt: skip
    expected = Choice(NAMED, "a", 1.015, None, ("b", "c"), ("b",), 40.0)
    assert (found, found.names) == (expected, ("a", "b", "c"))


def test_without_bounds_the_first_is_chosen_and_nothing_is_as_good() -> None:
    """One process has no bounds, so any other may be faster by any share."""
    found = choice([row("a", 1, NAMED, 1.0, None, None), row("b", 2, OPEN, 1.5, None, None)])
    assert (found.name, math.isnan(found.high), found.may_be_faster, found.as_good) == ("a", True, ("b",), ())


def test_without_a_rival_there_is_no_choice() -> None:
    """One row, as where all others failed, and no row at all."""
    assert (choice([]).standing, choice([]).names) == (NOTHING, ())
    assert (choice([row("a", 1)]).standing, choice([row("a", 1)]).names) == (ALONE, ("a",))


def test_rows_that_are_left_out_change_no_standing() -> None:
    """Without its rivals the named row is named still; without the named row nothing is."""
    rows = [row("a", 1, NAMED, 1.0, 1.0, 1.01), row("b", 2, OPEN, 1.01, 1.0, 1.05)]
    assert [(each.standing, each.names) for each in map(choice, (rows, rows[:1], rows[1:]))] == [
        (NAMED, ("a", "b")),
        (NAMED, ("a",)),
        (NOT_TOLD, ()),
    ]


def of(*logs: float, error: float | Array = 0.02) -> Contrasts:
    """Return the contrasts of implementations with these log times; each pair has the same error, or one of its own."""
    difference = np.subtract.outer(np.array(logs), np.array(logs))
    errors = np.where(np.eye(len(logs), dtype=bool), 0.0, np.broadcast_to(error, difference.shape))
    return Contrasts(tuple("abcdef"[: len(logs)]), difference, errors, np.full(difference.shape, FREEDOM))


def test_a_point_with_a_fastest_is_answered() -> None:
    """However small the bound is, nothing is left to be measured."""
    found = look(of(0.1, 0.0, 0.2), COSTS, 0.0, 3)
    assert found == Look("b", 0.0, replicates=3)
    assert found.is_answered


def test_a_point_is_answered_when_the_named_one_costs_no_more_than_the_bound() -> None:
    """Two that are as fast as each other can't be told apart; what the named one can cost is known."""
    high = math.exp(float(stats.t.ppf(0.96, FREEDOM)) * 0.01) - 1
    alike = of(0.0, 0.0, error=0.01)
    answered = look(alike, COSTS, 1.001 * high)
    assert (answered.named, answered.left) == ("a", ())
    assert answered.bound == pytest.approx(high)
    assert look(alike, COSTS, 0.999 * high).left == ("a", "b")


def test_those_that_may_be_faster_by_more_than_the_bound_are_left() -> None:
    """The second may be, the third may be faster by less, the last is slower; the named one stays for the ratios."""
    logs, most = (0.0, 0.005, 0.04, 0.5), float(stats.t.ppf(1 - 0.04 / 3, FREEDOM)) * 0.02
    assert most - logs[1] > math.log1p(0.02) > most - logs[2] > 0 > most - logs[3]
    found = look(of(*logs), COSTS, 0.02)
    assert (found.named, found.left, found.is_answered) == ("a", ("a", "b"), False)
    assert found.bound == pytest.approx(math.exp(most - logs[1]) - 1)
    assert look(of(*logs), COSTS, 0.01).left == ("a", "b", "c")


def test_a_model_as_it_is_stays_until_it_is_known_whether_to_change_it() -> None:
    """The named one costs no more than the bound, and the model as it is may be much slower, or as fast."""
    steps = of(0.0, 0.0, 0.03, error=np.array([[0, 0.005, 0.02], [0.005, 0, 0.02], [0.02, 0.02, 0]]))
    assert look(steps, COSTS, 0.02).is_answered
    model = dataclasses.replace(steps, names=("eager", "sdpa", "as_is"))
    costs = {"eager": 1, "sdpa": 2, "as_is": 0}
    found = look(model, costs, 0.02)
    assert (found.named, found.left, found.is_answered) == ("eager", ("eager", "as_is"), False)
    assert look(model, costs, 0.2).is_answered


def test_the_named_one_is_first_wherever_it_stands() -> None:
    """The others keep their order, and each growth is that of the implementation at its place."""
    found = look(of(0.004, 0.008, 0.0), COSTS, 0.02)
    assert found.left == ("c", "a", "b")
    most, near, far = found.growths
    assert most == near > far > 0


def test_after_so_much_more_measuring_a_rival_is_no_longer_left() -> None:
    """An error falls with the root of what is measured; the named one is needed as long as any rival."""
    logs = 0.0, 0.004, 0.008
    _, *growths = look(of(*logs), COSTS, 0.02).growths
    for place, growth in enumerate(growths):
        before, after = (
            look(of(*logs, error=0.02 / math.sqrt(1 + share * growth)), COSTS, 0.02) for share in (0.99, 1.01)
        )
        assert ("bc"[place] in before.left, "bc"[place] in after.left) == (True, False)


@pytest.mark.parametrize("other", [1, 2])
def test_what_is_needed_may_be_unknown(other: int) -> None:
    """The named one seems slower than another by more than the bound: then nobody knows how long it is needed.

    The other one is not named itself, because a third may be much faster than it.
    """
    third, errors = 3 - other, np.full((3, 3), 0.02)
    errors[0, other] = errors[other, 0] = 0.001
    errors[other, third] = errors[third, other] = 0.2
    logs = [0.03, 0.0, 0.0]
    logs[third] = 0.03
    found = look(of(*logs, error=errors), COSTS, 0.02)
    assert found.left == ("a", "b", "c")
    assert np.isnan(found.growths).tolist() == [True, other == 1, other == 2]


def test_without_errors_all_are_left_for_an_unknown_time() -> None:
    """One process names the one that seemed fastest, and says nothing of what that can cost."""
    found = look(of(0.1, 0.0, 0.5, error=math.nan), COSTS, 0.02)
    assert (found.named, found.left) == ("b", ("b", "a", "c"))
    assert np.isnan([found.bound, *found.growths]).all()


@pytest.mark.parametrize("logs", [(), (0.0,)])
def test_without_two_there_is_nothing_to_look_at(logs: tuple[float, ...]) -> None:
    """One alone has no rival, so its point is answered, and nobody is named."""
    found = look(of(*logs), COSTS, 0.02, 2)
    assert (found.named, found.is_answered, found.growths) == ("", True, ())
    assert math.isnan(found.bound)


def test_who_is_far_behind_in_the_first_replicate_is_behind() -> None:
    """A later replicate says nothing of it, and neither does the lack of the first."""
    near, far = math.log(0.99 * BEHIND), math.log(1.01 * BEHIND)
    logs = np.array([[near, far], [0.0, 0.0], [far, 0.0], [math.nan, far]]) + 7.0
    assert behind(Values(tuple("abcd"), logs, np.ones_like(logs))) == {"c"}
    assert behind(Values((), np.empty((0, 0)), np.empty((0, 0)))) == set()
