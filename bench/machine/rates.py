"""Reject times that are impossible at the device's rates, because the work can't have been done.

A run measures the rates of its device by matrix products and a copy. An implementation may reach POSSIBLE times the
best of them, because a layer's own shapes may be slightly faster.
"""

from bench.plan.case import Point
from bench.plan.work import Roof, Work
from bench.store import units

POSSIBLE = 1.25

BUSY_SHARE = 0.25
"""The share of the free cores that others use above which the rates are too imprecise to end a case."""


def setting(point: Point) -> str:
    """Return a text that names the device, dtype and threads of a point."""
    return f"{point.device} {point.dtype} {point.threads}"


def counted(point: Point, work: Work) -> Work:
    """Return the work with which a time is compared, without bytes that a cache may hold."""
    return Work(work.flops, 0) if work.least_bytes <= point.kind.copied_bytes else work


def objection(work: Work, call_s: float, best: Roof) -> str:
    """Return why a device with these rates can't do the work in `call_s` seconds; empty if it can."""
    if best.least_s(work) <= POSSIBLE * call_s:
        return ""
    operations, least_bytes = work.flops or 0, work.least_bytes
    if operations / best.flops_per_s >= least_bytes / best.bytes_per_s:
        rate, limit, unit, of = operations / call_s, best.flops_per_s, "FLOP/s", "a matrix product"
    else:
        rate, limit, unit, of = least_bytes / call_s, best.bytes_per_s, "B/s", "a copy"
    reached, most = units.rate(rate, unit), units.rate(limit, unit)
    return f"impossible rate: the time means {reached}, more than the {most} of {of} here"
