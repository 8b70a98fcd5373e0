"""By how much the second baseline of a run differs from the first, in words."""

import math
import re

import pandas as pd

from bench.plan.case import CONTROL
from bench.show.control_text import noise, warning
from tests.examples import point
from tests.show.example_results import timed


def run(factor: float, *tokens: int) -> pd.DataFrame:
    """Return results in which the control takes this many times as long as the baseline at the last of these tokens."""
    points = [point(num_tokens=each) for each in tokens]
    slow = {CONTROL: lambda at: 0.01 * (factor if at == points[-1] else 1.0)}
    return timed(points, {"eager": 0.01, "sdpa": 0.005, **slow})


def test_a_right_control_is_told_and_is_no_warning() -> None:
    """The largest difference is at most what the times were drawn with; a run without a control tells none."""
    found = re.fullmatch(
        r"a second eager differed from the first by up to ([\d.]+)% \(N=\d+\)", noise(run(1.0, 50, 197))
    )
    assert found
    assert 0 < float(found[1]) < 2
    assert warning(run(1.0, 50, 197)) == ""
    without = timed([point()], {"eager": 0.01, "sdpa": 0.005})
    assert noise(without) == warning(without) == ""


def test_a_control_that_differs_is_a_warning_with_its_point() -> None:
    """Whether it is faster or slower, the difference is said as a multiple above 1, and all bounds are wider."""
    for factor in (1.5, 1 / 1.5):
        found = re.search(
            r"by up to (\d+)% \(N=577\); so all intervals and bounds are", warning(run(factor, 50, 197, 577))
        )
        assert found
        assert 47 <= int(found[1]) <= 53


def test_an_only_point_needs_no_name() -> None:
    """Nothing differs, so there is nothing to tell it by."""
    assert "N=" not in warning(run(math.e, 50))
    assert "first by up to 17" in warning(run(math.e, 50))
