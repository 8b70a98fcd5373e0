"""The limits that verdicts keep."""

import math

import pytest

from bench.plan.errors import WrongRequest
from bench.stats.limits import EQUIVALENCE, Limits


@pytest.mark.parametrize(("margin", "bound"), [(0.0, EQUIVALENCE), (0.01, EQUIVALENCE), (0.05, 0.05)])
def test_rows_are_equivalent_at_least_up_to_the_margin(margin: float, bound: float) -> None:
    """Between a margin of 5 % and bounds of 2 % nothing could be told of a change of 3 %, however sure it is."""
    assert Limits(margin).bound == bound


@pytest.mark.parametrize("margin", [-0.01, math.nan, math.inf])
def test_impossible_margins_are_refused(margin: float) -> None:
    """The refusal says what is possible."""
    with pytest.raises(WrongRequest, match=f"margin = {margin} must be a number of at least 0"):
        Limits(margin)
