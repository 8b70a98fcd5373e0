"""The groups of rows, the estimates in rows, and ratios of two."""

import math

import numpy as np
import pytest

from bench.analyse.rows import Row, by, log_latencies, log_speedups, times_as_fast
from bench.stats.estimates import half_widths
from tests.make.rows import timed_row


def test_rows_by_a_column_keep_their_order() -> None:
    """Values come in the order of the rows, and so do the rows of each."""
    cells = [{"num_tokens": tokens, "batch": batch} for batch in (8, 1) for tokens in (197, 50)]
    of = {batch: [row["num_tokens"] for row in rows] for batch, rows in by(cells, "batch").items()}
    assert [*of.items()] == [(8, [197, 50]), (1, [197, 50])]


# estimates


def test_the_error_of_a_latency_comes_back_from_its_interval() -> None:
    """A table doesn't hold the degrees of freedom: a half-width is 1.96 errors, as with many; one process has none."""
    of = log_latencies(
        [{"latency_s": 2.0, "latency_low_s": 2 / 1.1, "latency_high_s": 2.2}, timed_row("sdpa", [math.e])]
    )
    assert of.value == pytest.approx([math.log(2), 1])
    assert of.error == pytest.approx([math.log(1.1) / 1.96, math.nan], rel=1e-4, nan_ok=True)
    assert half_widths(of)[0] == pytest.approx(math.log(1.1))
    assert math.isnan(of.freedom[1])


def test_the_error_of_a_speedup_comes_back_from_its_interval() -> None:
    """Four degrees of freedom: a half-width is 4.604 errors. The baseline has none, and one process knows none."""
    cells = [(1.5, 1.2, 1.875, 4.0), (1.0, 1.0, 1.0, 4.0), (2.0, None, None, None)]
    columns = ("speedup", "speedup_low", "speedup_high", "log_ratio_freedom")
    of = log_speedups([dict(zip(columns, each, strict=True)) for each in cells])
    assert of.value == pytest.approx(np.log([1.5, 1.0, 2.0]))
    assert of.error == pytest.approx([math.log(1.25) / 4.604, 0, math.nan], rel=1e-3, nan_ok=True)


# ratios


def rival(log: float, spread: float = 0.01) -> list[Row]:
    """Return the rows of eager and of sdpa at a point; sdpa's speed-up has this logarithm, with a little scatter."""
    times = [math.exp(-log + spread * step) for step in (-1, 0, 1)]
    return [timed_row("eager", [1.0] * 3, [1.0] * 3), timed_row("sdpa", times, [1.0] * 3)]


def test_a_lead_is_the_ratio_of_two_rows_with_its_interval() -> None:
    """Sdpa at 1.2 times the baseline and eager at 1: it is 1.2 times as fast, and its interval that of the speed-up."""
    eager, sdpa = rival(math.log(1.2))
    lead = times_as_fast(sdpa, eager)
    half = 9.925 * 0.01 / math.sqrt(3)
    assert lead.value == pytest.approx(1.2)
    assert (lead.low, lead.high) == pytest.approx((1.2 * math.exp(-half), 1.2 * math.exp(half)), rel=1e-4)
    assert times_as_fast(eager, sdpa).value == pytest.approx(1 / 1.2)


def test_speedups_go_before_latencies() -> None:
    """Latencies that drifted change nothing; where the baseline failed they serve, in both directions."""
    eager, sdpa = rival(math.log(1.2))
    assert times_as_fast({**sdpa, "latency_s": 9.0}, eager) == times_as_fast(sdpa, eager)
    of = times_as_fast({**sdpa, "speedup": None}, timed_row("eager", [1.5, 1.52, 1.48]))
    assert of.value == pytest.approx(1.5 * 1.2)
    assert of.low < 1.8 < of.high
    assert times_as_fast(timed_row("eager", [1.5]), sdpa).value == pytest.approx(1 / 1.8)
