"""Cards and their data sheets."""

import pytest

from bench.plan.cards import data_sheet, model
from bench.plan.work import Roof


@pytest.mark.parametrize(
    ("device_name", "dtype", "roof"),
    [
        ("NVIDIA H100 80GB HBM3 79 GiB", "bfloat16", Roof(989e12, 3.35e12)),
        ("NVIDIA H200 140 GiB", "float16", Roof(989e12, 4.8e12)),
        ("NVIDIA H200 140 GiB", "float32", None),
        ("NVIDIA H100 PCIe 80 GiB", "bfloat16", None),
        ("NVIDIA H200 NVL 140 GiB", "bfloat16", None),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb 10 GiB", "bfloat16", None),
        ("NVIDIA A100-SXM4-80GB 80 GiB", "bfloat16", None),
        ("", "bfloat16", None),
    ],
)
def test_a_data_sheet_is_that_of_exactly_this_card(device_name: str, dtype: str, roof: Roof | None) -> None:
    """One for PCIe, a slice, and another dtype have other rates, and none is guessed."""
    assert data_sheet(device_name, dtype) == roof


def test_the_name_of_a_card_is_without_what_torch_sees_of_its_memory() -> None:
    """A size that belongs to the name stays."""
    assert model("NVIDIA H100 80GB HBM3 79 GiB") == "NVIDIA H100 80GB HBM3"
    assert model("AMD EPYC 7B13 64-Core Processor") == "AMD EPYC 7B13 64-Core Processor"
