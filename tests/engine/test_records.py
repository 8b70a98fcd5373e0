"""The records of a run: what is missing, what is tried again, and the rows."""

import dataclasses
from pathlib import Path
from typing import Any

from bench.engine.records import Records
from bench.plan.case import Case, Point
from bench.plan.sweep import Sweep
from bench.store import journal
from bench.store.record import Origin
from bench.store.table import of_rows
from tests.make.points import point
from tests.make.records import environment, measured

SWEEP = Sweep("tiny", (point(),), ("eager", "sdpa"))
THREE = tuple(point(num_tokens=tokens) for tokens in (5, 7, 9))
SWEEP_OF_THREE = Sweep("three", THREE, ("eager", "sdpa"))

HERE = dataclasses.replace(environment(), context={"commit": "abc"})
ORIGIN = Origin.of(HERE, "cpu", "2026-01-31T12:00:00+00:00")


def kept(
    records: Records, *implementations: str, at: Point | None = None, scatter: float = 1e-3, **outcome: Any
) -> None:
    """Keep a record of each implementation, with such an outcome, in a point's next process."""
    at = at or point()
    cases, number = [Case(at, name) for name in reversed(implementations)], records.next_process(at)
    measurements = [measured(case, number, 1e-3, scatter=scatter, origin=ORIGIN) for case in cases]
    records.keep([dataclasses.replace(each, **outcome) for each in measurements])


def session(run: Path, sweep: Sweep = SWEEP) -> Records:
    """Return the records of a run in a new session."""
    return Records(sweep, journal.scan(run))


def test_what_failed_is_tried_again_in_a_later_session_if_it_was_not_the_cause_or_if_asked_for(tmp_path: Path) -> None:
    """In the session that kept it, it is not; a good record then takes the place of the failure."""
    first = session(tmp_path)
    kept(first, "eager", status="crashed", own_cause=False)
    kept(first, "sdpa", status="crashed")
    assert first.failed(point()) == {"eager", "sdpa"}
    assert first.missing(point(), 1) == first.missing(point(), 1, retry_failed=True) == []
    second = session(tmp_path)
    assert second.missing(point(), 1) == ["eager"]
    assert second.missing(point(), 1, retry_failed=True) == ["eager", "sdpa"]
    assert second.is_new(Case(point(), "eager"))
    kept(second, "eager")
    kept(second, "sdpa", status="timeout", own_cause=False)
    assert second.missing(point(), 1, retry_failed=True) == []
    assert [record.status for record in second.of(point())] == ["ok", "timeout"]
    assert second.results()["status"].tolist() == ["ok", "timeout"]
    third = session(tmp_path)
    assert third.missing(point(), 1) == ["sdpa"]
    assert third.next_process(point()) == 4
    kept(third, "eager", "sdpa")
    assert third.missing(point(), 1) == []
    assert third.missing(point(), 2) == ["sdpa"]
    assert not third.is_new(Case(point(), "sdpa"))
    assert third.results()[["status", "processes"]].to_numpy().tolist() == [["ok", 2], ["ok", 1]]


def test_a_point_changes_the_errors_of_those_before_it(tmp_path: Path) -> None:
    """Each row follows from the whole run: where another point scatters widely, all are less sure; times stay."""
    records = session(tmp_path, SWEEP_OF_THREE)
    for _ in range(3):
        kept(records, "eager", "sdpa", at=THREE[0], scatter=0.01)
    first = records.results()
    for _ in range(3):
        kept(records, "eager", "sdpa", at=THREE[2], scatter=0.5)
    after = records.results()[:2]
    assert after[["latency_s", "processes"]].equals(first[["latency_s", "processes"]])
    assert after["log_ratio_error"][1] > first["log_ratio_error"][1]
    assert of_rows(records.rows(THREE[0])).equals(after)
