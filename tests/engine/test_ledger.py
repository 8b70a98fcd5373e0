"""A run folder that is being filled."""

import dataclasses
from pathlib import Path

import pytest

from bench.engine.ledger import Ledger
from bench.plan.errors import WrongRequest
from bench.plan.sweep import Sweep
from bench.store import journal
from bench.store.table import load
from tests import examples
from tests.points import point

SWEEP = Sweep("tiny", (point(),), ("eager", "sdpa"))
FOUND = {"slots": {"rounds": [0], "timings_s": [[1e-3]], "switches": [0], "faults": [0]}, "settled": True}


def opened(folder: Path) -> Ledger:
    """Return a ledger whose folder was opened on a made-up machine."""
    ledger = Ledger(SWEEP, folder)
    here = examples.environment()
    ledger.open(dataclasses.replace(here, context={"commit": "abc"}))
    return ledger


def kept(ledger: Ledger, *implementations: str, status: str = "ok", own_cause: bool = True) -> None:
    """Keep a record of each implementation in the point's next process."""
    found = {**FOUND, "own_cause": own_cause}
    number = ledger.next_process(point())
    cases = [case for case in SWEEP.cases() if case.implementation in implementations]
    ledger.keep(point(), [ledger.record(case, number, "now", status, "", found) for case in reversed(cases)])


def test_what_is_kept_stands_in_the_journal_and_the_table(tmp_path: Path) -> None:
    """Records of a visit are in the order of the sweep, and count those that were measured together."""
    ledger = opened(tmp_path)
    kept(ledger, "eager", "sdpa")
    ledger.tabulate(point())
    records = journal.read(tmp_path)
    assert [(record.case.implementation, record.visit_size) for record in records] == [("eager", 2), ("sdpa", 2)]
    assert load(tmp_path)["implementation"].tolist() == ["eager", "sdpa"]


def test_a_folder_is_taken_up_where_it_was_left(tmp_path: Path) -> None:
    """Another ledger of the folder knows what is missing, what is new and which process comes next."""
    kept(opened(tmp_path), "eager")
    ledger = opened(tmp_path)
    assert ledger.missing(point(), 1) == ["sdpa"]
    assert ledger.missing(point(), 2) == ["eager", "sdpa"]
    assert (ledger.is_new(point(), ["eager"]), ledger.is_new(point(), ["sdpa"])) == (False, True)
    assert ledger.next_process(point()) == 1
    assert ledger.has_results


def test_what_failed_is_not_missing(tmp_path: Path) -> None:
    """An implementation that failed in any process is not tried again."""
    ledger = opened(tmp_path)
    kept(ledger, "sdpa", status="error")
    assert ledger.failed(point()) == {"sdpa"}
    assert ledger.missing(point(), 3) == ["eager"]


def test_what_failed_without_a_cause_of_its_own_is_tried_again_in_the_next_session(tmp_path: Path) -> None:
    """In the session that kept it, it is not; what fails by itself is only if that is asked for."""
    first = opened(tmp_path)
    kept(first, "eager", status="crashed", own_cause=False)
    kept(first, "sdpa", status="crashed")
    assert first.missing(point(), 1) == first.missing(point(), 1, retry_failed=True) == []
    second = opened(tmp_path)
    assert second.missing(point(), 1) == ["eager"]
    assert second.missing(point(), 1, retry_failed=True) == ["eager", "sdpa"]
    assert second.is_new(point(), ["eager"])
    kept(second, "eager")
    kept(second, "sdpa", status="timeout", own_cause=False)
    assert second.missing(point(), 1, retry_failed=True) == []
    assert [record.status for record in second.of(point())] == ["ok", "timeout"]
    assert second.next_process(point()) == 4
    second.tabulate(point())
    assert load(tmp_path)["status"].tolist() == ["ok", "timeout"]


def test_a_folder_that_cannot_be_made_is_a_wrong_request(tmp_path: Path) -> None:
    """A file in its place is said in one line."""
    (tmp_path / "file").touch()
    with pytest.raises(WrongRequest, match="can't be made"):
        opened(tmp_path / "file" / "run")
