"""The implementation to use at a point: who is named, what that can cost, and that simulated truth keeps to it."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from bench.analyse.scaling.series import Row
from bench.analyse.standing import (
    ALONE,
    FASTEST,
    NAMED,
    NOT_TOLD,
    NOTHING,
    OPEN,
    SLOWER,
    Choice,
    Place,
    choice,
    cost,
    places,
)
from bench.stats.best import GOOD
from bench.stats.contrasts import Contrasts, Values, contrasts, prior

NAMES = ("eager", "sdpa", "mha", "online", "flex", "compiled_sdpa")

FIELDS = {
    "all equal": [0.0] * 6,
    "two equal, the rest far": [0.0, 0.0, 0.3, 0.3, 0.3, 0.3],
    "0, 1, 3 and 10 %": [*np.log([1.1, 1.0, 1.03, 1.01])],
}
"""True log times of the implementations of a point."""


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
