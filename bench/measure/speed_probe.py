"""The speed probe: two fixed pieces of work, whose times tell how fast the machine is at the moment."""

import torch

from bench.measure.clock import timer
from bench.measure.device_rates import product
from bench.plan.case import Point

SIDES = {"cpu": 192, "cuda": 4096}
"""The side of the matrices. On a CPU factor and result fit into a core's second cache (288 KiB in float32)."""

COPY_BYTES = {"cpu": 1 << 21, "cuda": 1 << 26}
"""The bytes that are copied: on a CPU they pass through the cache that cores share."""


class SpeedProbe:
    """A matrix product and a copy on a point's device, in its dtype and with the threads of this process."""

    def __init__(self, point: Point) -> None:
        kind = "cpu" if point.device == "cpu" else "cuda"
        self._timer = timer(point.device, "host")
        self._product = product(point.device, point.dtype, SIDES[kind])
        source = torch.zeros(COPY_BYTES[kind], dtype=torch.uint8, device=point.device)
        target = torch.empty_like(source)
        self._copy = lambda: target.copy_(source)
        self.times_s()  # the first call loads the library

    def times_s(self) -> tuple[float, float]:
        """Return the seconds of the product and of the copy; each is called before, to bring its data into caches."""
        for call in (self._copy, self._product):
            call()
        return self._timer(self._product, 1), self._timer(self._copy, 1)
