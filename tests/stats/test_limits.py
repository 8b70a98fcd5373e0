"""The limits of verdicts, and their tests, which agree with scipy, with textbooks, and with simulated truth."""

import math
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from bench.plan.errors import WrongRequest
from bench.stats.estimates import Array, Estimates, combined
from bench.stats.limits import EQUIVALENCE, Limits, holm, p_beyond, p_within

ROWS = 20_000
"""Simulated rows; the standard error of a share near 5 % is then 0.15 %."""


def difference(base: Array, new: Array) -> Estimates:
    """Return the differences of the means of values in the last axis."""
    sides = [
        (side.mean(axis=-1), side.std(axis=-1, ddof=1) / math.sqrt(side.shape[-1]), side.shape[-1] - 1.0)
        for side in (base, new)
    ]
    parts = (np.stack(np.broadcast_arrays(*part), axis=-1) for part in zip(*sides, strict=True))
    return combined(np.array([-1.0, 1.0]), Estimates(*parts))


def simulated(change: float, count: int = 10) -> Estimates:
    """Return the differences of many rows whose means truly differ by `change` standard deviations."""
    rng = np.random.default_rng(7)
    return difference(rng.normal(0, 1, (ROWS, count)), rng.normal(change, 1, (ROWS, count)))


def test_rows_are_equivalent_at_least_up_to_the_margin() -> None:
    """Between a margin of 5 % and bounds of 2 % a change of 3 % would have no verdict, however sure it is."""
    assert [Limits(margin).bound for margin in (0.0, 0.01, 0.05)] == [EQUIVALENCE, EQUIVALENCE, 0.05]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("margin", (-0.01, math.nan, math.inf)),
        ("equivalence", (0.0, math.nan, math.inf)),
        ("level", (0.0, 1.0, math.nan)),
    ],
)
def test_impossible_limits_are_refused(name: str, values: tuple[float, ...]) -> None:
    """The refusal names the limit and its value."""
    for value in values:
        with pytest.raises(WrongRequest, match=f"{name} = {value} must"):
            Limits(**{name: value})


def test_welch_agrees_with_scipy() -> None:
    """The p-value at a margin of 0 is that of scipy's Welch test."""
    rng = np.random.default_rng(0)
    base, new = rng.normal(0, 1, 6), rng.normal(0.8, 3, 11)
    expected = stats.ttest_ind(new, base, equal_var=False)
    assert p_beyond(difference(base, new), 0.0) == pytest.approx(expected.pvalue)


def test_two_tests_within_bounds_agree_with_scipy() -> None:
    """The p-value is the larger of two one-sided tests of shifted samples."""
    rng = np.random.default_rng(3)
    base, new = rng.normal(0, 1, 8), rng.normal(0.2, 2, 8)
    above = stats.ttest_ind(new + 1.5, base, equal_var=False, alternative="greater").pvalue
    below = stats.ttest_ind(new - 1.5, base, equal_var=False, alternative="less").pvalue
    assert p_within(difference(base, new), 1.5) == pytest.approx(max(above, below))


@pytest.mark.parametrize("margin", [0.0, 0.5, 5.0])
def test_change_of_exactly_the_margin_is_called_beyond_it_at_the_level(margin: float) -> None:
    """Of rows that truly changed by the margin, 5 in 100 have p < 0.05, at no margin and at a wide one.

    As many are taken as equivalent if the bound is the wide one.
    """
    changes = simulated(margin)
    assert np.mean(p_beyond(changes, margin) < 0.05) == pytest.approx(0.05, abs=0.008)
    if margin == 5.0:
        assert np.mean(p_within(changes, margin) < 0.05) == pytest.approx(0.05, abs=0.008)


def test_holm_gives_each_p_value_the_same_in_any_order() -> None:
    """Ties and missing values included, the adjusted value belongs to the p-value and not to its place."""
    values, adjusted = np.array([0.01, 0.02, 0.02, math.nan]), np.array([0.03, 0.04, 0.04, math.nan])
    for order in map(list, permutations(range(4))):
        assert holm(values[order]) == pytest.approx(adjusted[order], nan_ok=True)


def test_holm_keeps_the_level_of_a_whole_table() -> None:
    """At 10 %, some 10 of 100 tables of 50 unchanged rows raise an alarm, where nearly all would uncorrected."""
    p_values = p_beyond(simulated(change=0.0), 0.0).reshape(-1, 50)
    corrected = [bool((holm(table) < 0.1).any()) for table in p_values]
    assert np.mean(corrected) == pytest.approx(0.1, abs=0.06)  # four standard errors over 400 tables
    assert np.mean((p_values < 0.1).any(axis=1)) > 0.95


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
