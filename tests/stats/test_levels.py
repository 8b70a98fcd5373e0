"""A common level: rows that changed don't carry it away, and a vague baseline adds little to the errors of others."""

import math

import numpy as np
import pytest

from bench.stats.estimates import Estimates
from bench.stats.levels import relative

WELL = np.array([False, True, True, True])
"""The baseline comes first, and was measured in few processes."""


def changes(*values: float, errors: tuple[float, ...] = (0.03, 0.004, 0.004, 0.004)) -> Estimates:
    """Return changes of rows by themselves."""
    return Estimates(np.array(values), np.array(errors), np.full(len(values), 20.0))


def test_a_row_is_compared_with_the_others_that_were_measured_well() -> None:
    """The error of the row's change is hardly larger than its own, though the baseline's is seven times as large."""
    of = relative(changes(0.05, 0.0, 0.0, 0.0), WELL, 0)
    assert of
    assert abs(of.value[1:]).max() < 0.003
    assert (of.error[1:] < 0.006).all()
    assert of.value[0] == pytest.approx(0.05)


@pytest.mark.parametrize("row", [1, 2, 3])
def test_a_row_that_changed_does_not_carry_the_level_away(row: int) -> None:
    """The row has its whole change, and the others have none."""
    values = [0.0] * 4
    values[row] = -0.2
    of = relative(changes(*values), WELL, 0)
    assert of
    assert of.value == pytest.approx(values, abs=1e-3)


def test_a_row_without_an_error_belongs_to_no_level() -> None:
    """Such a row can't be judged, and the others are."""
    of = relative(changes(0.0, 0.0, 0.0, 0.5, errors=(0.03, 0.004, 0.004, math.nan)), WELL, 0)
    assert of
    assert np.isnan(of.error).tolist() == [False, False, False, True]


def test_without_three_rows_that_agree_the_baseline_alone_tells() -> None:
    """Of two nobody knows which one changed; and if all others moved, the baseline may be what stayed."""
    assert relative(changes(0.0, 0.1, 0.0, 0.0), np.array([False, True, False, False]), 0) is None
    assert relative(changes(0.0, 0.1, 0.0, math.nan, errors=(0.03, 0.004, 0.004, math.nan)), WELL, 0) is None
    assert relative(changes(0.0, 0.2, 0.2, 0.2), WELL, 0) is None
