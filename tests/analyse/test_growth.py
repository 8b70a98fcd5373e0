"""How a series grows: planted exponents and coefficients come back, and their intervals hold them."""

from collections.abc import Sequence
from itertools import islice

import numpy as np
import pytest

from bench.analyse.axes import CHANNELS, HEADS, KEYS, SIZES, TOKENS, Axis
from bench.analyse.growth import Fit, Scaling, exponents, fit, scalings
from bench.analyse.rows import Row, by, log_latencies
from bench.analyse.standing import NAMED
from bench.plan.verdicts import SLOWER
from tests.make.rows import HELD, Law, draws, exact, planted, timed_row

PLACES = {TOKENS: (50, 197, 577, 1024), HEADS: (1, 3, 6, 12), CHANNELS: (96, 192, 384, 768), KEYS: (49, 77, 256, 850)}

FIT_PLACES = (50, 100, 197, 577, 1024)

TRUTHS = {
    "all": (2e-3, 1e-4, 2e-7),
    "nothing fixed": (0.0, 1e-4, 2e-7),
    "nothing linear": (2e-3, 0.0, 2e-7),
    "nothing quadratic": (2e-3, 1e-4, 0.0),
}


def ranked(rows: Sequence[Row]) -> list[Scaling]:
    """Return the series among rows, which are ranked by their latencies; the first of a point is named."""
    ranks = sorted(row["latency_s"] for row in rows)
    least = {at: min(row["latency_s"] for row in own) for at, own in by(rows, "num_tokens").items()}
    return scalings([
        {
            **row,
            "rank": ranks.index(row["latency_s"]),
            "standing": NAMED if row["latency_s"] == least[row["num_tokens"]] else SLOWER,
            "slowdown_high": None,
            "further_s": None,
        }
        for row in rows
    ])  # fmt: skip


# exponents


@pytest.mark.parametrize(("axis", "processes"), [*((axis, 3) for axis in SIZES), (TOKENS, 5)])
def test_intervals_hold_planted_exponents(axis: Axis, processes: int) -> None:
    """In 90 of 100 draws or more, for each pair of neighbouring places along each axis."""
    held = np.zeros(len(PLACES[axis]) - 1)
    for rng in draws(processes):
        rows = planted(rng, lambda n: 1e-4 * n**1.4, PLACES[axis], processes=processes, column=axis.column)
        slopes = [each.slope for each in exponents(PLACES[axis], log_latencies(rows))]
        held += [slope.low <= 1.4 <= slope.high for slope in slopes]
    assert held.min() >= HELD


def test_an_exponent_is_local() -> None:
    """Fixed cost first and pairs of tokens later: near 0 at few tokens, near 2 at many."""
    rows = exact("eager", lambda n: 1e-3 + 1e-9 * n**2, (10, 20, 10_000, 20_000))
    first, _, last = exponents((10, 20, 10_000, 20_000), log_latencies(rows))
    assert (first.start, first.end, last.start, last.end) == (10, 20, 10_000, 20_000)
    assert (first.slope.value, last.slope.value) == pytest.approx((0, 2), abs=0.02)


def test_memory_has_exact_exponents() -> None:
    """Bytes fourfold at twice the tokens are the exponent 2 without an interval; a place without bytes is left out."""
    rows = [timed_row("eager", [1.0] * 3, num_tokens=n, peak_bytes=8 * n**2) for n in (100, 200, 800)]
    (scaling,) = ranked([*rows, timed_row("eager", [1.0] * 3, num_tokens=300, peak_bytes=None)])
    memory = scaling.growths[0].memory
    assert [(each.start, each.end) for each in memory] == [(100, 200), (200, 800)]
    assert [each.slope.value for each in memory] == pytest.approx([2, 2])
    assert not any(each.slope.is_known for each in memory)


# series


