"""What the device reaches at best, by a matrix product and a copy: a rate above it was not worked for."""

import time
from dataclasses import dataclass

import torch

from bench.measure.clock import Call, timer
from bench.plan.case import Point
from bench.plan.layers import flops, least_bytes
from bench.show import units

PRODUCT = {"cpu": 1024, "cuda": 8192}
"""The side of the matrices that are multiplied."""

AGAIN = {"cpu": 4096, "cuda": 16384}
"""The side of those that are multiplied before a rate is called impossible: many cores need them large."""

COPIED_BYTES = {"cpu": 1 << 26, "cuda": 1 << 30}
"""The size of the copy. A call that moves less is not held against it, because a cache may be faster than memory."""

LEAST, TAKE_S = 3, 0.1
"""Product and copy are repeated so often, and so many seconds; the fastest counts."""

MARGIN = 1.25
"""A layer's own shapes may reach a little more than these."""


@dataclass(frozen=True)
class Ceiling:
    """The best that was seen of a device: floating-point operations and bytes per second."""

    flops_per_s: float
    bytes_per_s: float


_best: dict[tuple[str, str, int], Ceiling] = {}
"""What this process has seen, by device, dtype and threads."""


def objection(point: Point, call_s: float) -> str:
    """Return what is impossible about a call that takes so long, with the figures; empty where nothing is.

    The ceiling is taken once in a process, and once more before anything is called impossible, in case the machine
    was slow the first time. Where there is no memory to take it, nothing is called impossible.
    """
    try:
        return _above(point, call_s, _ceiling(point, call_s))
    except (MemoryError, RuntimeError):
        return ""


def _ceiling(point: Point, call_s: float) -> Ceiling:
    key, kind = (point.device, point.dtype, point.threads), _kind(point)
    if key not in _best:
        _best[key] = _take(point, PRODUCT[kind])
    if _above(point, call_s, _best[key]):
        again = _take(point, AGAIN[kind])
        _best[key] = Ceiling(
            max(_best[key].flops_per_s, again.flops_per_s), max(_best[key].bytes_per_s, again.bytes_per_s)
        )
    return _best[key]


def _above(point: Point, call_s: float, ceiling: Ceiling) -> str:
    operations, moved_bytes = flops(point), least_bytes(point)
    if operations / call_s > MARGIN * ceiling.flops_per_s:
        return _impossible(operations / call_s, ceiling.flops_per_s, "FLOP/s", "a matrix product")
    if moved_bytes > COPIED_BYTES[_kind(point)] and moved_bytes / call_s > MARGIN * ceiling.bytes_per_s:
        return _impossible(moved_bytes / call_s, ceiling.bytes_per_s, "B/s", "a copy")
    return ""


def _impossible(rate: float, best: float, unit: str, of: str) -> str:
    return (
        f"impossible rate: the layer's work at this time would be {units.rate(rate, unit)}; "
        f"{of} reaches {units.rate(best, unit)} here"
    )


def _take(point: Point, side: int) -> Ceiling:
    """Return what a copy and a product reach now, the product also in float32: a kernel may compute in it."""
    device, copied = point.device, COPIED_BYTES[_kind(point)]
    with torch.inference_mode():
        product_s = min(_product_s(device, dtype, side) for dtype in {point.dtype, "float32"})
        source = torch.zeros(copied // 2, dtype=torch.uint8, device=device)
        target = torch.empty_like(source)
        copy_s = _fastest(lambda: target.copy_(source), device)
    return Ceiling(2 * side**3 / product_s, copied / copy_s)


def _product_s(device: str, dtype: str, side: int) -> float:
    factor = torch.randn(side, side, device=device).to(getattr(torch, dtype))
    product = torch.empty_like(factor)
    return _fastest(lambda: torch.mm(factor, factor, out=product), device)


def _fastest(call: Call, device: str) -> float:
    clock = timer(device, "host")
    times: list[float] = []
    end = time.perf_counter() + TAKE_S
    while len(times) < LEAST or time.perf_counter() < end:
        times.append(clock(call, 1))
    return min(times)


def _kind(point: Point) -> str:
    return "cpu" if point.device == "cpu" else "cuda"
