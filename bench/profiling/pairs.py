"""Pairs of calls without and with the profiler."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import TypeVar

from bench.profiling.blocks import Allocated
from bench.profiling.recorded import Call

Value = TypeVar("Value")

FEW_FAULTS = 50
"""The noise of page faults: any call may have this many."""

SIMILAR = 0.1
"""The largest relative difference between the page faults of two calls in the same state of memory."""


@dataclass(frozen=True)
class Pair:
    """A call without the profiler and the next one with it: their seconds, and the recording of the second.

    `faults` are the page faults of both calls; `trace` is the file of the Chrome trace that torch wrote.
    """

    timed_s: float
    profiled_s: float
    faults: tuple[int, int]
    call: Call
    blocks: tuple[Allocated, ...]
    trace: Path

    @property
    def is_comparable(self) -> bool:
        """Whether both calls had about the same number of page faults, so that memory was in the same state."""
        return abs(self.faults[0] - self.faults[1]) <= max(FEW_FAULTS, SIMILAR * max(self.faults))


@dataclass(frozen=True)
class Capture:
    """All pairs of calls of one case.

    Means are taken over the middle half of the calls: like medians they ignore delayed calls, and the means of a call's
    parts add up to that of the call.
    """

    pairs: tuple[Pair, ...]

    @property
    def timed_s(self) -> float:
        """The mean seconds of the middle half of the calls without the profiler."""
        return mean(_middle_half(sorted(pair.timed_s for pair in self.pairs)))

    @property
    def profiled_s(self) -> float:
        """The mean seconds of the middle half of the calls with the profiler."""
        return mean(pair.profiled_s for pair in self.middle_half)

    @property
    def middle_half(self) -> Sequence[Pair]:
        """The middle half of the profiled calls, fastest first."""
        return _middle_half(sorted(self.pairs, key=lambda pair: pair.profiled_s))

    @property
    def median(self) -> Pair:
        """The pair with the median profiled call, which represents all in timeline, memory chart and trace."""
        return self.middle_half[len(self.middle_half) // 2]


def _middle_half(ordered: Sequence[Value]) -> Sequence[Value]:
    """Return a sequence without its first and last quarter; of three values only the second."""
    quarter = (len(ordered) + 1) // 4
    return ordered[quarter : len(ordered) - quarter]
