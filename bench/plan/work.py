"""The least work of a call, and the ceilings of a device; together they bound its time."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Work:
    """The least work of a call: floating-point operations, None if they are unknown, and moved bytes."""

    flops: int | None
    least_bytes: int

    @property
    def intensity(self) -> float:
        """The operations per byte; 0 if they are unknown."""
        return (self.flops or 0) / self.least_bytes


@dataclass(frozen=True)
class Roof:
    """The ceilings of a device, in operations and bytes per second, as far as they are known.

    Bytes limit work with few operations per byte; operations limit the rest.
    Source: Williams, Waterman and Patterson, Roofline, CACM 52 (4), 2009.
    """

    flops_per_s: float
    bytes_per_s: float

    @property
    def ridge(self) -> float:
        """The operations per byte at which both ceilings meet."""
        return self.flops_per_s / self.bytes_per_s

    def least_s(self, work: Work) -> float:
        """Return the least seconds that work takes: the larger of both bounds."""
        return max((work.flops or 0) / self.flops_per_s, work.least_bytes / self.bytes_per_s)

    def reached(self, intensity: float) -> float:
        """Return the highest rate of operations at an intensity in operations per byte."""
        return min(self.flops_per_s, self.bytes_per_s * intensity)

    def raised(self, other: "Roof") -> "Roof":
        """Return the better of two roofs, rate by rate."""
        return Roof(max(self.flops_per_s, other.flops_per_s), max(self.bytes_per_s, other.bytes_per_s))
