"""The rates that a device reaches, by matrix products and a copy; and the speed probe: how fast it is at the moment."""

from collections.abc import Iterator
from time import perf_counter

import torch

from bench.measure.clock import Call, timer
from bench.plan.case import Point
from bench.plan.layers import COPIED_BYTES, Roof

SIDES = {"cpu": (256, 512, 1024, 2048, 4096), "cuda": (8192, 16384)}
"""The sides of the matrices that are multiplied: small ones find gaps on a busy machine, many cores need large ones."""

LONGEST_S = 0.02
"""No larger product is tried after one that takes longer than this."""


class DeviceRates:
    """Products and a copy on a point's device, in its dtype and in float32, because a kernel may compute in it."""

    def __init__(self, point: Point) -> None:
        self._timer = timer(point.device, "host")
        self._kind = "cpu" if point.device == "cpu" else "cuda"
        dtypes = dict.fromkeys((point.dtype, "float32"))
        self._products = [each for dtype in dtypes for each in self._of_dtype(point.device, dtype)]
        source = torch.zeros(COPIED_BYTES[self._kind] // 2, dtype=torch.uint8, device=point.device)
        target = torch.empty_like(source)
        self._copy: Call = lambda: target.copy_(source)

    def best(self, turns: int, least_s: float) -> Roof:
        """Return the highest rates in so many turns, or as many more as fit into the seconds."""
        best, end = Roof(0.0, 0.0), perf_counter() + least_s
        while turns > 0 or perf_counter() < end:
            flops_per_s = max(operations / self._timer(product, 1) for operations, product in self._products)
            best = best.raised(Roof(flops_per_s, COPIED_BYTES[self._kind] / self._timer(self._copy, 1)))
            turns -= 1
        return best

    def _of_dtype(self, device: str, dtype: str) -> Iterator[tuple[int, Call]]:
        for side in SIDES[self._kind]:
            call = product(device, dtype, side)
            call()  # the first call loads the library
            yield 2 * side**3, call
            if self._timer(call, 1) > LONGEST_S:
                break


def product(device: str, dtype: str, side: int) -> Call:
    """Return a call that multiplies two square matrices."""
    factor = torch.randn(side, side, device=device).to(getattr(torch, dtype))
    result = torch.empty_like(factor)
    return lambda: torch.mm(factor, factor, out=result)


PROBE_SIDES = {"cpu": 192, "cuda": 4096}
"""The side of the matrices. On a CPU factor and result fit into a core's second cache (288 KiB in float32)."""

COPY_BYTES = {"cpu": 1 << 21, "cuda": 1 << 26}
"""The bytes that are copied: on a CPU they pass through the cache that cores share."""


class SpeedProbe:
    """A matrix product and a copy on a point's device, in its dtype and with the threads of this process."""

    def __init__(self, point: Point) -> None:
        kind = "cpu" if point.device == "cpu" else "cuda"
        self._timer = timer(point.device, "host")
        self._product = product(point.device, point.dtype, PROBE_SIDES[kind])
        source = torch.zeros(COPY_BYTES[kind], dtype=torch.uint8, device=point.device)
        target = torch.empty_like(source)
        self._copy = lambda: target.copy_(source)
        self.times_s()  # the first call loads the library

    def times_s(self) -> tuple[float, float]:
        """Return the seconds of the product and of the copy; each is called before, to bring its data into caches."""
        for call in (self._copy, self._product):
            call()
        return self._timer(self._product, 1), self._timer(self._copy, 1)
