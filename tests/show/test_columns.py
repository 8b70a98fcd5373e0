"""The columns of rows of results."""

import itertools

import pytest

from bench.analyse.rows import plain
from bench.show import columns
from bench.show.columns import algorithm
from bench.store.table import COLUMNS
from tests.make.points import vit_s
from tests.make.results import timed

EAGER, SDPA = plain(timed([vit_s()], {"eager": 0.02, "sdpa": 0.01}))


def row(**changes: object) -> dict[str, object]:
    """Return a row of sdpa, which is faster than eager, with a label."""
    return {**SDPA, "label": "here", **changes}


def test_any_column_of_a_table_can_be_shown() -> None:
    """What is missing is empty, and a page sorts by the number itself."""
    for name, of in itertools.product(COLUMNS, (row(), EAGER)):
        column = columns.named(name, "eager")
        cell = column.cell(of)
        assert cell.number == (of[name] if column.number and cell.text else None)
        assert cell.text or of[name] is None or name in ("standing", "detail")


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("host_s", 6e-5, "60.0 µs"),
        ("error", 4.08e-06, "4.08e-06"),
        ("flops", 9536286720, "9536286720"),
        ("settled", False, "False"),
        ("roofline_share", 0.678, "68%"),
        ("slowdown_high", 1.0301, "3.1%"),
        ("latency_s", None, "oom"),
    ],
)
def test_a_cell_has_its_unit(name: str, value: object, text: str) -> None:
    """A number without a unit has three digits, a count all; a case without a time has its status instead."""
    assert columns.named(name, "eager").text(row(**{"status": "oom", "standing": "open", name: value})) == text


@pytest.mark.parametrize(
    ("kernels", "word"),
    [
        ("mm;_scaled_dot_product_flash_attention_for_cpu;copy_;add", "flash"),
        ("mm;_scaled_dot_product_attention_math;bmm;_softmax", "math"),
        ("mm;_native_multi_head_attention;bmm;_softmax;add", "fast path"),
        ("CompiledFxGraph;mm;bmm;copy_", "products + compiled"),
        ("triton_tem_fused_flex_attention_0", "flex + compiled"),
        ("my_attention_kernel;elementwise", "my_attention_kernel"),
        ("ampere_sgemm_128x64_tn;softmax_warp_forward", "products"),
        ("void a_kernel_with_a_name_of_many_letters", "void a_kernel_with_a_na…"),
        (None, ""),
    ],
)
def test_kernels_become_a_word(kernels: str | None, word: str) -> None:
    """The kernel's name gives the algorithm; a compiler is named, and so is an unknown kernel."""
    assert algorithm(kernels) == word
