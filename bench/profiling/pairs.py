"""What calls in turns were found to take, without the profiler and under it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import TypeVar

from bench.profiling.blocks import Allocated
from bench.profiling.recorded import Call

Value = TypeVar("Value")

FEW_FAULTS = 50
"""Any call may fault in so many pages."""

SIMILAR = 0.1
"""Calls that all fault pages in, as they do where the allocator gives memory back, differ by this share or less."""


@dataclass(frozen=True)
class Pair:
    """The seconds of a call without the profiler and of the one after it, and what was recorded of that.

    `faults` are the pages that each of the two faulted in; `trace` is the file of the Chrome trace, as torch wrote it.
    """

    timed_s: float
    profiled_s: float
    faults: tuple[int, int]
    call: Call
    blocks: tuple[Allocated, ...]
    trace: Path

    @property
    def is_calm(self) -> bool:
        """Whether both calls met memory in the same state: neither alone faulted pages in."""
        return abs(self.faults[0] - self.faults[1]) <= max(FEW_FAULTS, SIMILAR * max(self.faults))


@dataclass(frozen=True)
class Capture:
    """All pairs of calls of one case.

    Means are taken over the middle half of the calls: like medians they pass over those that a noisy machine delayed,
    and yet those of a call's parts add up to that of the call.
    """

    pairs: tuple[Pair, ...]

    @property
    def timed_s(self) -> float:
        """The mean of the middle half of the calls without the profiler."""
        return mean(_middle(sorted(pair.timed_s for pair in self.pairs)))

    @property
    def profiled_s(self) -> float:
        """The mean of the middle half of the calls under the profiler."""
        return mean(pair.profiled_s for pair in self.middle)

    @property
    def middle(self) -> Sequence[Pair]:
        """The middle half of the profiled calls, fastest first."""
        return _middle(sorted(self.pairs, key=lambda pair: pair.profiled_s))

    @property
    def kept(self) -> Pair:
        """The pair whose profiled call stands for all: the median."""
        return self.middle[len(self.middle) // 2]


def calm(pairs: Sequence[Pair]) -> list[Pair]:
    """Return the pairs of which neither call alone faulted pages in."""
    return [pair for pair in pairs if pair.is_calm]


def _middle(ordered: Sequence[Value]) -> Sequence[Value]:
    """Return a sequence without its first and last quarter; of three calls the second remains."""
    quarter = (len(ordered) + 1) // 4
    return ordered[quarter : len(ordered) - quarter]
