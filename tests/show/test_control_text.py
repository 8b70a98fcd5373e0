"""A run whose control is off is said to be unproven, with the ratio, the place and the baseline."""

import math

import pandas as pd

from bench.plan.case import CONTROL
from bench.show.control_text import unproven
from tests.examples import point
from tests.show.example_results import timed


def run(factor: float, *tokens: int, baseline: str = "eager") -> pd.DataFrame:
    """Return results in which the control takes this many times as long as the baseline at each of these tokens."""
    points = [point(num_tokens=each) for each in tokens]
    return timed(points, {baseline: 0.01, "sdpa": 0.005, CONTROL: 0.01 * factor})


def test_a_right_control_needs_no_words() -> None:
    """Nor does a run without one."""
    assert unproven(run(1.0, 50, 197)) == ""
    assert unproven(timed([point()], {"eager": 0.01, "sdpa": 0.005})) == ""


def test_the_clearest_point_is_named_and_the_others_are_counted() -> None:
    """With the ratio, its interval and the baseline."""
    text = unproven(run(1 / 1.5, 50, 197, 577))
    assert text.startswith("unproven: the control, a second eager, was measured 1.5")
    assert sum(f" at N={tokens}" in text for tokens in (50, 197, 577)) == 1
    assert "(3 of 3 points are off)" in text


def test_an_only_point_needs_no_name() -> None:
    """Nothing differs, so there is nothing to tell it by."""
    text = unproven(run(math.e, 50))
    assert "0.37" in text
    assert "N=" not in text
    assert "are off" not in text
