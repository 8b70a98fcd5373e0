"""What a comparison can see, held against comparisons that were drawn."""

import math

import numpy as np
import pytest

from bench.stats.limits import LEVEL, MARGIN
from bench.stats.power import POWER, detectable, pooled_sd, redrawn
from bench.stats.significance import Moments, difference, p_beyond

QUIET = [0.001, -0.001, 0.002, 0.0, -0.002]


@pytest.mark.parametrize("processes", [3, 5, 10, 20])
@pytest.mark.parametrize(("sd", "rows"), [(0.003, 50), (0.05, 1)])
def test_a_change_of_that_size_is_found_in_four_of_five_comparisons(processes: int, sd: float, rows: int) -> None:
    """Of 10,000 comparisons by Welch's test, with few processes and with many, 80 % find it, give or take 2."""
    rng, count = np.random.default_rng(5), 10_000
    shift = math.log1p(detectable(sd, processes, rows))
    base, new = (
        Moments(values.mean(axis=1), values.std(axis=1, ddof=1), np.full(count, float(processes)))
        for values in (rng.normal(0, sd, (count, processes)), rng.normal(shift, sd, (count, processes)))
    )
    found = np.mean(p_beyond(difference(base, new), math.log1p(MARGIN)) * rows < LEVEL)
    assert found == pytest.approx(POWER, abs=0.02)


def test_more_processes_and_fewer_rows_show_smaller_changes() -> None:
    """The price of a quick look, and of a long table."""
    assert detectable(0.005, 3) > detectable(0.005, 5) > detectable(0.005, 10) > detectable(0.005, 20) > MARGIN
    assert detectable(0.005, 10, rows=1) < detectable(0.005, 10, rows=100)


def test_without_scatter_only_the_margin_is_in_the_way() -> None:
    """A change that is no larger than the margin is never called one."""
    assert detectable(0.0, 3) == MARGIN
    assert detectable(1e-5, 3) == pytest.approx(MARGIN, rel=0.05)


def test_rows_share_one_scatter() -> None:
    """Variances are averaged by their degrees of freedom, whatever the rows' means; one value tells none."""
    assert pooled_sd([[0.0, 2.0], [5.0, 5.0, 5.0], [9.0]]) == pytest.approx(math.sqrt(2 / 3))
    assert math.isnan(pooled_sd([[1.0], [2.0]]))


def test_rows_where_nothing_changed_are_equivalent_and_raise_no_alarm() -> None:
    """Quiet processes, drawn again into two runs of ten, never differ by more than 1 %; of noisy ones nothing shows."""
    quiet = redrawn([QUIET, QUIET], processes=10, seed=1, tables=100)
    assert (quiet.rows, quiet.false_alarms, quiet.equivalent, quiet.tables_with_alarm) == (200, 0, 200, 0)
    noisy = redrawn([[100 * value for value in QUIET]], processes=5, seed=1, tables=100)
    assert noisy == redrawn([[100 * value for value in QUIET]], processes=5, seed=1, tables=100)
    assert noisy.equivalent == 0
    assert noisy.false_alarms <= 2
