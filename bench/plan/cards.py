"""The rates on the data sheets of NVIDIA's cards, which no result can exceed; cards have torch's names."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from bench.plan.work import Roof

DATA_SHEETS: Mapping[str, Roof] = MappingProxyType({
    "NVIDIA H100 80GB HBM3": Roof(flops_per_s=989e12, bytes_per_s=3.35e12),
    "NVIDIA H200": Roof(flops_per_s=989e12, bytes_per_s=4.8e12),
})  # fmt: skip
"""The peak rates of each card: dense matrix products in DTYPES, and memory bandwidth.

Both are SXM cards; PCIe cards and MIG slices have other names and other rates. The data sheets print twice these
operations, which only sparse matrices reach. Source: NVIDIA, H100 and H200 Tensor Core GPU data sheets."""

DTYPES = ("bfloat16", "float16")


def model(device_name: str) -> str:
    """Return the name of a card without the memory size at its end, as in `NVIDIA H200 140 GiB`.

    A slice of a card (MIG) keeps its own name.
    """
    return re.sub(r" \d+ GiB$", "", device_name)


def data_sheet(device_name: str, dtype: str) -> Roof | None:
    """Return the peak rates of a card with a dtype from its data sheet; None for a card that isn't in DATA_SHEETS."""
    return DATA_SHEETS.get(model(device_name)) if dtype in DTYPES else None
