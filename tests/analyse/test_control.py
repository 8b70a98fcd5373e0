"""The check of a run's errors by its control."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest

from bench.analyse.control import control
from bench.plan.case import CONTROL
from tests.make.records import case, record, samples
from tests.make.results import summarise

NAMES = ("sdpa", CONTROL, "eager", "mha", "flex")


def run(offsets: Sequence[float], processes: int = 4) -> pd.DataFrame:
    """Return the table of a run in which the control is faster than the baseline by these log ratios, by point.

    Points differ in their tokens, which count from 1, and all scatter by 1 %.
    """
    rng = np.random.default_rng(1)
    records = [
        record(case=case(name, num_tokens=tokens), process=process, samples=samples(time_s, time_s))
        for tokens, offset in enumerate(offsets, start=1)
        for process in range(processes)
        for name in NAMES
        for time_s in [math.exp(rng.normal(-offset if name == CONTROL else 0, 0.01))]
    ]
    return summarise(records, "sdpa")


def test_a_control_that_is_off_is_notable_and_widens_the_run() -> None:
    """By 6 % at each point, where the values of all scatter by 1 %: the interval of each row says so."""
    tables = run([0.0] * 6), run([0.06] * 6)
    assert [control(table).is_notable for table in tables] == [False, True]
    right, off = (np.log(of["speedup_high"] / of["speedup_low"])[of["implementation"] == "mha"] for of in tables)
    assert (off / right).min() > 4


@pytest.mark.parametrize(("offset", "excess"), [(0.0, 1.0), (0.02, 3.0)])
def test_the_excess_is_how_far_the_control_is_off_in_standard_errors(offset: float, excess: float) -> None:
    """1 % in four processes is an error of 0.71 % of a difference, and 2 % beside it make √(1 + 2.83²) of it."""
    offsets = np.random.default_rng(2).normal(0, offset, 40)
    assert control(run(offsets.tolist())).excess == pytest.approx(excess, rel=0.2)
