"""The between-run variance component, from occasions and from changes."""

import math

import numpy as np
import pytest

from bench.stats.between_runs import LEAST_CHANGES, BetweenRuns, of_changes, of_occasions
from bench.stats.estimates import Estimates


def drawn(rng: np.random.Generator, occasion_sd: float, count: int) -> list[BetweenRuns]:
    """Return the estimates of so many draws of four rows of five occasions of two processes, which scatter by 2 %."""
    logs = rng.normal(0, occasion_sd, (count, 4, 5, 1)) + rng.normal(0, 0.02, (count, 4, 5, 2))
    return [of_occasions(rows) for rows in logs]


def test_the_component_of_occasions_is_right_on_average() -> None:
    """Over many draws its mean square is the true one, and 0 replaces what is negative."""
    squares = [each.sd**2 for each in drawn(np.random.default_rng(1), 0.03, 2000)]
    assert np.mean(squares) == pytest.approx(0.03**2, rel=0.05)


def test_of_equal_occasions_half_of_the_components_are_0() -> None:
    """If occasions are alike, the estimate is 0 or small, and its freedom is that of the occasions at least."""
    estimates = drawn(np.random.default_rng(2), 0.0, 1000)
    assert 0.4 < np.mean([each.sd == 0 for each in estimates]) < 0.7
    assert {each.freedom for each in estimates if each.sd == 0} == {16.0}


def test_a_worked_example() -> None:
    """Means 0.5 and 2.5: the mean squares are 4 and 0.5, so the component is (4 - 0.5) / 2."""
    example = of_occasions([np.array([[0.0, 1.0], [2.0, 3.0]])])
    assert example.sd == pytest.approx(math.sqrt(1.75))
    assert example.freedom == pytest.approx(3.5**2 / (4**2 / 1 + 0.5**2 / 2))


@pytest.mark.parametrize("shapes", [[], [(0, 2)], [(1, 2), (2, 1)]])
def test_too_few_occasions_or_processes_have_no_component(shapes: list[tuple[int, int]]) -> None:
    """One occasion, or one process on each."""
    estimate = of_occasions([np.zeros(shape) for shape in shapes])
    assert math.isnan(estimate.sd)
    assert math.isnan(estimate.freedom)


@pytest.mark.parametrize("real", [0.0, 0.3])
def test_the_component_of_changes_is_right_in_the_median(real: float) -> None:
    """Of 80 changes in eight groups with errors of 1 and 3 %, whether or not a group changed as a whole by 30 %."""
    rng = np.random.default_rng(3)
    errors, groups = np.repeat([0.01, 0.03], 40), np.tile(np.arange(8), 10)
    for component, least, most in ((0.02, 0.018, 0.022), (0.0, 0.0, 0.004)):
        changes = rng.normal(0, np.hypot(errors, component), (400, 80)) + real * (groups == 0)
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
