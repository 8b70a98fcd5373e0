"""The roofline of a row: its work, its rate, its device's ceilings, and the share of them that it reaches."""

from collections.abc import Mapping
from typing import Any

from bench.plan import layers
from bench.plan.case import Case, Point
from bench.plan.work import Roof, Work

CEILING_FLOPS, CEILING_BYTES = "ceiling_flops_per_s", "ceiling_bytes_per_s"
"""The metrics with the device's ceilings, as known when the case was measured."""


def work_of(point: Point, row: Mapping[str, Any]) -> Work | None:
    """Return the work of a call from its row, or from its layer's formulas; None if neither has it."""
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
    """Return a case's least time by the ceilings over its latency; None if either is unknown or the ratio is above 1.

    A case above its ceilings reads from a cache, or the ceilings were measured in a slower state.
    """
    work, roof, latency_s = work_of(case.point, row), roof_of(row), row.get("latency_s")
    share = roof.least_s(work) / latency_s if work and roof and latency_s else None
    return None if share is None or share > 1 else share