def test_each_axis_has_its_series() -> None:
    """A cross of tokens, heads, channels and keys gives one series of each, and those of tokens and keys a fit."""
    width = {"channels": 384, "token_len": 384}  # a series of channels changes it
    rows = [
        each
        for axis in SIZES
        for each in exact("eager", float, PLACES[axis], axis.column, **({} if axis is CHANNELS else width))
    ]
    series = {scaling.axis: scaling for scaling in ranked(rows)}
    assert list(series) == [TOKENS, HEADS, CHANNELS, KEYS]
    assert [growth.fit is not None for scaling in series.values() for growth in scaling.growths] == [
        True,
        False,
        False,
        True,
    ]


def test_what_was_measured_once_has_no_exponent() -> None:
    """A slope needs two places and a parabola three; beside a series of its rivals, a single place has neither."""
    places = {"eager": (100, 200, 400), "flex": (200,), "sdpa": (100, 200)}
    (scaling,) = ranked([each for name, at in places.items() for each in exact(name, float, at)])
    eager, flex, sdpa = scaling.growths
    assert len(eager.latency) == 2
    assert (flex.latency, flex.memory, flex.fit) == ((), (), None)
    assert sdpa.fit is None
    assert sdpa.latency[0].slope.value == pytest.approx(1)


@pytest.mark.parametrize("places", [(100,), (100, 200)])
def test_without_two_places_of_one_implementation_there_is_no_series(places: tuple[int, ...]) -> None:
    """A single point is none, nor are two that no implementation was measured at both of."""
    assert ranked([timed_row(f"kernel{place}", [1.0], num_tokens=place) for place in places]) == []


def test_the_fastest_stands_by_place() -> None:
    """Who is fastest is asked at each place, of its rows alone."""
    rows = [*exact("eager", lambda n: n**2.0, (100, 400)), *exact("sdpa", lambda n: 200.0 * n, (100, 400))]
    (scaling,) = ranked(rows)
    assert {place: of.names for place, of in scaling.choices.items()} == {100: ("eager",), 400: ("sdpa",)}


# the fit


def law(fixed_s: float, per_token_s: float, per_pair_s: float) -> Law:
    """Return the law that has these coefficients."""
    return lambda tokens: fixed_s + per_token_s * tokens + per_pair_s * tokens**2


def fitted(rows: list[Row]) -> Fit:
    """Return the fit of rows that have one."""
    result = fit(rows)
    assert result is not None
    return result


def width(rows: list[Row]) -> float:
    """Return the width of the interval of the quadratic coefficient."""
    of = fitted(rows).coefficients_s[-1]
    return of.high - of.low


@pytest.mark.slow
@pytest.mark.parametrize(
    ("truth", "processes", "sd"),
    [
        *((truth, processes, 0.03) for truth in TRUTHS.values() for processes in (3, 5)),
        (TRUTHS["nothing fixed"], 3, (0.1, 0.01, 0.05, 0.02, 0.01)),
    ],
)
def test_intervals_hold_planted_coefficients(
    truth: tuple[float, float, float], processes: int, sd: float | tuple[float, ...]
) -> None:
    """In 90 of 100 draws or more, for each coefficient, also where one is truly zero.

    The last have ten times the noise at one place than at another, and three processes that can't tell.
    """
    fits = [fitted(planted(rng, law(*truth), FIT_PLACES, processes=processes, sd=sd)) for rng in draws(processes)]
    held = [[of.low <= true <= of.high for of, true in zip(each.coefficients_s, truth, strict=True)] for each in fits]
    assert np.sum(held, axis=0).min() >= HELD


def test_intervals_are_no_wider_than_the_noise_asks() -> None:
    """With 3 % noise the quadratic coefficient of three processes is known to a sixth, of ten to a fifteenth."""
    truth = TRUTHS["all"]
    for processes, share in ((3, 6), (10, 15)):
        rows = [planted(rng, law(*truth), FIT_PLACES, processes=processes) for rng in islice(draws(0), 20)]
        assert np.median([*map(width, rows)]) / 2 < truth[2] / share


