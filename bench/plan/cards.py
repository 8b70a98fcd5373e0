"""NVIDIA's cards as torch names them, and what their data sheets say of rates: no result on a card can be beyond it."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from bench.plan.work import Roof

DATA_SHEETS: Mapping[str, Roof] = MappingProxyType({
    "NVIDIA H100 80GB HBM3": Roof(flops_per_s=989e12, bytes_per_s=3.35e12),
    "NVIDIA H200": Roof(flops_per_s=989e12, bytes_per_s=4.8e12),
})  # fmt: skip
"""The highest rates of cards: dense matrix products in DTYPES, and the memory.

Both are SXM cards; those for PCIe, and slices of a card, have other names and other rates. The data sheets print twice
the operations, which needs sparse matrices. Source: NVIDIA, H100 and H200 Tensor Core GPU data sheets."""

DTYPES = ("bfloat16", "float16")


def model(device_name: str) -> str:
    """Return the name of a card without the memory that torch sees, which stands behind it as in `NVIDIA H200 140 GiB`.

    A slice of a card (MIG) keeps its own name.
    """
    return re.sub(r" \d+ GiB$", "", device_name)


def data_sheet(device_name: str, dtype: str) -> Roof | None:
    """Return the highest rates of a card with a dtype by its data sheet; None if that isn't known here."""
    return DATA_SHEETS.get(model(device_name)) if dtype in DTYPES else None
