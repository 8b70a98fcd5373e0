"""Measure the rates of a device by matrix products and a copy."""

from collections.abc import Iterator
from time import perf_counter

import torch

from bench.measure.clock import Call, timed
from bench.measure.devices import device
from bench.plan.case import Point
from bench.plan.work import Roof

LONGEST_S = 0.02
"""No larger product is tried after one that takes longer than these seconds."""


class DeviceRates:
    """Products and a copy on a point's device; products in its dtype and in float32, which a kernel may use inside."""

    def __init__(self, point: Point) -> None:
        self._timer = device(point.device).timer(point.kind.timings[0])
        self._products = [
            each for dtype in dict.fromkeys((point.dtype, "float32")) for each in self._of_dtype(point, dtype)
        ]
        self._bytes = point.kind.copied_bytes
        self._copy = copy(device(point.device).place, self._bytes // 2)  # each byte is read and written

    def best(self, turns: int, least_s: float) -> Roof:
        """Return the highest rates of at least `turns` turns and at least `least_s` seconds."""
        best, end = Roof(0.0, 0.0), perf_counter() + least_s
        while turns > 0 or perf_counter() < end:
            flops_per_s = max(operations / self._seconds(product) for operations, product in self._products)
            best = best.raised(Roof(flops_per_s, self._bytes / self._seconds(self._copy)))
            turns -= 1
        return best

    def _seconds(self, call: Call) -> float:
        return timed(self._timer, call).call_s

    def _of_dtype(self, point: Point, dtype: str) -> Iterator[tuple[int, Call]]:
        for side in point.kind.products:
            call = product(device(point.device).place, dtype, side)
            call()  # the first call loads the library
            yield 2 * side**3, call
            if self._seconds(call) > LONGEST_S:
                break


def product(device: str, dtype: str, side: int) -> Call:
    """Return a call that multiplies two square matrices."""
    factor = torch.randn(side, side, device=device).to(getattr(torch, dtype))
    result = torch.empty_like(factor)
    return lambda: torch.mm(factor, factor, out=result)


def copy(device: str, size: int) -> Call:
    """Return a call that copies `size` bytes."""
    source = torch.zeros(size, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    return lambda: target.copy_(source)
