"""Calls under the profiler in this process, for tests of what is made of them."""

from dataclasses import replace
from functools import cache
from unittest.mock import patch

from bench.measure import subjects, workload
from bench.measure.devices import device
from bench.plan.case import Point
from bench.profiling import capture
from bench.profiling.capture import Capture
from tests.make.points import point

AT = point(batch=2, num_tokens=64, channels=32, num_heads=4)
TRAIN = replace(AT, mode="train")

PAIRS = 3
"""The pairs of calls of a case: fewer than users get, because no test asserts a time."""


@cache
def captured(point: Point, implementation: str) -> Capture:
    """Return the pairs of calls of a case; each case is profiled once in a session."""
    work = workload.make(point)
    call = subjects.step(subjects.subject(work, implementation), work)
    with work.gradient_mode(), patch.object(capture, "PAIRS", PAIRS):
        return capture.capture(call, f"{implementation} call", device(point.device), point.timing)
