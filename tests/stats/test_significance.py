"""How sure a difference is agrees with scipy, with textbooks, and with simulated truth."""

import math
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from bench.stats.estimates import Estimates, half_widths
from bench.stats.replicates import Array
from bench.stats.significance import Moments, difference, holm, p_beyond, p_of_all, p_within

ROWS = 20_000
"""Simulated rows; the standard error of a share near 5 % is then 0.15 %."""


def test_welch_agrees_with_scipy() -> None:
    """Value, degrees of freedom, interval and p-value at a margin of 0 are those of scipy's Welch test."""
    rng = np.random.default_rng(0)
    base, new = rng.normal(0, 1, 6), rng.normal(0.8, 3, 11)
    expected = stats.ttest_ind(new, base, equal_var=False)
    interval = expected.confidence_interval(0.95)
    found = difference(sample([base]), sample([new]))
    half = half_widths(found)
    assert found.freedom[0] == pytest.approx(expected.df)
    assert found.value[0] - half[0] == pytest.approx(interval.low)
    assert found.value[0] + half[0] == pytest.approx(interval.high)
    assert p_beyond(found, 0.0)[0] == pytest.approx(expected.pvalue)


def test_two_tests_within_bounds_agree_with_scipy() -> None:
    """The p-value is the larger of two one-sided tests of shifted samples."""
    rng = np.random.default_rng(3)
    base, new = rng.normal(0, 1, 8), rng.normal(0.2, 2, 8)
    above = stats.ttest_ind(new + 1.5, base, equal_var=False, alternative="greater").pvalue
    below = stats.ttest_ind(new - 1.5, base, equal_var=False, alternative="less").pvalue
    assert p_within(difference(sample([base]), sample([new])), 1.5)[0] == pytest.approx(max(above, below))


def test_what_occasions_differ_by_keeps_the_level() -> None:
    """Two runs of the same thing on two occasions differ in 5 % of rows at 5 %; without the component, in many more."""
    rng = np.random.default_rng(7)
    sd, between_sd, count = 0.02, 0.015, 5
    base, new = (sample([*(rng.normal(0, between_sd, (ROWS, 1)) + rng.normal(0, sd, (ROWS, count)))]) for _ in "ab")
    apart = Estimates(np.zeros(1), np.array([between_sd * math.sqrt(2)]), np.array([math.inf]))
    share = np.mean(p_beyond(difference(base, new, apart), 0.0) < 0.05)
    assert 0.03 < share < 0.055
    assert np.mean(p_beyond(difference(base, new), 0.0) < 0.05) > 2 * 0.05


def test_an_unknown_component_changes_nothing() -> None:
    """An error of 0 leaves value, error and freedom as they are."""
    base, new = sample([np.array([0.0, 0.1, 0.3])]), sample([np.array([0.2, 0.2, 0.5])])
    plain = difference(base, new)
    apart = difference(base, new, Estimates(np.zeros(1), np.zeros(1), np.array([math.inf])))
    for name in ("value", "error", "freedom"):
        assert getattr(apart, name) == pytest.approx(getattr(plain, name))


@pytest.mark.parametrize("count", [0, 1])
def test_one_value_tells_no_scatter(count: int) -> None:
    """A side of fewer than two values leaves value without standard error, even if a spread is claimed for it."""
    found = difference(summary(0.0, 0.1, count), summary(1.0, 0.1, 5))
    assert found.value[0] == 1.0
    assert math.isnan(found.error[0])


def test_no_scatter_on_both_sides_is_not_certainty() -> None:
    """Two sides without scatter give neither interval nor p-values, rather than infinite ones."""
    found = difference(summary(0.0, 0.0, 5), summary(1.0, 0.0, 5))
    said = (found.error, half_widths(found), p_beyond(found, 0.1), p_within(found, 2))
    assert all(math.isnan(value[0]) for value in said)


def test_no_scatter_on_one_side_leaves_the_other_sides_freedom() -> None:
    """All of the variance, and so its degrees of freedom, comes from the side that scatters; no change has p = 1."""
    found = difference(summary(0.0, 0.0, 5), summary(1.0, 0.3, 9))
    assert found.freedom[0] == pytest.approx(8)
    assert found.error[0] == pytest.approx(0.1)
    assert p_beyond(difference(summary(1.0, 0.1, 5), summary(1.0, 0.1, 5)), 0.2)[0] == pytest.approx(1)


@pytest.mark.parametrize("margin", [0.0, 0.5, 5.0])
def test_change_of_exactly_the_margin_is_called_beyond_it_at_the_level(margin: float) -> None:
    """Of rows that truly changed by the margin, 5 in 100 have p < 0.05, at no margin and at a wide one."""
    share = float(np.mean(p_beyond(simulated(change=margin), margin) < 0.05))
    assert share == pytest.approx(0.05, abs=0.008)


def test_change_of_exactly_the_bound_is_called_within_it_at_the_level() -> None:
    """Of rows that truly changed by the bound, 5 in 100 are taken as equivalent."""
    share = float(np.mean(p_within(simulated(change=5.0), 5.0) < 0.05))
    assert share == pytest.approx(0.05, abs=0.008)


