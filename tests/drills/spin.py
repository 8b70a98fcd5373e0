"""A spin of known length, as the sampler times it: `python -m tests.drills.spin`."""

import time
from collections.abc import Callable

import numpy as np

from bench.measure import clock, sampler
from bench.sampling.samples import timings

LENGTHS_S = (1e-3, 5e-3, 20e-3)
SAMPLES = 40


def spin(length_s: float) -> Callable[[], None]:
    """Return a call that keeps the core busy for so many seconds."""

    def call() -> None:
        end = time.perf_counter() + length_s
        while time.perf_counter() < end:
            pass

    return call


def main() -> None:
    """Print the length that samples show beside the known one."""
    timer = clock.timer("cpu", "host")
    print(f"reading the clock twice: {clock.overhead_s() * 1e9:.0f} ns")
    for length_s in LENGTHS_S:
        call = spin(length_s)
        pace = sampler.warm_up(call, timer, clock.overhead_s())
        values = [min(sampler.sample(call, timer, pace.calls, timings(pace.call_s)).timings_s) for _ in range(SAMPLES)]
        off = np.percentile(np.array(values) / length_s - 1, [0, 50, 95, 100])
        print(
            f"{length_s * 1e3:g} ms, {pace.calls} call(s) a timing: off by {off[0]:+.3%} at best, "
            f"{off[1]:+.3%} median, {off[2]:+.3%} at the 95th percentile, {off[3]:+.3%} at worst of {SAMPLES} samples"
        )


if __name__ == "__main__":
    main()
