"""Rows as plain values."""

from bench.show.rows import against_data_sheets, facts, reason
from bench.store.roofline import CEILING_BYTES, CEILING_FLOPS
from tests.make.points import vit_s


def test_a_reason_is_one_line() -> None:
    """Whatever an error's text looks like."""
    assert reason({"status": "error", "detail": "RuntimeError:\n  bad\n"}) == "RuntimeError: bad"


def test_facts_are_what_is_fixed() -> None:
    """The device with its name, and no column that a picture shows."""
    row = {"device_name": "A CPU"}
    expected = ("vit", "cpu (A CPU)", "float32", "inference", "B=8", "N=197", "C=384", "H=6", "1 thread")
    assert facts(vit_s(), [row, row]) == [*expected]
    assert "N=197" not in facts(vit_s(), [row], ["num_tokens"])


def test_the_rates_that_a_card_has_shown_stand_beside_its_data_sheet() -> None:
    """The best of all rows counts, for each dtype; of a CPU nothing is said."""
    row = {"device_name": "NVIDIA H200 140 GiB", "dtype": "bfloat16", CEILING_FLOPS: 600e12, CEILING_BYTES: 4.32e12}
    others = [row | {CEILING_FLOPS: 791.2e12}, row | {"dtype": "float32"}, row | {"device_name": "A CPU"}]
    (line,) = against_data_sheets([row, *others])
    assert line.startswith("NVIDIA H200 in bfloat16: ")
    assert "791 TFLOP/s, 80% of the data sheet's 989 TFLOP/s" in line
    assert "4.32 TB/s, 90% of the data sheet's 4.80 TB/s" in line
    assert against_data_sheets([row | {CEILING_FLOPS: None}]) == []
