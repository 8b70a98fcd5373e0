"""What the control of a run says: nothing if it is as fast as the baseline, within what chance makes."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest

from bench.analyse.control import control
from bench.analyse.summary import summarise
from bench.plan.case import CONTROL, Case
from bench.store.record import Record
from tests.examples import case, record, timed


def run(*logs: Sequence[float], baseline: str = "eager") -> pd.DataFrame:
    """Return the table of a run in which the control has these log speed-ups, a sequence of processes per point."""
    return summarise(records(logs, baseline), baseline)


def records(logs: Sequence[Sequence[float]], baseline: str) -> list[Record]:
    """Return the records of such a run; its points differ in their tokens, which count from 1."""
    return [
        record(case=Case(case(num_tokens=tokens).point, name), process=process, samples=timed(time_s, time_s))
        for tokens, values in enumerate(logs, start=1)
        for process, log in enumerate(values)
        for name, time_s in ((baseline, 1.0), (CONTROL, math.exp(-log)))
    ]


def test_a_control_that_is_right_says_nothing() -> None:
    """Its intervals hold 1."""
    found = control(run((0.01, -0.01, 0.005), (-0.02, 0.01, 0.0)))
    assert (found.deviations, found.points, found.is_unproven) == ((), 2, False)


def test_a_control_that_is_off_makes_the_run_unproven() -> None:
    """Its ratio is that of geometric means, with its interval, and the baseline has its name."""
    found = control(run((0.059, 0.060, 0.061), (0.01, -0.01, 0.005), baseline="sdpa"))
    assert found.is_unproven
    assert found.baseline == "sdpa"
    (deviation,) = found.deviations
    assert deviation.point.num_tokens == 1
    assert deviation.speedup.value == pytest.approx(math.exp(0.06))
    half = 4.303 * 0.001 / math.sqrt(3)  # Student's t with two degrees of freedom, as printed in tables
    assert deviation.speedup.low == pytest.approx(math.exp(0.06 - half), rel=1e-5)
    assert deviation.speedup.high == pytest.approx(math.exp(0.06 + half), rel=1e-5)


def test_the_clearest_deviation_comes_first() -> None:
    """The clearest one is not the largest one."""
    found = control(run((0.0, 0.01, -0.01), (0.18, 0.2, 0.22), (-0.0501, -0.05, -0.0499)))
    assert [each.point.num_tokens for each in found.deviations] == [3, 2]


def test_one_interval_of_many_may_exclude_1_by_chance() -> None:
    """Three processes that agree within their common deviation: p is 3 %, which one point of twelve may have."""
    off, right = (0.02, 0.03, 0.04), (0.01, -0.01, 0.0)
    found = control(run(off, *[right] * 11))
    assert len(found.deviations) == 1
    assert not found.is_unproven


def test_many_points_that_are_off_a_little_are_no_chance() -> None:
    """The same deviation at each of twelve points."""
    found = control(run(*[(0.02, 0.03, 0.04)] * 12))
    assert (len(found.deviations), found.is_unproven) == (12, True)


@pytest.mark.parametrize("logs", [(0.3,), (0.3, 0.3, 0.3)])
def test_without_a_scatter_nothing_is_shown(logs: Sequence[float]) -> None:
    """One process gives no interval, and processes that agree to the last digit were not measured."""
    found = control(run(logs))
    assert (found.points, found.is_unproven) == (0, False)


def test_a_run_without_a_control_says_nothing() -> None:
    """Older runs have none."""
    found = control(summarise([record("eager"), record("sdpa")], "eager"))
    assert (found.deviations, found.points, found.is_unproven) == ((), 0, False)


def test_a_control_that_failed_says_nothing() -> None:
    """And neither does one whose baseline failed, which has no ratio."""
    failed = record(CONTROL, status="crashed", samples=timed())
    assert not control(summarise([record("eager"), failed], "eager")).is_unproven
    baseline = record("eager", status="crashed", samples=timed())
    assert not control(summarise([baseline, record(CONTROL), record(CONTROL, process=1)], "eager")).is_unproven


def test_one_run_in_a_hundred_is_unproven_by_chance() -> None:
    """Of runs of twelve points and three processes each on a machine that measures right."""
    rng = np.random.default_rng(3)
    sds = 0.007 * np.exp(0.5 * rng.standard_normal((100, 12, 1)))
    runs = sds * rng.standard_normal((100, 12, 3))
    table = run(*runs.reshape(-1, 3).tolist())
    rows = table[table["implementation"] == CONTROL]
    of_runs = [control(rows.iloc[start : start + 12]) for start in range(0, 1200, 12)]
    assert sum(each.is_unproven for each in of_runs) <= 4  # 1 is expected, and 4 are three standard deviations more
    assert sum(bool(each.deviations) for each in of_runs) > 35
