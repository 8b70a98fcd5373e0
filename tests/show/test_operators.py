"""Categories of operators, and their names made short."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.show.operators import CATEGORY_COLOURS, LONGEST, category, short, shortened
from bench.show.palette import STAGE_COLOURS

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


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("aten::addmm", "matrix product"),
        ("aten::bmm", "batched product"),
        ("aten::baddbmm", "batched product"),
        ("mkldnn::_linear_pointwise", "matrix product"),
        ("autograd::engine::evaluate_function: MmBackward0", "matrix product"),
        ("ampere_sgemm_128x64_tn", "matrix product"),
        ("aten::_softmax", "softmax"),
        ("aten::_softmax_backward_data", "softmax"),
        ("aten::_scaled_dot_product_flash_attention_for_cpu", "several steps in one kernel"),
        ("pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64>>", "several steps in one kernel"),
        ("aten::copy_", "copy or new memory"),
        ("Memcpy DtoD (Device -> Device)", "copy or new memory"),
        ("aten::add", "element by element"),
        ("graph_0_cpp_fused__softmax_mul_1", "several steps in one kernel"),
        ("triton_per_fused_add_0", "several steps in one kernel"),
        ("CompiledFxGraph", "other"),
        ("aten::view", "other"),
        ("aten::expand", "other"),
        ("void (anonymous namespace)::softmax_warp_forward<c10::Half, at::Common, 8, false>(c10::Half*)", "softmax"),
        ("", "other"),
    ],
)
def test_a_name_tells_what_an_operator_does(name: str, expected: str) -> None:
    """Products, softmax, copies and arithmetic are told apart by the names that torch and CUDA give them."""
    assert category(name) == expected


def test_every_family_has_a_colour_of_its_own() -> None:
    """Seven words, seven colours, and only what does several steps or none has one that no stage has."""
    assert len(set(CATEGORY_COLOURS.values())) == len(CATEGORY_COLOURS) == 7
    assert len({*CATEGORY_COLOURS.values()} & {*STAGE_COLOURS.values()}) == 5