def test_holm_gives_each_p_value_the_same_in_any_order() -> None:
    """Ties and missing values included, the adjusted value belongs to the p-value and not to its place."""
    values = (0.01, 0.02, 0.02, math.nan)
    for order in permutations(range(4)):
        found = holm(np.array([values[index] for index in order]))
        assert found == pytest.approx([[0.03, 0.04, 0.04, math.nan][index] for index in order], nan_ok=True)


def test_holm_keeps_the_level_of_a_whole_table() -> None:
    """At 10 %, some 10 of 100 tables of 50 unchanged rows raise an alarm, where nearly all would uncorrected."""
    p_values = p_beyond(simulated(change=0.0), 0.0).reshape(-1, 50)
    corrected = [bool((holm(table) < 0.1).any()) for table in p_values]
    assert np.mean(corrected) == pytest.approx(0.1, abs=0.06)  # four standard errors over 400 tables
    assert np.mean((p_values < 0.1).any(axis=1)) > 0.95


def sample(rows: list[Array]) -> Moments:
    """Return the summary of these rows of values."""
    values = np.array(rows)
    return Moments(values.mean(axis=1), values.std(axis=1, ddof=1), np.full(len(values), float(values.shape[1])))


def summary(mean: float, sd: float, count: int) -> Moments:
    """Return a sample of one row that is known by its summary."""
    return Moments(np.array([mean]), np.array([sd]), np.array([float(count)]))


def simulated(change: float, count: int = 10) -> Estimates:
    """Return the differences of many rows whose means truly differ by `change` standard deviations."""
    rng = np.random.default_rng(7)
    base, new = rng.normal(0, 1, (ROWS, count)), rng.normal(change, 1, (ROWS, count))
    return difference(sample(list(base)), sample(list(new)))


@pytest.mark.parametrize(
    ("p_values", "adjusted"),
    [
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),
        ([math.nan, 0.02, math.nan, 0.01], [math.nan, 0.02, math.nan, 0.02]),
        ([0.9, 0.8, 0.7], [1, 1, 1]),
        ([math.nan], [math.nan]),
        ([], []),
    ],
)
def test_holm_gives_the_textbook_example(p_values: list[float], adjusted: list[float]) -> None:
    """Of four p-values the smallest counts four times, the next three times; what wasn't tested doesn't count."""
    assert holm(np.array(p_values)) == pytest.approx(adjusted, nan_ok=True)


def test_of_one_test_the_p_value_of_all_is_twice_its_own() -> None:
    """Both ways to combine give the p-value itself, and they share the level; above 5 % it is no evidence."""
    for p, expected in [(0.05, 0.1), (0.003, 0.006), (0.051, 1.0), (1.0, 1.0)]:
        assert p_of_all(np.array([p])) == pytest.approx(expected)


def test_what_was_not_tested_is_no_evidence() -> None:
    """Missing values don't count, in whatever number, and without any test nothing is shown."""
    assert p_of_all(np.array([math.nan, 0.003, math.nan])) == p_of_all(np.array([0.003]))
    assert p_of_all(np.array([math.nan])) == p_of_all(np.array([])) == 1.0


def test_several_small_p_values_say_more_than_the_smallest_of_them() -> None:
    """By the product of two p-values that are both 1 %, whose distribution is known: 1 % only by the smallest."""
    # both up to 5 %: their product over 0.05² is that of two uniform values, P(UV < x) = x (1 - ln x); one: x = 0.002
    both, one = 0.04, 0.0001 / 0.05
    product = 0.05**2 * both * (1 - math.log(both)) + 2 * 0.05 * 0.95 * one
    assert p_of_all(np.array([0.01, 0.01])) == pytest.approx(2 * product)
    assert p_of_all(np.array([0.01, 0.9])) == pytest.approx(2 * 2 * 0.01)


@pytest.mark.parametrize("tests", [1, 4, 12, 40])
@pytest.mark.parametrize("values", [3, 10])
def test_of_true_hypotheses_one_set_in_a_hundred_is_an_alarm(tests: int, values: int) -> None:
    """The rows scatter unequally. One of twelve 95 % intervals excludes the truth in half of all sets."""
    p_values = simulated_p_values(np.zeros(tests), values)
    alarms = np.mean([p_of_all(each) < 0.01 for each in p_values])
    assert 0.002 < alarms < 0.013  # three standard errors above 1 %; the two ways to combine share the level
    if tests == 12:
        assert np.mean((p_values < 0.05).any(axis=1)) == pytest.approx(0.46, abs=0.04)


@pytest.mark.parametrize(
    ("effects", "fewest"),
    [((6.0,) + (0.0,) * 11, 0.8), ((2.0,) * 12, 0.98)],
)
def test_one_large_effect_is_found_and_several_small_ones(effects: tuple[float, ...], fewest: float) -> None:
    """Of five values each, with twelve tests: one effect of six standard deviations, and twelve of two."""
    p_values = simulated_p_values(np.array(effects), 5)
    assert np.mean([p_of_all(each) < 0.01 for each in p_values]) > fewest


def simulated_p_values(effects: Array, values: int, sets: int = 2000) -> Array:
    """Return the p-values of means that truly are `effects` standard deviations away from 0, sets by tests."""
    rng = np.random.default_rng(11)
    sds = np.exp(0.5 * rng.standard_normal((sets, len(effects), 1)))
    drawn = sds * (effects[:, None] + rng.standard_normal((sets, len(effects), values)))
    return np.asarray(stats.ttest_1samp(drawn, 0.0, axis=-1).pvalue)
