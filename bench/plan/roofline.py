"""The roofline model: the highest rate of a layer's work on a device.

A device has a highest rate of operations and a highest rate of moving bytes. The memory limits work with few operations
for each byte; the arithmetic limits other work.
Source: Williams, Waterman and Patterson, Roofline, CACM 52 (4), 2009.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench.plan.case import Case, Point
from bench.plan.layers import LAYERS, flops, least_bytes
from bench.plan.layers.layer import Work

CEILING_FLOPS, CEILING_BYTES = "ceiling_flops_per_s", "ceiling_bytes_per_s"
"""The metrics that hold a device's ceilings as they were known when a case was measured."""

COPIED_BYTES = {"cpu": 1 << 26, "cuda": 1 << 30}
"""The size of the copy that measures a device's rate of moving bytes: larger than its caches."""


@dataclass(frozen=True)
class Roof:
    """The ceilings of a device, as far as they are known: operations and bytes per second."""

    flops_per_s: float
    bytes_per_s: float

    @property
    def ridge(self) -> float:
        """The operations for each byte at which both ceilings meet."""
        return self.flops_per_s / self.bytes_per_s

    def least_s(self, work: Work) -> float:
        """Return the seconds that work takes at least: the larger of both bounds."""
        return max((work.flops or 0) / self.flops_per_s, work.least_bytes / self.bytes_per_s)

    def reached(self, intensity: float) -> float:
        """Return the highest rate of operations at an intensity, in operations for each byte."""
        return min(self.flops_per_s, self.bytes_per_s * intensity)

    def raised(self, other: "Roof") -> "Roof":
        """Return the better of both rates."""
        return Roof(max(self.flops_per_s, other.flops_per_s), max(self.bytes_per_s, other.bytes_per_s))


def work_of(point: Point, row: Mapping[str, Any]) -> Work | None:
    """Return the work of a call from its row, or else by the formulas of its layer; None if neither has it."""
    operations, moved = row.get("flops"), row.get("least_bytes")
    if not (operations and moved) and point.layer in LAYERS:
        operations, moved = flops(point), least_bytes(point)
    return Work(operations, moved) if operations and moved else None


def roof_of(row: Mapping[str, Any]) -> Roof | None:
    """Return the ceilings in a row; None if they aren't known."""
    highest = row.get(CEILING_FLOPS), row.get(CEILING_BYTES)
    return Roof(float(highest[0]), float(highest[1])) if highest[0] and highest[1] else None


def flops_per_s(case: Case, row: Mapping[str, Any]) -> float | None:
    """Return the rate of a case at its latency; None without a latency."""
    work, latency_s = work_of(case.point, row), row.get("latency_s")
    return work.flops / latency_s if work and work.flops and latency_s else None


def share(case: Case, row: Mapping[str, Any]) -> float | None:
    """Return the least time of a case by its ceilings over its latency; None if either isn't known."""
    work, roof, latency_s = work_of(case.point, row), roof_of(row), row.get("latency_s")
    return roof.least_s(work) / latency_s if work and roof and latency_s else None