@pytest.mark.parametrize("truth", TRUTHS.values(), ids=list(TRUTHS))
def test_latencies_without_noise_give_the_coefficients_back(truth: tuple[float, float, float]) -> None:
    """What was planted comes back to seven digits of the whole, and the curve passes no latency."""
    result = fitted(exact("sdpa", law(*truth), FIT_PLACES))
    assert [of.value for of in result.coefficients_s] == pytest.approx(truth, rel=1e-6, abs=1e-12)
    assert result.deviation < 1e-9
    assert result.seconds(np.array([784.0]))[0] == pytest.approx(law(*truth)(784))


def test_over_keys_the_fit_is_a_line() -> None:
    """At one query each key costs the same: two coefficients come back, and there is none of pairs."""
    rows = exact("sdpa", lambda keys: 2e-5 + 3e-8 * keys, (512, 1024, 2048, 8192), "num_kv_tokens", num_tokens=1)
    (scaling,) = ranked(rows)
    (growth,) = scaling.growths
    assert (scaling.axis, growth.fit is not None) == (KEYS, True)
    result = fit(rows, KEYS)
    assert result is not None
    assert [of.value for of in result.coefficients_s] == pytest.approx((2e-5, 3e-8))
    assert result.seconds(np.array([4096.0]))[0] == pytest.approx(2e-5 + 3e-8 * 4096)


def test_no_coefficient_is_negative() -> None:
    """A law that bends down would cost less than nothing per pair: the fit is straight, and says how far off it is.

    However noisy the rows, low ≤ value ≤ high, and low is never negative.
    """
    bent = fitted(exact("sdpa", lambda tokens: tokens**0.5, FIT_PLACES))
    assert min(of.value for of in bent.coefficients_s) == bent.coefficients_s[-1].value == 0
    assert bent.deviation > 0.05
    for rng in islice(draws(2), 30):
        noisy = fitted(planted(rng, law(0.0, 1e-4, 1e-8), FIT_PLACES, processes=3, sd=0.2))
        assert all(0 <= each.low <= each.value <= each.high for each in noisy.coefficients_s)


def test_the_deviation_is_the_largest_share_by_which_the_curve_passes_a_latency() -> None:
    """A latency that is 20 % too high pulls the curve, which passes it by less, and the other three by more."""
    truth = law(*TRUTHS["all"])
    rows = exact("sdpa", truth, (50, 197, 577))
    assert 0.01 < fitted([*rows, timed_row("sdpa", [1.2 * truth(1024)], num_tokens=1024)]).deviation < 0.2


@pytest.mark.parametrize("places", [(), (50,), (50, 197), (50, 197, 577)])
def test_a_fit_needs_three_places(places: tuple[int, ...]) -> None:
    """A parabola goes through any two points in many ways, and through three in one, with intervals."""
    result = fit(planted(np.random.default_rng(5), law(*TRUTHS["all"]), places, processes=3))
    assert (result is not None and result.coefficients_s[1].is_known) == (len(places) == 3)
    assert (result is None) == (len(places) < 3)


@pytest.mark.parametrize("scatter", [0.0, 0.02])
def test_without_a_scatter_at_every_place_there_are_values_alone(scatter: float) -> None:
    """A single process, or processes that agree to the last digit, give coefficients and no intervals."""
    truth = law(*TRUTHS["all"])
    rows = [
        timed_row("sdpa", [truth(place) * (1 + scatter * k) for k in range(3)], num_tokens=place)
        for place in FIT_PLACES[:-1]
    ]
    result = fitted([*rows, timed_row("sdpa", [truth(1024)] * (1 if scatter else 3), num_tokens=1024)])
    assert not any(each.is_known for each in result.coefficients_s)
    assert result.coefficients_s[-1].value > 0


def test_a_law_of_another_shape_widens_the_intervals() -> None:
    """Where latencies pass the curve by more than they scatter, the coefficients are less certain than their noise."""
    truth = law(*TRUTHS["all"])
    bumps = {place: 1.2 if index % 2 else 1.0 for index, place in enumerate(FIT_PLACES)}
    smooth, bumpy = (
        width(planted(np.random.default_rng(1), of, FIT_PLACES, processes=5, sd=0.005))
        for of in (truth, lambda tokens: truth(tokens) * bumps[tokens])
    )
    assert bumpy > 5 * smooth
