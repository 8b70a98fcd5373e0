"""Weighted sums of what few processes say."""

import math

import numpy as np
import pytest
from scipy import stats

from bench.analyse.scaling.row_estimates import log_latencies, log_speedups
from bench.stats.estimates import Estimates, combined, exact, half_widths, intervals
from tests.analyse.planted import row

T_975 = {2: 4.303, 4: 2.776}
"""The 97.5 % points of Student's t by degrees of freedom, as printed in tables."""


def samples(*processes: list[float]) -> Estimates:
    """Return the estimates of the logarithms of speed-ups, given one for each process."""
    return log_speedups([row("sdpa", [math.exp(-log) for log in logs], [1.0] * len(logs)) for logs in processes])


def test_a_difference_has_welchs_interval() -> None:
    """Of two means with unequal scatter it is what scipy's test of Welch says."""
    one, other = [0.1, 0.13, 0.09], [0.3, 0.5, 0.2, 0.35, 0.41]
    (found,) = intervals(combined(np.array([[-1.0, 1.0]]), samples(one, other)))
    expected = stats.ttest_ind(other, one, equal_var=False).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.value == pytest.approx(np.mean(other) - np.mean(one))


def test_weights_multiply_value_and_error() -> None:
    """Half a mean has half its interval, with the degrees of freedom that it had."""
    logs = [0.1, 0.2, 0.3]
    (found,) = intervals(combined(np.array([[0.5]]), samples(logs)))
    half = T_975[2] * 0.1 / math.sqrt(3) / 2
    assert (found.value, found.high - found.value) == pytest.approx((0.1, half), rel=1e-3)


def test_what_has_no_weight_has_no_say() -> None:
    """An estimate without a known scatter spoils only the sums that it is part of."""
    known, unknown = [0.1, 0.2, 0.3], [0.1]
    whole, spoilt = intervals(combined(np.array([[1.0, 0.0], [1.0, 1.0]]), samples(known, unknown)))
    assert whole.is_known
    assert not spoilt.is_known
    assert spoilt.value == pytest.approx(0.3)


def test_processes_without_any_scatter_give_no_interval() -> None:
    """Where the clock was too coarse to see a difference, nothing is said of the scatter."""
    assert np.isnan(half_widths(combined(np.array([[1.0]]), samples([0.1, 0.1, 0.1])))).all()


def test_a_baseline_adds_no_scatter_of_its_own() -> None:
    """The ratio of the baseline to itself is 1 in each process, so that a difference to it has the other's interval."""
    logs = [0.1, 0.2, 0.3]
    (found,) = intervals(combined(np.array([[-1.0, 1.0]]), samples([0.0, 0.0, 0.0], logs)))
    assert found.high - found.value == pytest.approx(T_975[2] * 0.1 / math.sqrt(3), rel=1e-3)


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


def test_what_is_counted_has_no_interval() -> None:
    """Bytes are exact: differences of them are values alone."""
    (found,) = intervals(combined(np.array([[-1.0, 1.0]]), exact([2.0, 5.0])))
    assert found.value == 3
    assert not found.is_known
