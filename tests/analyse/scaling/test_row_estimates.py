"""Rows that become estimates."""

import math

import numpy as np
import pytest

from bench.analyse.scaling.row_estimates import log_latencies, log_speedups
from bench.stats.estimates import half_widths
from tests.analyse.planted import row


def test_the_error_of_a_latency_comes_back_from_its_interval() -> None:
    """A table doesn't hold the degrees of freedom: a half-width is 1.96 errors, as with many."""
    found = log_latencies([{"latency_s": 2.0, "latency_low_s": 2 / 1.1, "latency_high_s": 2.2}])
    assert found.value[0] == pytest.approx(math.log(2))
    assert found.error[0] == pytest.approx(math.log(1.1) / 1.96, rel=1e-4)
    assert half_widths(found)[0] == pytest.approx(math.log(1.1))


def test_the_error_of_a_speedup_comes_back_from_its_interval() -> None:
    """Four degrees of freedom: a half-width is 2.776 errors. The baseline has none, and one process knows none."""
    cells = [(1.5, 1.2, 1.875, 4.0), (1.0, 1.0, 1.0, 4.0), (2.0, None, None, None)]
    columns = ("speedup", "speedup_low", "speedup_high", "log_ratio_freedom")
    found = log_speedups([dict(zip(columns, row, strict=True)) for row in cells])
    assert found.value == pytest.approx(np.log([1.5, 1.0, 2.0]))
    assert found.error == pytest.approx([math.log(1.25) / 2.776, 0, math.nan], rel=1e-3, nan_ok=True)


def test_one_process_has_a_value_alone() -> None:
    """A latency of one process has neither error nor degrees of freedom."""
    found = log_latencies([row("sdpa", [math.e])])
    assert found.value[0] == pytest.approx(1)
    assert np.isnan([found.error[0], found.freedom[0]]).all()
