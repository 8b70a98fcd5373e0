"""The groups of rows, the estimates in rows, and pairs of two."""

import dataclasses
import functools
import itertools
import math

import numpy as np
import pytest

from bench.analyse.rows import Row, by, log_latencies, pair
from bench.analyse.summary import of_records
from bench.plan.case import Case
from bench.plan.verdicts import FASTER, OPEN, SLOWER
from bench.stats.contrasts import Contrasts
from bench.stats.estimates import half_widths, interval
from tests.make.points import vit_s
from tests.make.records import samples
from tests.make.results import modelled
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


# pairs


@functools.cache
def drawn(seed: int) -> tuple[Contrasts, dict[str, Row]]:
    """Return the contrasts of a point, and its rows by implementation; sdpa has 3 processes more than the others."""
    rng, point = np.random.default_rng(seed), vit_s()
    records = [
        dataclasses.replace(modelled(Case(point, name), process), samples=samples(*np.exp(middle + scatter).tolist()))
        for name, middle, most in (("eager", 0.0, 3), ("sdpa", -0.1, 6), ("mha", -0.09, 3), ("online", 0.08, 3))
        for process in range(most)
        for scatter in [rng.normal(0, 0.02) + rng.normal(0, 0.01, 6)]
    ]
    summary = of_records(records, "eager")
    return summary.contrasts(point), {row["implementation"]: row for row in summary.rows(point)}


def test_a_pair_with_the_baseline_has_the_interval_of_its_contrast() -> None:
    """In both directions, and it is that of the speed-up."""
    of, rows = drawn(1)
    exact = interval(of.speedup("sdpa", "eager")).exp()
    times, back = (pair(rows[one], rows[other]).times for one, other in (("sdpa", "eager"), ("eager", "sdpa")))
    assert dataclasses.astuple(times) == pytest.approx(dataclasses.astuple(exact))
    assert dataclasses.astuple(back) == pytest.approx([1 / exact.value, 1 / exact.high, 1 / exact.low])


def test_another_pair_has_the_ratio_of_its_contrast_and_never_says_more_than_the_bounds() -> None:
    """One that is called faster is so by the contrast too, in most draws the other way round as well."""
    agreeing, called = 0, 0
    for seed in range(20):
        of, rows = drawn(seed)
        for one, other in itertools.permutations(("sdpa", "mha", "online"), 2):
            told, exact = pair(rows[one], rows[other]), interval(of.speedup(one, other)).exp()
            assert told.times.value == pytest.approx(exact.value)
            assert told.times.low <= told.times.value <= told.times.high
            assert told.times.high <= rows[other]["slowdown_high"] * (1 + 1e-9)
            if told.verdict == FASTER:
                assert rows[other]["slowdown_low"] > 1
            assert (told.verdict, pair(rows[other], rows[one]).verdict) in (
                (FASTER, SLOWER), (SLOWER, FASTER), (OPEN, OPEN),
            )  # fmt: skip
            agreeing += (told.verdict == FASTER) == (exact.low > 1)
            called += told.verdict == FASTER
    assert agreeing >= 110
    assert 20 < called < 100


def test_rows_without_a_common_process_have_no_pair() -> None:
    """Nothing tells which of them is faster."""
    _, rows = drawn(1)
    alone: Row = {**rows["mha"], **dict.fromkeys(("slowdown", "slowdown_low", "slowdown_high"))}
    assert pair(alone, rows["sdpa"]).verdict == OPEN
    assert not pair(alone, rows["sdpa"]).times.is_known
