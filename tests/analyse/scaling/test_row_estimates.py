"""Rows that become estimates."""

import math

import numpy as np
import pytest

from bench.analyse.scaling.row_estimates import log_latencies
from tests.analyse.planted import row


@pytest.mark.parametrize("processes", [2, 3, 5])
def test_the_error_of_a_latency_comes_back_from_its_interval(processes: int) -> None:
    """The half-width is t times the error of a mean, of which a median of three or more has 1.2533 times."""
    logs = np.linspace(-0.1, 0.1, processes)
    found = log_latencies([row("sdpa", np.exp(logs).tolist())])
    mean_error = np.std(logs, ddof=1) / math.sqrt(processes)
    assert found.error[0] == pytest.approx(mean_error * (1.2533 if processes > 2 else 1), rel=1e-4)
    assert found.freedom[0] == processes - 1


def test_one_process_has_a_value_alone() -> None:
    """A latency of one process has neither error nor degrees of freedom."""
    found = log_latencies([row("sdpa", [math.e])])
    assert found.value[0] == pytest.approx(1)
    assert np.isnan([found.error[0], found.freedom[0]]).all()
