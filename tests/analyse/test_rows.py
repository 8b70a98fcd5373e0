"""Rows as plain values, and in groups."""

import math

from bench.analyse.rows import by, known, measured, plain, speedup_of, unmeasured
from bench.plan.case import Case
from bench.stats.estimates import Interval
from tests.make.points import vit_s
from tests.make.results import results


def test_rows_by_a_column_keep_their_order() -> None:
    """Values come in the order of the rows, and so do the rows of each."""
    cells = [{"num_tokens": tokens, "batch": batch} for batch in (8, 1) for tokens in (197, 50)]
    of = {batch: [row["num_tokens"] for row in rows] for batch, rows in by(cells, "batch").items()}
    assert [*of.items()] == [(8, [197, 50]), (1, [197, 50])]


def test_a_missing_value_is_none() -> None:
    """What pandas calls NA, and NaN; a ratio that isn't known has no number."""
    lost = Case(vit_s(), "sdpa")
    cases = [Case(vit_s(), name) for name in ("eager", "mha")]
    eager, mha, sdpa = plain(results([*cases, lost], {lost: ("oom", "")}))
    assert (eager["num_tokens"], eager["detail"], sdpa["latency_s"], known(math.nan)) == (197, None, None, None)
    assert (measured([eager, mha, sdpa]), unmeasured([eager, mha, sdpa])) == ([eager, mha], [sdpa])
    assert speedup_of(mha) == Interval(mha["speedup"], mha["speedup_low"], mha["speedup_high"])
    assert not speedup_of(sdpa).is_known
