"""The rates of cards beside their data sheets, and the instructions of a CPU."""

from bench.show.rows import against_data_sheets, half_precision
from bench.store.roofline import CEILING_BYTES, CEILING_FLOPS
from tests.make.points import vit_s
from tests.make.records import environment


def test_the_rates_that_a_card_has_shown_stand_beside_its_data_sheet() -> None:
    """The best of all rows counts, for each dtype; of a CPU nothing is said."""
    row = {"device_name": "NVIDIA H200 140 GiB", "dtype": "bfloat16", CEILING_FLOPS: 600e12, CEILING_BYTES: 4.32e12}
    others = [row | {CEILING_FLOPS: 791.2e12}, row | {"dtype": "float32"}, row | {"device_name": "A CPU"}]
    (line,) = against_data_sheets([row, *others])
    assert line.startswith("NVIDIA H200 in bfloat16: ")
    assert "791 TFLOP/s, 80% of the data sheet's 989 TFLOP/s" in line
    assert "4.32 TB/s, 90% of the data sheet's 4.80 TB/s" in line
    assert against_data_sheets([row | {CEILING_FLOPS: None}]) == []


def test_the_instructions_for_bfloat16_are_named_where_a_cpu_needs_them() -> None:
    """Not for float32 or a GPU, and not in a run that is older than the fact."""
    here, older, narrow = environment(), environment(), vit_s(dtype="bfloat16")
    here.context["half_precision"] = "no amx_bf16"
    assert half_precision([vit_s(), narrow], here) == ["CPU instructions for bfloat16 and float16: no amx_bf16"]
    assert half_precision([vit_s(), vit_s(dtype="float16", device="cuda")], here) == []
    assert half_precision([narrow], older) == []
