"""The limits that verdicts keep."""

import math

import numpy as np
import pytest
from scipy import stats

from bench.plan.errors import WrongRequest
from bench.stats.estimates import Estimates
from bench.stats.limits import EQUIVALENCE, POWER, Limits, detectable, judged
from bench.stats.significance import p_beyond


@pytest.mark.parametrize(("margin", "bound"), [(0.0, EQUIVALENCE), (0.01, EQUIVALENCE), (0.05, 0.05)])
def test_rows_are_equivalent_at_least_up_to_the_margin(margin: float, bound: float) -> None:
    """Between a margin of 5 % and bounds of 2 % a change of 3 % would have no verdict, however sure it is."""
    assert Limits(margin).bound == bound


@pytest.mark.parametrize("margin", [-0.01, math.nan, math.inf])
def test_impossible_margins_are_refused(margin: float) -> None:
    """The refusal says what is possible."""
    with pytest.raises(WrongRequest, match=f"margin = {margin} must be a number of at least 0"):
        Limits(margin)


@pytest.mark.parametrize(("error", "freedom"), [(0.004, 4.0), (0.03, 20.0)])
def test_a_detectable_change_is_found_in_four_of_five_comparisons(error: float, freedom: float) -> None:
    """By simulation at 1 %; a little more often with few degrees of freedom, or errors that are small to the margin."""
    rng, count = np.random.default_rng(1), 20_000
    change = detectable(Estimates(*np.array([[0.0], [error], [freedom]])), 0.01, 0.01)
    values = math.log1p(change) + error * rng.standard_normal(count)
    errors = error * np.sqrt(rng.chisquare(freedom, count) / freedom)
    shown = p_beyond(Estimates(values, errors, np.full(count, freedom)), math.log1p(0.01)) < 0.01
    assert POWER - 0.02 < np.mean(shown) < POWER + 0.1


def test_without_a_scatter_no_change_is_known_to_be_detectable() -> None:
    """What has no error is left out, and an error without bounds leaves a finite number."""
    columns = np.array([[0.0, 0.0], [math.nan, 0.0], [math.nan, 3.0]])
    assert math.isnan(detectable(Estimates(*columns), 0.01, 0.01))
    assert math.isfinite(detectable(Estimates(*np.array([[0.0], [1e6], [3.0]])), 0.01, 0.01))


@pytest.mark.parametrize(("share", "verdict"), [(1.0, "equivalent"), (0.8, "inconclusive")])
def test_a_part_of_the_level_needs_more_to_show_that_rows_are_equivalent(share: float, verdict: str) -> None:
    """The larger of the two one-sided tests has a p-value of 0.045, between 4 and 5 %."""
    error = math.log1p(EQUIVALENCE) / stats.norm.isf(0.045)
    change = Estimates(*np.array([[0.0], [error], [1e6]]))
    assert judged(change, np.array([False]), Limits(), share=share).tolist() == [verdict]
