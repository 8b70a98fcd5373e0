"""Cards and their data sheets."""

import pytest

from bench.plan.cards import data_sheet
from bench.plan.work import Roof


@pytest.mark.parametrize(
    ("device_name", "dtype", "roof"),
    [
        ("NVIDIA H100 80GB HBM3 79 GiB", "bfloat16", Roof(989e12, 3.35e12)),
        ("NVIDIA H200 140 GiB", "float16", Roof(989e12, 4.8e12)),
        ("NVIDIA H200 140 GiB", "float32", None),
        ("NVIDIA H100 PCIe 80 GiB", "bfloat16", None),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb 10 GiB", "bfloat16", None),
    ],
)
def test_a_data_sheet_is_that_of_exactly_this_card(device_name: str, dtype: str, roof: Roof | None) -> None:
    """One for PCIe, a slice, and another dtype have other rates, and none is guessed."""
    assert data_sheet(device_name, dtype) == roof
