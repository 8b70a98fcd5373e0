"""The word for what ran."""

import pytest

from bench.show.kernels import algorithm


@pytest.mark.parametrize(
    ("kernels", "word"),
    [
        ("mm;_scaled_dot_product_flash_attention_for_cpu;copy_;add", "flash"),
        ("mm;_scaled_dot_product_attention_math;bmm;_softmax", "math"),
        ("mm;_native_multi_head_attention;bmm;_softmax;add", "fast path"),
        ("mm;copy_;bmm;_softmax;add", "products"),
        ("CompiledFxGraph;mm;bmm;copy_", "products + compiled"),
        ("CompiledFxGraph;mm;_scaled_dot_product_flash_attention_for_cpu", "flash + compiled"),
        (None, ""),
        ("", ""),
    ],
)
def test_kernels_become_a_word(kernels: str | None, word: str) -> None:
    """The algorithm is told by its kernel's name, and a compiler's kernels are said."""
    assert algorithm(kernels) == word
