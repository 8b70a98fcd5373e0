"""The between-run variance component, from the changes between two runs."""

import math

import numpy as np
import pytest

from bench.stats.between_runs import LEAST_CHANGES, of_changes
from bench.stats.estimates import Estimates


@pytest.mark.parametrize("real", [0.0, 0.3])
def test_the_component_of_changes_is_right_in_the_median(real: float) -> None:
    """Of 80 changes in eight groups with errors of 1 and 3 %, whether or not a group changed as a whole by 30 %."""
    rng = np.random.default_rng(3)
    errors, groups = np.repeat([0.01, 0.03], 40), np.tile(np.arange(8), 10)
    for component, least, most in ((0.02, 0.018, 0.022), (0.0, 0.0, 0.004)):
        changes = rng.normal(0, np.hypot(errors, component), (150, 80)) + real * (groups == 0)
        estimates = [of_changes(Estimates(each, errors, np.full(80, 20.0)), groups.tolist()).sd for each in changes]
        assert least <= np.median(estimates) <= most


def test_real_changes_of_a_few_rows_are_no_scatter() -> None:
    """Ten rows of eighty that changed by 20 % leave a component of 2 % below 3 %."""
    values = np.random.default_rng(4).normal(0, 0.02, 80)
    values[:10] += 0.2
    estimate = of_changes(Estimates(values, np.full(80, 1e-4), np.full(80, 20.0)), [*range(2)] * 40)
    assert 0.015 < estimate.sd < 0.03


def test_few_changes_have_no_component() -> None:
    """Each group gives up one change for its middle; those without an error don't count."""
    count = LEAST_CHANGES + 2
    values, errors, freedom = np.linspace(-1, 1, count), np.full(count, 0.1), np.full(count, 9.0)
    errors[0] = np.nan
    assert of_changes(Estimates(values, errors, freedom), ["sdpa"] * count).sd > 0
    for groups in (["sdpa"] * (count - 1) + ["mha"], range(count)):
        assert math.isnan(of_changes(Estimates(values, errors, freedom), [*groups]).sd)
    assert math.isnan(of_changes(Estimates(values[:5], errors[:5], freedom[:5]), ["sdpa"] * 5).sd)
