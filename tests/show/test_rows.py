"""Rows as plain values."""

from bench.plan.case import Case
from bench.show.rows import by_point, measured, plain, reason, unmeasured
from tests.examples import point
from tests.show.example_results import quick, results

CASES = [Case(point(), name) for name in ("eager", "sdpa", "mha")]


def test_missing_values_become_none() -> None:
    """What pandas calls NA is None in a row."""
    row = plain(results(CASES[:1], {CASES[0]: ("oom", "")}))[0]
    assert row["latency_s"] is None
    assert row["detail"] is None
    assert row["num_tokens"] == 197


def test_rows_are_gathered_by_point() -> None:
    """The sweep `quick` has twelve points of eight implementations each."""
    points = by_point(quick())
    assert len(points) == 12
    assert {len(rows) for rows in points.values()} == {7}


def test_measured_rows_are_those_with_a_time() -> None:
    """Rows that are ok and the others apart, each in their order; the lines of a reason are joined."""
    rows = plain(results(CASES, {CASES[2]: ("error", "RuntimeError:\n  bad\n")}))
    assert [row["implementation"] for row in measured(rows)] == ["eager", "sdpa"]
    assert [reason(row) for row in unmeasured(rows)] == ["RuntimeError: bad"]
