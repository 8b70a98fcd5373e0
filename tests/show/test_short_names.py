"""Names short enough for a table."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.show.short_names import LONGEST, short, shortened

ELEMENTWISE = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::BUnaryFunctor<float, float, float, "
    "at::native::binary_internal::MulFunctor<float>>, std::array<char*, 2ul>>(int, at::native::BUnaryFunctor<float>)"
)
SOFTMAX = "void (anonymous namespace)::softmax_warp_forward<c10::Half, c10::Half, float, 8, false, false>(c10::Half*)"
BACKWARD = "autograd::engine::evaluate_function: ScaledDotProductFlashAttentionForCpuBackward0"
FUSED = "triton_poi_fused__softmax_add_mul_sub_transpose_view_native_layer_norm_backward_3"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("aten::addmm", "aten::addmm"),
        ("ampere_sgemm_128x64_tn", "ampere_sgemm_128x64_tn"),
        (ELEMENTWISE, "vectorized_elementwise_kernel<…>"),
        (SOFTMAX, "softmax_warp_forward<…>"),
        (BACKWARD, "autograd: ScaledDotProductFlashAttentionForCpuBackward0"),
        (FUSED, "triton_poi_fused__softmax_add_mul_sub_transpose_view_native_lay…"),
    ],
)
def test_a_name_says_what_ran(name: str, shown: str) -> None:
    """A short name stays, of a template its own name is left, and another long name is cut."""
    assert short(name) == shown


@given(st.text(max_size=LONGEST + 20))
def test_no_name_is_too_long(name: str) -> None:
    """Whatever a kernel is called, its name fits, and something of it is left."""
    assert len(short(name)) <= LONGEST
    assert bool(short(name)) == bool(name)
    assert [short(f"{noise}" * 20)[:8] for noise in ("<script>", "void ")] == ["<script>", "void voi"]


def test_shortened_names_are_listed_once() -> None:
    """Only what isn't shown whole has to be said elsewhere."""
    assert shortened([SOFTMAX, "aten::mm", ELEMENTWISE, SOFTMAX]) == [SOFTMAX, ELEMENTWISE]
