"""Values that follow from a profile."""

from dataclasses import replace
from typing import Any

import pytest

from bench.analyse.profile import distortion, operator_table, overhead, rate, residual_s, stage_sum_s, unnamed_s
from bench.store.profile import ProfiledOperator
from tests.make.profiles import graph, profile


def test_overhead_is_the_share_by_which_the_profiler_slows_a_case_down() -> None:
    """A call of 4 ms that takes 5 ms under the profiler has 25 %; what is in no operator is the rest of these 5 ms."""
    of = profile(operators=(ProfiledOperator("a", 1, 3e-3),))
    of = replace(of, timed_s=4e-3, profiled_s=5e-3)
    assert (overhead(of), unnamed_s(of)) == pytest.approx((0.25, 2e-3))


def test_stages_and_what_is_in_none_make_the_profiled_call() -> None:
    """Their shares add up to it."""
    of = graph(residual_s=0.5e-3)
    assert residual_s(of) == pytest.approx(0.5e-3)
    assert stage_sum_s(of) + residual_s(of) == of.profiled_s


def test_the_rate_of_an_operator_is_known_if_its_work_is() -> None:
    """2 GFLOP in half a second are 4 GFLOP/s."""
    assert rate(ProfiledOperator("a", 1, 0.5, flops=2e9)) == 4e9
    assert rate(ProfiledOperator("a", 1, 0.5)) is rate(ProfiledOperator("a", 1, 0.0, flops=2e9)) is None


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
    operators = tuple(ProfiledOperator("a", 1, self_s, device_s) for self_s, device_s in times_s)
    assert list(operator_table(profile(operators=operators))["share"]) == expected


def test_the_table_of_operators_has_units_in_its_names() -> None:
    """A row for each in order; what is unknown is missing, and kernels are one cell."""
    operators = ProfiledOperator("a", 2, 3.0, 1.0, 5e9, ("k", "l")), ProfiledOperator("b", 1, 1.0)
    table = operator_table(profile(operators=operators))
    numbers = ["calls", "self_s", "share", "flops", "device_s"]
    assert list(table) == ["name", "line", *numbers, "kernels"]
    assert (list(table["name"]), table["kernels"][0]) == (["a", "b"], "k;l")
    assert table["flops"].isna().tolist() == [False, True]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, ""),
        ({"profiled_s": 1.19e-3}, ""),
        ({"profiled_s": 1.21e-3}, "shares can't be trusted"),
        ({"profiled_s": 0.646e-3}, "changed its speed"),
        ({"others_cores": 0.2, "cores": 2}, ""),
        ({"others_cores": 1.3, "cores": 2}, "used 1.3 of 2 cores"),
        ({"others_cores": 1.3, "cores": 2, "profiled_s": 7.5e-3}, "used 1.3 of 2 cores"),
        ({"others_cores": 1.3, "cores": 64}, ""),
    ],
)
def test_what_makes_times_doubtful_is_said_once(changes: dict[str, Any], words: str) -> None:
    """Other processes on a quarter of the free cores come first; then a difference of a fifth between the calls."""
    text = distortion(replace(profile(), **{"timed_s": 1e-3, "profiled_s": 1e-3, **changes}))
    assert words in text
    assert bool(text) is bool(words)


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"others_cores": 1.3, "cores": 2}, ""), ({"profiled_s": 3e-3}, "times of kernels can be trusted")],
)
def test_on_a_gpu_the_times_of_kernels_hold(changes: dict[str, Any], words: str) -> None:
    """A host that is slow or busy makes the gaps between them longer alone."""
    kernels = (ProfiledOperator("a", 1, 1e-3, 1e-3),)
    text = distortion(replace(profile(operators=kernels), **{"timed_s": 1e-3, "profiled_s": 1e-3, **changes}))
    assert words in text
    assert bool(text) is bool(words)
