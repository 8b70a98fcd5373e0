"""Planted coefficients come back, and their intervals hold them."""

from itertools import islice

import numpy as np
import pytest

from bench.analyse.scaling.fit import Fit, fit
from bench.analyse.scaling.series import Row
from tests.analyse.planted import HELD, Law, drawn, draws, exact, row

PLACES = (50, 100, 197, 577, 1024)
TRUTHS = {
    "all": (2e-3, 1e-4, 2e-7),
    "nothing fixed": (0.0, 1e-4, 2e-7),
    "nothing linear": (2e-3, 0.0, 2e-7),
    "nothing quadratic": (2e-3, 1e-4, 0.0),
}


def law(fixed_s: float, per_token_s: float, per_pair_s: float) -> Law:
    """Return the law that has these coefficients."""
    return lambda tokens: fixed_s + per_token_s * tokens + per_pair_s * tokens**2


def values(found: Fit) -> tuple[float, ...]:
    """Return the coefficients of a fit."""
    return found.fixed_s.value, found.per_token_s.value, found.per_pair_s.value


def fitted(rows: list[Row]) -> Fit:
    """Return the fit of rows that have one."""
    found = fit(rows)
    assert found is not None
    return found


def times_held(rows: list[list[Row]], truth: tuple[float, float, float]) -> list[int]:
    """Return how often the interval of each coefficient holds its truth."""
    found = [(each.fixed_s, each.per_token_s, each.per_pair_s) for each in map(fitted, rows)]
    return [
        sum(of.low <= true <= of.high for of in column)
        for true, column in zip(truth, zip(*found, strict=True), strict=True)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("truth", TRUTHS.values(), ids=list(TRUTHS))
@pytest.mark.parametrize("processes", [3, 5])
def test_intervals_hold_planted_coefficients(truth: tuple[float, float, float], processes: int) -> None:
    """In 90 of 100 draws or more, for each coefficient, also where one is truly zero."""
    rows = [drawn(rng, {"sdpa": law(*truth)}, PLACES, processes=processes) for rng in draws(processes)]
    assert min(times_held(rows, truth)) >= HELD


def test_intervals_hold_where_places_scatter_unequally() -> None:
    """Ten times the noise at one place than at another, and three processes that can't tell."""
    truth, sd = TRUTHS["nothing fixed"], (0.1, 0.01, 0.05, 0.02, 0.01)
    rows = [drawn(rng, {"sdpa": law(*truth)}, PLACES, processes=3, sd=sd) for rng in draws(1)]
    assert min(times_held(rows, truth)) >= HELD


def test_intervals_are_no_wider_than_the_noise_asks() -> None:
    """With 3 % noise the quadratic coefficient of three processes is known to a sixth, of ten to a fifteenth."""
    truth = TRUTHS["all"]
    wide, narrow = (
        np.median(
            [_width(drawn(rng, {"sdpa": law(*truth)}, PLACES, processes=processes)) for rng in islice(draws(0), 20)]
        )
        for processes in (3, 10)
    )
    assert wide / 2 < truth[2] / 6
    assert narrow / 2 < truth[2] / 15


@pytest.mark.parametrize("truth", TRUTHS.values(), ids=list(TRUTHS))
def test_latencies_without_noise_give_the_coefficients_back(truth: tuple[float, float, float]) -> None:
    """What was planted comes back to seven digits of the whole, and the curve passes no latency."""
    found = fitted(exact("sdpa", law(*truth), PLACES))
    assert values(found) == pytest.approx(truth, rel=1e-6, abs=1e-12)
    assert found.deviation < 1e-9
    assert found.seconds(np.array([784.0]))[0] == pytest.approx(law(*truth)(784))


def test_no_coefficient_is_negative() -> None:
    """A law that bends down would cost less than nothing per pair: the fit is straight, and says how far off it is."""
    found = fitted(exact("sdpa", lambda tokens: tokens**0.5, PLACES))
    assert min(values(found)) >= 0
    assert found.per_pair_s.value == 0
    assert found.deviation > 0.05


def test_an_interval_holds_its_coefficient_and_nothing_below_zero() -> None:
    """However noisy the rows, low ≤ value ≤ high, and low is never negative."""
    for rng in draws(2):
        found = fitted(drawn(rng, {"sdpa": law(0.0, 1e-4, 1e-8)}, PLACES, processes=3, sd=0.2))
        assert all(
            0 <= each.low <= each.value <= each.high for each in (found.fixed_s, found.per_token_s, found.per_pair_s)
        )


def test_the_deviation_is_the_largest_share_by_which_the_curve_passes_a_latency() -> None:
    """One latency of four 20 % too high pulls the curve, which passes it by less than that and the others by more."""
    truth = law(*TRUTHS["all"])
    rows = exact("sdpa", truth, (50, 197, 577))
    off = fitted([*rows, row("sdpa", [1.2 * truth(1024)], num_tokens=1024)])
    assert 0.01 < off.deviation < 0.2


@pytest.mark.parametrize("places", [(), (50,), (50, 197), (50, 197, 577)])
def test_a_fit_needs_three_places(places: tuple[int, ...]) -> None:
    """A parabola goes through any two points in many ways, and through three in one, with intervals."""
    found = fit(drawn(np.random.default_rng(5), {"sdpa": law(*TRUTHS["all"])}, places, processes=3))
    assert (found is not None) == (len(places) == 3)
    assert found is None or found.per_token_s.is_known


@pytest.mark.parametrize("scatter", [0.0, 0.02])
def test_without_a_scatter_at_every_place_there_are_values_alone(scatter: float) -> None:
    """One process, or processes that agree to the last digit, give coefficients and no intervals."""
    truth = law(*TRUTHS["all"])
    rows = [row("sdpa", [truth(place) * (1 + scatter * k) for k in range(3)], num_tokens=place) for place in PLACES]
    alone = [row("sdpa", [truth(1024)], num_tokens=1024)] if scatter else []
    found = fitted([*rows[:-1], *alone] if scatter else rows)
    assert not any(each.is_known for each in (found.fixed_s, found.per_token_s, found.per_pair_s))
    assert found.per_pair_s.value > 0


def test_a_law_of_another_shape_widens_the_intervals() -> None:
    """Where latencies pass the curve by more than they scatter, the coefficients are less certain than their noise."""
    rough = {place: 1.2 if index % 2 else 1.0 for index, place in enumerate(PLACES)}
    truth = law(*TRUTHS["all"])
    rng, same = np.random.default_rng(1), np.random.default_rng(1)
    smooth = drawn(rng, {"sdpa": truth}, PLACES, processes=5, sd=0.005)
    bumpy = drawn(same, {"sdpa": lambda tokens: truth(tokens) * rough[tokens]}, PLACES, processes=5, sd=0.005)
    assert _width(bumpy) > 5 * _width(smooth)


def _width(rows: list[Row]) -> float:
    found = fitted(rows).per_pair_s
    return found.high - found.low
