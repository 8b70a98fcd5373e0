"""What an operator does."""

import pytest

from bench.show.operator_categories import CATEGORY_COLOURS, category
from bench.show.palette import STAGE_COLOURS


@pytest.mark.parametrize(
    ("expected", "names"),
    [
        (
            "matrix product",
            [
                *("aten::addmm", "mkldnn::_linear_pointwise", "ampere_sgemm_128x64_tn"),
                "autograd::engine::evaluate_function: MmBackward0",
            ],
        ),
        ("batched product", ["aten::bmm", "aten::baddbmm"]),
        (
            "softmax",
            [
                *("aten::_softmax", "aten::_softmax_backward_data"),
                "void (anonymous namespace)::softmax_warp_forward<c10::Half, at::Common, 8, false>(c10::Half*)",
            ],
        ),
        (
            "several steps in one kernel",
            [
                *("aten::_scaled_dot_product_flash_attention_for_cpu", "triton_per_fused_add_0"),
                *("pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64>>", "graph_0_cpp_fused__softmax_mul_1"),
            ],
        ),
        ("copy or new memory", ["aten::copy_", "Memcpy DtoD (Device -> Device)"]),
        ("element by element", ["aten::add"]),
        ("other", ["CompiledFxGraph", "aten::view", "aten::expand", ""]),
    ],
)
def test_a_name_tells_what_an_operator_does(expected: str, names: list[str]) -> None:
    """Products, softmax, copies and arithmetic are told apart by the names that torch and CUDA give them."""
    assert {name: category(name) for name in names} == dict.fromkeys(names, expected)


def test_every_family_has_a_colour_of_its_own() -> None:
    """Seven words, seven colours, and only what does several steps or none has one that no stage has."""
    assert len(set(CATEGORY_COLOURS.values())) == len(CATEGORY_COLOURS) == 7
    assert len({*CATEGORY_COLOURS.values()} & {*STAGE_COLOURS.values()}) == 5
