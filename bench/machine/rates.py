"""The rule that a time above the rates of the device was not worked for.

A run measures the rates of its device by matrix products and a copy. An implementation may reach POSSIBLE times the
best of them, because a layer's own shapes may be a little better.
"""

from bench.plan.case import Point
from bench.plan.work import Roof, Work
from bench.store import units

POSSIBLE = 1.25

BUSY_SHARE = 0.25
"""The share of the free cores that others keep busy, above which the rates say too little to end a case."""


def setting(point: Point) -> str:
    """Return the name of the device, dtype and threads of a point."""
    return f"{point.device} {point.dtype} {point.threads}"


def counted(point: Point, work: Work) -> Work:
    """Return the work that is held against a time: bytes that a cache may hold are left out."""
    return Work(work.flops, 0) if work.least_bytes <= point.kind.copied_bytes else work


def objection(work: Work, call_s: float, best: Roof) -> str:
    """Return why a call can't take as short as this on a device with these rates, empty if it can."""
    if best.least_s(work) <= POSSIBLE * call_s:
        return ""
    operations, least_bytes = work.flops or 0, work.least_bytes
    if operations / best.flops_per_s >= least_bytes / best.bytes_per_s:
        rate, limit, unit, of = operations / call_s, best.flops_per_s, "FLOP/s", "a matrix product"
    else:
        rate, limit, unit, of = least_bytes / call_s, best.bytes_per_s, "B/s", "a copy"
    reached, most = units.rate(rate, unit), units.rate(limit, unit)
    return f"impossible rate: the time means {reached}, more than the {most} of {of} here"
