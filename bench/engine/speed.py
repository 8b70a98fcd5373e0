"""The machine's speed around each sample, by the judge's speed probe."""

import statistics
import time
from collections.abc import Callable, Sequence

PROBE_SHARE = 1 / 12
"""The largest share of the time that probes take: after each one the next one waits."""

QUANTILES = 20
"""The machine's best is the first of so many quantiles of the readings."""


class Speed:
    """Readings of the speed probe between samples.

    `probe` returns the seconds of the product and of the copy, None if they can't be had.
    """

    def __init__(self, probe: Callable[[], tuple[float, float] | None]) -> None:
        self._probe = probe
        self._readings: list[tuple[float, float]] = []
        self._due_s = 0.0

    def reading(self) -> int:
        """Return the number of the latest reading, after a new one if it is due."""
        if time.perf_counter() >= self._due_s:
            self.read()
        return len(self._readings) - 1

    def read(self) -> None:
        """Take a reading now."""
        begin = time.perf_counter()
        reading = self._probe()
        if reading is not None:
            self._readings.append(reading)
        end = time.perf_counter()
        self._due_s = end + (end - begin) * (1 / PROBE_SHARE - 1)

    def best(self) -> tuple[float, float] | None:
        """Return the seconds of product and copy at the machine's best: a low quantile, because a minimum may be luck.

        None if there are fewer than two readings.
        """
        if len(self._readings) < 2:
            return None
        # inclusive, so that it lies among the values that were measured
        product_s, copy_s = (
            statistics.quantiles(values, n=QUANTILES, method="inclusive")[0]
            for values in zip(*self._readings, strict=True)
        )
        return product_s, copy_s

    def around(self, numbers: Sequence[int]) -> tuple[list[float], list[float]]:
        """Return the seconds of product and copy around each sample: the means of a reading and of the next one.

        `numbers` are those of the latest readings before the samples. Empty if there is no reading.
        """
        if not self._readings:
            return [], []
        last = len(self._readings) - 1
        pairs = [(self._readings[max(number, 0)], self._readings[min(number + 1, last)]) for number in numbers]
        product_s = [(before[0] + after[0]) / 2 for before, after in pairs]
        copy_s = [(before[1] + after[1]) / 2 for before, after in pairs]
        return product_s, copy_s
