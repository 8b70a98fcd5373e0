"""A call on a GPU as the profiler records it: kernels behind a hold, launched by operators that take longer."""

from dataclasses import replace

import pytest

from bench.analyse import profile as analyse
from bench.store.profile import FORWARD, Profile
from tests.profiling.gpu_trace import eager_profile

TIMES_US = {"aten::addmm": 28.0, "aten::bmm": 19.0, "aten::copy_": 12.0, "aten::_softmax": 12.0, "aten::mul": 4.0,
    "aten::add": 2.0}  # fmt: skip
"""The GPU's time of each operator that launches: two products with a bias, two others, four copies, and so on."""

ORDER = ["gemm_qkv", "vectorized_elementwise", "copy_q", "copy_k", "gemm_scores", "softmax_warp", "copy_v",
    "gemm_values", "copy_merged", "gemm_proj", "vectorized_elementwise"]  # fmt: skip


@pytest.fixture(scope="module")
def of_eager() -> Profile:
    """Return the profile of such calls."""
    return eager_profile()


def test_operators_are_ordered_and_added_by_the_gpus_time(of_eager: Profile) -> None:
    """Those that launch come first, by their kernels' time; none is a launch."""
    busy = [each for each in of_eager.operators if each.time_s]
    assert {each.name: pytest.approx(1e6 * each.time_s) for each in busy} == TIMES_US
    assert [each.name for each in of_eager.operators][:2] == ["aten::addmm", "aten::bmm"]
    times = [each.time_s for each in of_eager.operators]
    assert times == sorted(times, reverse=True)
    assert {each.name for each in of_eager.operators} - {*TIMES_US} == {
        "aten::linear", "aten::matmul", "aten::clone", "aten::softmax",
    }  # fmt: skip
    assert analyse.operator_sum_s(of_eager) == pytest.approx(77e-6)
    assert {each.name: each.flops for each in busy if each.flops} == {"aten::addmm": 2 * 48, "aten::bmm": 2 * 48}


def test_a_launch_counts_in_the_hosts_time_of_the_operator_that_launched(of_eager: Profile) -> None:
    """An operator of 10 µs with a launch of 6 µs in it took 10 µs; one around it took 10 µs more."""
    host_us = {each.name: 1e6 * each.self_s / each.calls for each in of_eager.operators}
    assert host_us == {name: pytest.approx(10.0) for name in host_us}


def test_stages_have_their_kernels_and_what_is_left_is_the_residual(of_eager: Profile) -> None:
    """The span of a stage's kernels, which the profiler adds to them, doesn't count; the sum is in no stage."""
    by_name = {each.name: 1e6 * each.time_s for each in of_eager.stages}
    assert by_name == {
        name: pytest.approx(us)
        for name, us in {
            "qkv projection": 20, "scale": 4, "scores": 16, "softmax": 12, "weighted values": 12, "merge heads": 3,
            "output projection": 8,
        }.items()
    }  # fmt: skip
    assert {each.direction for each in of_eager.stages} == {FORWARD}
    assert 1e6 * analyse.whole_s(of_eager) == pytest.approx(77)
    assert 1e6 * analyse.residual_s(of_eager) == pytest.approx(2)


def test_kernels_stand_in_their_order_with_the_gaps_between_them(of_eager: Profile) -> None:
    """What ran before the call is none of its, even under the same name; each kernel waits 1 µs for the one before."""
    ran = analyse.in_order(of_eager.kernels[::-1])
    assert [each.kernel.name for each in ran] == ORDER
    assert {each.kernel.lane for each in ran} == {"stream 7"}
    assert [1e6 * each.gap_s for each in ran] == [0.0, *[pytest.approx(1.0)] * 10]
    assert [1e6 * each.start_s for each in ran[:3]] == pytest.approx([0.0, 21.0, 26.0])
    assert 1e6 * analyse.gaps_s(ran) == pytest.approx(10)
    assert 1e6 * analyse.device_span_s(ran) == pytest.approx(87)


def test_kernels_that_overlap_leave_no_gap(of_eager: Profile) -> None:
    """While a kernel of another stream runs, nothing waits; a gap begins at the last end of all before."""
    first, *others = of_eager.kernels
    ran = analyse.in_order([*others, replace(first, lane="stream 8", duration_s=60e-6), first])
    until_us = 60.0
    assert all(each.gap_s == 0 for each in ran if 1e6 * each.start_s < until_us)
    assert [each.gap_s > 0 for each in ran if 1e6 * each.start_s > until_us].count(True) > 1
    assert analyse.in_order(()) == []
    assert analyse.device_span_s(()) == analyse.gaps_s(()) == 0
