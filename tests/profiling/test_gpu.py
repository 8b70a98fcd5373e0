"""A call on a GPU as the profiler records it: kernels behind a hold, launched by operators that take longer."""

from dataclasses import replace

import pytest

from bench.analyse import profile as analyse
from bench.store.profile import FORWARD, Profile
from tests.profiling.gpu_trace import eager_profile

TIMES_US = {"aten::addmm": 28.0, "aten::bmm": 19.0, "aten::_softmax": 12.0, "aten::copy_": 9.0, "aten::add": 2.0}
"""The GPU's time of each operator that launches: two products with a bias, two others, three copies, and so on."""

ORDER = ["gemm_qkv", "copy_q", "copy_k", "copy_v", "gemm_scores", "softmax_warp", "gemm_values", "gemm_proj",
    "vectorized_elementwise"]  # fmt: skip


@pytest.fixture(scope="module")
def of_eager() -> Profile:
    """Return the profile of such a call."""
    return eager_profile()


def test_operators_are_ordered_and_added_by_the_gpus_time(of_eager: Profile) -> None:
    """Those that launch come first, by their kernels' time. A launch counts in the host's time of the operator."""
    busy = [each for each in of_eager.operators if each.time_s]
    assert [each.name for each in busy] == [*TIMES_US]
    assert [1e6 * each.time_s for each in busy] == pytest.approx([*TIMES_US.values()])
    assert {each.name for each in of_eager.operators} - {*TIMES_US} == {
        "aten::linear", "aten::matmul", "aten::clone", "aten::softmax",
    }  # fmt: skip
    assert [1e6 * each.self_s / each.calls for each in of_eager.operators] == [pytest.approx(10.0)] * 9
    assert {each.name: each.flops for each in busy if each.flops} == {"aten::addmm": 2 * 48, "aten::bmm": 2 * 48}
    assert busy[0].kernels == ("gemm_qkv", "gemm_proj")


def test_stages_have_their_kernels_and_what_is_left_is_in_no_stage(of_eager: Profile) -> None:
    """The span of a stage's kernels, which the profiler adds to them, doesn't count."""
    by_name = {(each.name, each.direction): 1e6 * each.time_s for each in of_eager.stages}
    expected = {"qkv": 20, "attention core": 40, "proj": 8}
    assert by_name == {(name, FORWARD): pytest.approx(us) for name, us in expected.items()}
    assert 1e6 * analyse.whole_s(of_eager) == pytest.approx(70)
    assert 1e6 * analyse.residual_s(of_eager) == pytest.approx(2)


def test_kernels_stand_in_their_order_with_the_gaps_between_them(of_eager: Profile) -> None:
    """Kernels from before the call don't count, even with the same name; each kernel waits 1 µs for the one before."""
    ran = analyse.in_order(of_eager.kernels[::-1])
    assert [each.kernel.name for each in ran] == ORDER
    assert {each.kernel.lane for each in ran} == {"stream 7"}
    assert [1e6 * each.gap_s for each in ran] == [0.0, *[pytest.approx(1.0)] * 8]
    assert 1e6 * analyse.gaps_s(ran) == pytest.approx(8)
    assert 1e6 * analyse.device_span_s(ran) == pytest.approx(78)


def test_kernels_that_overlap_leave_no_gap(of_eager: Profile) -> None:
    """While a kernel of another stream runs, nothing waits; a gap begins at the last end of all before."""
    first, *others = of_eager.kernels
    ran = analyse.in_order([*others, replace(first, lane="stream 8", duration_s=60e-6), first])
    until_us = 60.0
    assert all(each.gap_s == 0 for each in ran if 1e6 * each.start_s < until_us)
    assert [each.gap_s > 0 for each in ran if 1e6 * each.start_s > until_us].count(True) > 1
    assert analyse.in_order(()) == []
    assert analyse.device_span_s(()) == analyse.gaps_s(()) == 0
