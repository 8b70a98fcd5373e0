"""Calls under the profiler in this process, for tests of profiles."""

from dataclasses import replace
from functools import cache
from unittest.mock import patch

from bench.measure.devices import device
from bench.plan.case import Case, Point
from bench.profiling import capture
from bench.profiling.capture import Capture
from bench.profiling.worker import call_of
from tests.make.points import point

AT = point(batch=2, num_tokens=64, channels=32, num_heads=4)
TRAIN = replace(AT, mode="train")


@cache
def captured(at: Point, implementation: str) -> Capture:
    """Return three calls of a case; each case is profiled once in a session."""
    with call_of(Case(at, implementation)) as call, patch.object(capture, "CALLS", 3):
        return capture.capture(call, "call", device(at.device), at.timing, at.threads)
