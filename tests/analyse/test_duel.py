"""The rows of a duel: what two sides' records say together."""

import math

import pytest

from bench.analyse.duel import Row, rows
from bench.stats.sequential import Judgement
from bench.store.record import Record, Samples
from tests import examples
from tests.points import point

LOOKS = (2, 4)


def record(process: int, slot_s: float, status: str = "ok", detail: str = "") -> Record:
    """Return a record of three samples of the same length, a little longer in every second process."""
    value_s = slot_s * (1 + process % 2 * 1e-3)
    samples = examples.timed(*[value_s] * 3) if status == "ok" else Samples()
    return examples.record(process=process, status=status, detail=detail, samples=samples)


def test_a_row_holds_the_ratio_of_b_to_a_and_both_times() -> None:
    """B takes half the time, so it is twice as fast; the times are the medians of the processes'."""
    a, b = [record(n, 2e-3) for n in range(2)], [record(n, 1e-3 * (1 + n * 1e-3)) for n in range(2)]
    (row,) = rows({point(): (a, b)}, LOOKS)
    assert row.judgement.verdict == "faster"
    assert row.judgement.ratio == pytest.approx(2, rel=1e-3)
    assert row.latencies_s == pytest.approx((2.001e-3, 1.001e-3), rel=1e-3)
    assert row.is_measured
    assert row.is_decided


def test_what_came_after_a_look_is_not_heard() -> None:
    """The third process was measured before anybody looked, and takes ten times as long."""
    a, b = [record(n, 2e-3) for n in range(3)], [record(n, value_s) for n, value_s in enumerate((1e-3, 1.001e-3, 1e-2))]
    (two,), (three,) = (rows({point(): (a[:count], b[:count])}, LOOKS) for count in (2, 3))
    assert three.judgement == two.judgement
    assert three.judgement.processes == 2


def test_rows_are_judged_together() -> None:
    """A row that lacks a process holds up the look for the other that is open."""
    whole, short = ([record(n, 2e-3) for n in range(count)] for count in (2, 1))
    found = rows({point(num_tokens=5): (whole, whole), point(num_tokens=7): (short, short)}, LOOKS)
    assert [row.judgement.verdict for row in found] == ["open", "open"]


def test_a_side_that_failed_is_named_and_ends_the_row() -> None:
    """Why a side has no time is said, but not that the other was skipped for it."""
    failed = record(1, 0, status="crashed", detail="killed")
    skipped = record(1, 0, status="skipped", detail="the other side could not be measured")
    (row,) = rows({point(): ([record(0, 2e-3), skipped], [record(0, 1e-3), failed])}, LOOKS)
    assert row.detail == "B crashed: killed"
    assert row.is_decided
    assert not row.is_measured
    assert math.isnan(row.judgement.ratio)


def test_a_row_that_was_not_measured_yet_is_open() -> None:
    """Without records there is nothing to say, and nothing has failed."""
    (row,) = rows({point(): ([], [])}, LOOKS)
    assert (row.judgement, row.is_measured, row.is_decided) == (Judgement(), True, False)
    assert all(math.isnan(latency_s) for latency_s in row.latencies_s)
    assert isinstance(row, Row)
