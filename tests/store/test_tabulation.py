"""results.csv in parts."""

from pathlib import Path
from typing import Any

import pytest

from bench.analyse import summary
from bench.store import journal, table
from bench.store.record import Record
from bench.store.table import RESULTS
from bench.store.tabulation import STATE, Tabulation, state_of
from tests.examples import case, record


def made(folder: Path, *records: Record) -> tuple[Tabulation, journal.Contents]:
    """Return the tabulation of records that are in a journal."""
    contents, tabulation = journal.Contents(folder / journal.JOURNAL), Tabulation()
    for one in records:
        contents.append([one])
        tabulation.put(one.case.point, summary.rows([one], "eager"))
    return tabulation, contents


def restored(folder: Path) -> Tabulation:
    """Return what a run that goes on keeps."""
    state = state_of(folder)
    tabulation = Tabulation()
    tabulation.restore(folder, journal.scan(folder, state.journal_bytes if state else None), state)
    return tabulation


FIRST, SECOND = record(detail='a "text",\r\nof two lines'), record(case=case(num_tokens=5))


def test_the_file_is_the_table(tmp_path: Path) -> None:
    """Its bytes are those of the table's own form, and what is read back is the table."""
    tabulation, contents = made(tmp_path, FIRST, SECOND)
    tabulation.save(tmp_path, contents, 0.0)
    before = (tmp_path / RESULTS).read_bytes()
    assert tabulation.table().equals(table.load(tmp_path))
    assert tabulation.table(FIRST.case.point).equals(table.load(tmp_path)[:1])
    table.save(summary.summarise([FIRST, SECOND], "eager"), tmp_path)
    assert (tmp_path / RESULTS).read_bytes() == before
    assert len(table.csv_lines(before)) == 2


def test_a_run_that_goes_on_keeps_rows(tmp_path: Path) -> None:
    """Those of points without newer records are kept; the others are stale."""
    tabulation, contents = made(tmp_path, FIRST, SECOND)
    tabulation.save(tmp_path, contents, 0.0)
    assert FIRST.case.point in restored(tmp_path)
    journal.append(tmp_path, [record(case=FIRST.case, process=1)])
    later = restored(tmp_path)
    assert (FIRST.case.point in later, SECOND.case.point in later) == (False, True)


@pytest.mark.parametrize("changed", [RESULTS, STATE, journal.JOURNAL])
def test_what_was_changed_is_made_anew(tmp_path: Path, changed: str) -> None:
    """If a file is another one than was written, no row is taken over."""
    tabulation, contents = made(tmp_path, FIRST, SECOND)
    tabulation.save(tmp_path, contents, 0.0)
    lines = (tmp_path / changed).read_bytes().splitlines(keepends=True)
    (tmp_path / changed).write_bytes(b"".join(lines[:-1]))
    assert not restored(tmp_path)


def test_writing_takes_a_small_share_of_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a file whose rows and bytes took a second the next one waits for 49; nothing new is never due."""
    clock: list[Any] = [1.0]
    monkeypatch.setattr("bench.store.tabulation.time.monotonic", lambda: clock.pop(0))
    tabulation, contents = made(tmp_path, FIRST)
    tabulation.save(tmp_path, contents, 0.0)
    assert not tabulation.is_due
    tabulation.put(SECOND.case.point, summary.rows([SECOND], "eager"))
    clock += [49.9, 50.1]
    assert [tabulation.is_due, tabulation.is_due] == [False, True]
