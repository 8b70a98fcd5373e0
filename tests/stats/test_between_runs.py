"""What runs differ by beyond their processes."""

import math

import numpy as np
import pytest

from bench.stats.between_runs import LEAST_CHANGES, BetweenRuns, of_changes, of_occasions
from bench.stats.estimates import Estimates

Rows = list[list[list[float]]]


def drawn(rng: np.random.Generator, occasion_sd: float, sd: float = 0.02) -> Rows:
    """Return four rows of five occasions of two processes, with these standard deviations."""
    centres = rng.normal(0, occasion_sd, (4, 5, 1))
    rows: Rows = (centres + rng.normal(0, sd, (4, 5, 2))).tolist()
    return rows


def test_the_component_of_occasions_is_found() -> None:
    """Over many draws its mean square is the true one, and 0 replaces what is negative."""
    rng = np.random.default_rng(1)
    squares = [of_occasions(drawn(rng, 0.03)).sd ** 2 for _ in range(2000)]
    assert np.mean(squares) == pytest.approx(0.03**2, rel=0.05)


def test_no_component_is_found_about_half_of_the_time() -> None:
    """If occasions are alike, the estimate is 0 or small, and its freedom is that of the occasions at least."""
    rng = np.random.default_rng(2)
    found = [of_occasions(drawn(rng, 0.0)) for _ in range(1000)]
    assert 0.4 < np.mean([each.sd == 0 for each in found]) < 0.7
    assert {each.freedom for each in found if each.sd == 0} == {16.0}


def test_rows_of_unlike_length_are_cut() -> None:
    """The third process of an occasion is left out if the others have two."""
    assert of_occasions([[[0.0, 1.0, 9.0], [2.0, 3.0]]]) == of_occasions([[[0.0, 1.0], [2.0, 3.0]]])


def test_a_worked_example() -> None:
    """Means 0.5 and 2.5: the mean squares are 4 and 0.5, so the component is (4 - 0.5) / 2."""
    found = of_occasions([[[0.0, 1.0], [2.0, 3.0]]])
    assert found.sd == pytest.approx(math.sqrt(1.75))
    assert found.freedom == pytest.approx(3.5**2 / (4**2 / 1 + 0.5**2 / 2))


@pytest.mark.parametrize("rows", [[], [[]], [[[0.1, 0.2]]], [[[0.1], [0.2]]]])
def test_too_little_tells_nothing(rows: Rows) -> None:
    """One occasion, or one process on each, has no component."""
    found = of_occasions(rows)
    assert math.isnan(found.sd)
    assert math.isnan(found.freedom)


def changes(rng: np.random.Generator, component: float, real: float = 0.0) -> BetweenRuns:
    """Return what 80 changes of eight groups tell, whose errors are 1 and 3 %; the first group has a real change."""
    errors = np.repeat([0.01, 0.03], 40)
    groups = np.tile(np.arange(8), 10)
    values = rng.normal(0, np.hypot(errors, component)) + real * (groups == 0)
    return of_changes(Estimates(values, errors, np.full(80, 20.0)), groups.tolist())


@pytest.mark.parametrize("real", [0.0, 0.3])
def test_what_two_occasions_differ_by_is_found(real: float) -> None:
    """In the median of many draws it is the true one, whether or not a group changed as a whole by 30 %."""
    rng = np.random.default_rng(3)
    assert np.median([changes(rng, 0.02, real).sd for _ in range(400)]) == pytest.approx(0.02, rel=0.1)
    assert np.median([changes(rng, 0.0, real).sd for _ in range(400)]) < 0.004


def test_real_changes_of_a_few_rows_are_no_scatter() -> None:
    """Ten rows of eighty that changed by 20 % leave a component of 2 % below 3 %."""
    rng = np.random.default_rng(4)
    values = rng.normal(0, 0.02, 80)
    values[:10] += 0.2
    found = of_changes(Estimates(values, np.full(80, 1e-4), np.full(80, 20.0)), [*range(2)] * 40)
    assert 0.015 < found.sd < 0.03


def test_few_changes_tell_nothing() -> None:
    """Each group gives up one change for its middle; those without an error don't count."""
    enough = LEAST_CHANGES + 1
    values, errors, freedom = np.linspace(-1, 1, enough + 1), np.full(enough + 1, 0.1), np.full(enough + 1, 9.0)
    errors[0] = np.nan
    assert of_changes(Estimates(values, errors, freedom), ["sdpa"] * (enough + 1)).sd > 0
    for groups in (["sdpa"] * enough + ["mha"], range(enough + 1)):
        assert math.isnan(of_changes(Estimates(values, errors, freedom), [*groups]).sd)
    assert math.isnan(of_changes(Estimates(values[:5], errors[:5], freedom[:5]), ["sdpa"] * 5).sd)
