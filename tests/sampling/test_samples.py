"""The number of timings in a sample."""

import pytest

from bench.sampling.samples import timings


@pytest.mark.parametrize(("call_s", "count"), [(1e-6, 3), (0.003, 3), (0.0031, 1), (60.0, 1)])
def test_longer_calls_have_fewer_timings(call_s: float, count: int) -> None:
    """A call of more than 3 ms is timed once."""
    assert timings(call_s) == count
