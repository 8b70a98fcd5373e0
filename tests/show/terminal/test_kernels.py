"""The word for what ran."""

import pytest

from bench.show.terminal.kernels import algorithm


@pytest.mark.parametrize(
    ("kernels", "word"),
    [
        ("mm;_scaled_dot_product_flash_attention_for_cpu;copy_;add", "flash"),
        ("mm;_scaled_dot_product_attention_math;bmm;_softmax", "math"),
        ("mm;_native_multi_head_attention;bmm;_softmax;add", "fast path"),
        ("mm;copy_;bmm;_softmax;add", "products"),
        ("mkldnn_convolution;copy_;_softmax", "products"),
        ("CompiledFxGraph;mm;bmm;copy_", "products + compiled"),
        ("CompiledFxGraph;mm;_scaled_dot_product_flash_attention_for_cpu", "flash + compiled"),
        ("flash_fwd_kernel<Traits>", "flash"),
        ("my_attention_kernel;elementwise", "my_attention_kernel"),
        ("ampere_sgemm_128x64_tn;softmax_warp_forward", "products"),
        ("void a_kernel_with_a_name_of_many_letters", "void a_kernel_with_a_na…"),
        (None, ""),
        ("", ""),
    ],
)
def test_kernels_become_a_word(kernels: str | None, word: str) -> None:
    """The algorithm is told by its kernel's name, a compiler's kernels are said, and one that nobody knows is named."""
    assert algorithm(kernels) == word
