"""The number of timings in a sample."""

import pytest

from bench.sampling.samples import timings


@pytest.mark.parametrize(("call_s", "count"), [(1e-6, 3), (0.02, 3), (0.021, 2), (0.1, 2), (0.11, 1), (60.0, 1)])
def test_longer_calls_have_fewer_timings(call_s: float, count: int) -> None:
    """A call above 20 ms is timed twice, one above 100 ms once."""
    assert timings(call_s) == count
