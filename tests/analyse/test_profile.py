"""Values that follow from a profile."""

import dataclasses

import pytest

from bench.analyse.profile import operator_table, overhead, rate, residual_s, slowdown, stage_sum_s, unnamed_s
from bench.store.profile import ProfiledOperator, Stage
from tests.make.profiles import profile, stepwise


def test_overhead_is_the_share_by_which_the_profiler_slows_a_case_down() -> None:
    """A call of 4 ms that takes 5 ms under the profiler has 25 %; what is in no operator is the rest of these 5 ms."""
    of = profile(operators=(ProfiledOperator("a", 1, 3e-3, 0),))
    of = dataclasses.replace(of, timed_s=4e-3, profiled_s=5e-3)
    assert (overhead(of), unnamed_s(of)) == pytest.approx((0.25, 2e-3))


def test_stages_and_residual_make_the_whole() -> None:
    """What the layer takes beyond its stages is the residual, below zero where the stages were slowed down."""
    of = stepwise(residual_s=0.5e-3)
    assert residual_s(of) == pytest.approx(0.5e-3)
    assert stage_sum_s(of) + residual_s(of) == pytest.approx(of.timed_s)
    assert residual_s(dataclasses.replace(of, timed_s=stage_sum_s(of) / 2)) < 0


def test_the_rate_of_a_stage_is_known_where_its_work_is() -> None:
    """2 GFLOP in half a second are 4 GFLOP/s."""
    assert rate(Stage("a", "forward", 0.5, 0, flops=2e9)) == 4e9
    assert rate(Stage("a", "forward", 0.5, 0)) is rate(Stage("a", "forward", 0.0, 0, flops=2e9)) is None


@pytest.mark.parametrize(
    ("times_s", "expected"),
    [
        ([(3.0, None), (1.0, None)], [0.75, 0.25]),
        ([(1.0, 2.0), (9.0, 0.0)], [1.0, 0.0]),
        ([(0.0, None)], [0.0]),
    ],
)
def test_shares_are_those_in_the_time_of_all_operators(
    times_s: list[tuple[float, float | None]], expected: list[float]
) -> None:
    """By their own time, on a GPU by its time; where nothing takes time all are 0."""
    operators = tuple(ProfiledOperator("a", 1, self_s, 0, device_s=device_s) for self_s, device_s in times_s)
    assert list(operator_table(profile(operators=operators))["share"]) == expected


def test_the_table_of_operators_has_units_in_its_names() -> None:
    """A row for each in order; what is unknown is missing, and kernels are one cell."""
    operators = ProfiledOperator("a", 2, 3.0, 8, 1.0, 5e9, ("k", "l")), ProfiledOperator("b", 1, 1.0, 0)
    table = operator_table(profile(operators=operators))
    numbers = ["calls", "self_s", "share", "allocated_bytes", "flops", "device_s"]
    assert list(table) == ["name", "line", *numbers, "kernels"]
    assert (list(table["name"]), table["kernels"][0]) == (["a", "b"], "k;l")
    assert table["flops"].isna().tolist() == [False, True]


@pytest.mark.parametrize(
    ("timed_s", "ends", "factor"),
    [
        (0.239, (0.077, 0.081), 3.02),
        (0.04, (0.077, 0.081), 0.506),
        (0.088, (0.077, 0.081), None),
        (0.12, (0.05, 0.13), None),
        (0.12, (None, None), 1.52),
        (0.08, (None, None), None),
    ],
)
def test_another_latency_than_that_of_the_run_counts_beyond_interval_and_drift(
    timed_s: float, ends: tuple[float | None, float | None], factor: float | None
) -> None:
    """The run measured 79 ms: 239 ms are 3 times that; 11 % are everyday drift, and a wide interval holds more."""
    result = slowdown(dataclasses.replace(profile(), timed_s=timed_s), 0.0791, *ends)
    assert result == (factor and pytest.approx(factor, abs=0.01))
