"""A sample: one implementation's part of a round."""

from typing import NamedTuple


class Sample(NamedTuple):
    """One sample: seconds per call of each timing, context switches, page faults, other processes' share of cores."""

    timings_s: tuple[float, ...]
    switches: int
    faults: int
    others: float = 0.0
