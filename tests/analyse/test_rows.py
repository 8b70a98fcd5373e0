"""The groups of rows, and the estimates in rows."""

import math

import pytest

from bench.analyse.rows import by, log_latencies
from bench.stats.estimates import half_widths
from tests.make.rows import timed_row


def test_rows_by_a_column_keep_their_order() -> None:
    """Values come in the order of the rows, and so do the rows of each."""
    cells = [{"num_tokens": tokens, "batch": batch} for batch in (8, 1) for tokens in (197, 50)]
    of = {batch: [row["num_tokens"] for row in rows] for batch, rows in by(cells, "batch").items()}
    assert [*of.items()] == [(8, [197, 50]), (1, [197, 50])]


# estimates


def test_the_error_of_a_latency_comes_back_from_its_interval() -> None:
    """A table doesn't hold the degrees of freedom: a half-width is 2.576 errors, as with many; one process has none."""
    of = log_latencies(
        [{"latency_s": 2.0, "latency_low_s": 2 / 1.1, "latency_high_s": 2.2}, timed_row("sdpa", [math.e])]
    )
    assert of.value == pytest.approx([math.log(2), 1])
    assert of.error == pytest.approx([math.log(1.1) / 2.5758, math.nan], rel=1e-4, nan_ok=True)
    assert half_widths(of)[0] == pytest.approx(math.log(1.1))
    assert math.isnan(of.freedom[1])
