"""What an operator does."""

import pytest

from bench.show.operator_categories import CATEGORY_COLOURS, category
from bench.show.palette import STAGE_COLOURS


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
