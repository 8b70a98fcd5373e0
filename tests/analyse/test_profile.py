"""Values that follow from a profile."""

import dataclasses

import pytest

from bench.analyse.profile import (
    live_bytes,
    operator_table,
    overhead,
    peak,
    rate,
    residual_s,
    shares,
    slowdown,
    stage_shares,
    stage_sum_s,
    unnamed_s,
)
from bench.store.profile import Block, ProfiledOperator, Stage
from tests.make.profiles import profile, stepwise

BLOCKS = (
    Block(100, "a", "one", 0.0, 3.0),
    Block(10, "b", "one", 1.0, 2.0),
    Block(50, "c", "two", 2.0, None),
    Block(5, "d", "two", 4.0, None),
)


def test_overhead_is_the_share_by_which_the_profiler_slows_a_case_down() -> None:
    """A call of 4 ms that takes 5 ms under the profiler has 25 %; what is in no operator is the rest of these 5 ms."""
    of = profile(operators=(ProfiledOperator("a", 1, 3e-3, 0),))
    of = dataclasses.replace(of, timed_s=4e-3, profiled_s=5e-3)
    assert (overhead(of), unnamed_s(of)) == pytest.approx((0.25, 2e-3))


def test_shares_add_up_to_one() -> None:
    """Of operators by their own time, on a GPU by its time, and of stages; where nothing takes time all are 0."""
    train = stepwise(mode="train")
    assert (sum(shares(train)), sum(stage_shares(train))) == pytest.approx((1, 1))
    for times, expected in (
        ([(3.0, None), (1.0, None)], (0.75, 0.25)),
        ([(1.0, 2.0), (9.0, 0.0)], (1.0, 0.0)),
        ([(0.0, None)], (0.0,)),
    ):
        operators = tuple(ProfiledOperator("a", 1, self_s, 0, device_s=device_s) for self_s, device_s in times)
        assert shares(profile(operators=operators)) == expected


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


def test_the_peak_is_explained_by_the_blocks_that_live_at_it() -> None:
    """Live bytes follow what is allocated and freed: 100, 110, then 10 go and 50 come, 100 go, 5 come and stay.

    Blocks come largest first, without what was freed at that moment, and together as large as the peak.
    """
    assert dict(live_bytes(BLOCKS)) == {0.0: 100, 1.0: 110, 2.0: 150, 3.0: 50, 4.0: 55}
    highest = peak(dataclasses.replace(profile(), blocks=BLOCKS))
    assert highest is not None
    assert (highest.bytes, highest.at_s, [block.operator for block in highest.blocks]) == (150, 2.0, ["a", "c"])
    whole = peak(stepwise(mode="train"))
    assert whole is not None
    assert sum(block.bytes for block in whole.blocks) == whole.bytes
    assert peak(dataclasses.replace(profile(), blocks=())) is None


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
