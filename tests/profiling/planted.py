"""Pairs of calls that nobody made."""

from pathlib import Path

from torch.autograd.profiler_util import FunctionEvent

from bench.profiling.capture import Pair
from bench.profiling.recorded import Call

EMPTY = Call(FunctionEvent(1, "call", 1, 0, 1), (), (), {})
"""A call in which nothing happened."""


def pair(profiled_s: float, faults: tuple[int, int] = (0, 0)) -> Pair:
    """Return a pair whose calls took so long and faulted in so many pages."""
    return Pair(profiled_s / 2, profiled_s, faults, EMPTY, (), Path("trace"))
