"""The roofline of a row: its work, its rate, the ceilings of its device, and how near it comes to them."""

from collections.abc import Mapping
from typing import Any

from bench.plan import layers
from bench.plan.case import Case, Point
from bench.plan.work import Roof, Work

CEILING_FLOPS, CEILING_BYTES = "ceiling_flops_per_s", "ceiling_bytes_per_s"
"""The metrics that hold a device's ceilings as they were known when a case was measured."""


def work_of(point: Point, row: Mapping[str, Any]) -> Work | None:
    """Return the work of a call from its row, or else by the formulas of its layer; None if neither has it."""
    operations, moved = row.get("flops"), row.get("least_bytes")
    if not (operations and moved) and point.layer in layers.LAYERS:
        operations, moved = layers.flops(point), layers.least_bytes(point)
    return Work(operations, moved) if operations and moved else None


def roof_of(row: Mapping[str, Any]) -> Roof | None:
    """Return the ceilings in a row; None if they aren't known."""
    highest = row.get(CEILING_FLOPS), row.get(CEILING_BYTES)
    return Roof(float(highest[0]), float(highest[1])) if highest[0] and highest[1] else None


def flops_per_s(case: Case, row: Mapping[str, Any]) -> float | None:
    """Return the rate of a case at its latency; None without a latency."""
    work, latency_s = work_of(case.point, row), row.get("latency_s")
    return work.flops / latency_s if work and work.flops and latency_s else None


def roofline_share(case: Case, row: Mapping[str, Any]) -> float | None:
    """Return the least time of a case by its ceilings over its latency; None if either isn't known, or above 1.

    A case above its ceilings has its bytes in a cache, or the ceilings were measured in a slower state.
    """
    work, roof, latency_s = work_of(case.point, row), roof_of(row), row.get("latency_s")
    share = roof.least_s(work) / latency_s if work and roof and latency_s else None
    return None if share is None or share > 1 else share
