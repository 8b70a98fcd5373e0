"""Rows as plain values."""

from bench.plan.case import Case
from bench.show.rows import by_point, measured, plain, reason, unmeasured
from tests.make.points import vit_s
from tests.make.results import quick, results

CASES = [Case(vit_s(), name) for name in ("eager", "sdpa", "mha")]


def test_rows_hold_plain_values_and_have_a_time_or_a_reason() -> None:
    """What pandas calls NA is None; rows keep their order and are gathered by point; a reason is one line."""
    rows = plain(results(CASES, {CASES[2]: ("error", "RuntimeError:\n  bad\n")}))
    assert [row["implementation"] for row in measured(rows)] == ["eager", "sdpa"]
    (lost,) = unmeasured(rows)
    assert (lost["latency_s"], lost["num_tokens"], reason(lost)) == (None, 197, "RuntimeError: bad")
    assert rows[0]["detail"] is None
    assert [len(gathered) for gathered in by_point(quick()).values()] == [7] * 12
