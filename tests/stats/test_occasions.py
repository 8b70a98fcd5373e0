"""What runs differ by beyond their processes."""

import math

import numpy as np
import pytest

from bench.stats.occasions import between

Rows = list[list[list[float]]]


def drawn(rng: np.random.Generator, occasion_sd: float, sd: float = 0.02) -> Rows:
    """Return four rows of five occasions of two processes, with these standard deviations."""
    centres = rng.normal(0, occasion_sd, (4, 5, 1))
    rows: Rows = (centres + rng.normal(0, sd, (4, 5, 2))).tolist()
    return rows


def test_the_component_of_occasions_is_found() -> None:
    """Over many draws its mean square is the true one, and 0 replaces what is negative."""
    rng = np.random.default_rng(1)
    squares = [between(drawn(rng, 0.03)).sd ** 2 for _ in range(2000)]
    assert np.mean(squares) == pytest.approx(0.03**2, rel=0.05)


def test_no_component_is_found_about_half_of_the_time() -> None:
    """If occasions are alike, the estimate is 0 or small, and its freedom is that of the occasions at least."""
    rng = np.random.default_rng(2)
    found = [between(drawn(rng, 0.0)) for _ in range(1000)]
    assert 0.4 < np.mean([each.sd == 0 for each in found]) < 0.7
    assert {each.freedom for each in found if each.sd == 0} == {16.0}


def test_rows_of_unlike_length_are_cut() -> None:
    """The third process of an occasion is left out if the others have two."""
    assert between([[[0.0, 1.0, 9.0], [2.0, 3.0]]]) == between([[[0.0, 1.0], [2.0, 3.0]]])


def test_a_worked_example() -> None:
    """Means 0.5 and 2.5: the mean squares are 4 and 0.5, so the component is (4 - 0.5) / 2."""
    found = between([[[0.0, 1.0], [2.0, 3.0]]])
    assert found.sd == pytest.approx(math.sqrt(1.75))
    assert found.freedom == pytest.approx(3.5**2 / (4**2 / 1 + 0.5**2 / 2))


@pytest.mark.parametrize("rows", [[], [[]], [[[0.1, 0.2]]], [[[0.1], [0.2]]]])
def test_too_little_tells_nothing(rows: Rows) -> None:
    """One occasion, or one process on each, has no component."""
    found = between(rows)
    assert math.isnan(found.sd)
    assert math.isnan(found.freedom)
