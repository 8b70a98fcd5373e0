"""The journal: appended records come back, whatever kills the run."""

import dataclasses
import itertools
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.plan.errors import CannotWrite
from bench.store import journal
from bench.store.journal import JOURNAL
from bench.store.record import SCHEMA_VERSION, Record, encode_line
from tests.make.records import record
from tests.refusals import refusal
from tests.store.disk import full_after


def replicate(*implementations: str, process: int = 0) -> list[Record]:
    """Return the records of one replicate."""
    return [record(implementation, process=process) for implementation in implementations]


def line_of(one: Record) -> bytes:
    """Return the line of a record as the journal holds it."""
    return encode_line(one) + b"\n"


# Whole journals


def test_replicates_follow_each_other(tmp_path: Path) -> None:
    """Replicates come back in the order in which they were appended, each record a line of JSON with its schema."""
    first, second = replicate("eager", "sdpa"), replicate("eager", "sdpa", "online", process=1)
    journal.scan(tmp_path).append(first)
    journal.scan(tmp_path).append(second)

    assert journal.read(tmp_path) == first + second
    lines = [json.loads(line) for line in (tmp_path / JOURNAL).read_text(encoding="utf-8").splitlines()]
    assert [line["implementation"] for line in lines] == [one.case.implementation for one in first + second]
    assert {line["schema_version"] for line in lines} == {SCHEMA_VERSION}


def test_a_run_without_a_journal_has_no_records(tmp_path: Path) -> None:
    """A folder that nothing was measured into holds no records; one that vanished is an error."""
    assert journal.read(tmp_path) == []
    assert "No such file" in refusal(journal.scan(tmp_path / "gone").append, replicate("eager"))
    assert list(tmp_path.iterdir()) == []


def test_a_failure_that_was_tried_again_does_not_count() -> None:
    """The last word on a case is its latest record; good ones all count."""
    good, failed, last = record(process=0), record(process=1, status="oom"), record(process=2)
    other = record("sdpa", process=1, status="error")
    assert journal.latest([good, failed, other, last]) == [good, other, last]
    assert journal.latest([good, failed, other]) == [good, failed, other]
    assert journal.latest([failed, dataclasses.replace(failed, process=2)]) == [dataclasses.replace(failed, process=2)]


# Journals that a kill cut short


@settings(deadline=None, max_examples=30)
@given(st.data())
def test_a_journal_cut_anywhere_holds_the_lines_before_the_cut(data: st.DataObject) -> None:
    """Wherever a kill cuts the journal, its complete lines count, and so do lines appended later."""
    replicates = [replicate("eager", "sdpa"), replicate("eager", "sdpa", process=1), replicate("eager", process=2)]
    lines = {line_of(one): one for each in replicates for one in each}
    ends = [end - 1 for end in itertools.accumulate(map(len, lines))]
    cut = data.draw(st.integers(0, ends[-1] + 1), label="bytes that reached the disk")
    whole = [one for one, end in zip(lines.values(), ends, strict=True) if end <= cut]
    with tempfile.TemporaryDirectory() as folder:
        run, late = Path(folder), replicate("online", process=9)
        for each in replicates:
            journal.scan(run).append(each)
        (run / JOURNAL).write_bytes((run / JOURNAL).read_bytes()[:cut])

        assert journal.read(run) == whole
        journal.scan(run).append(late)
        contents = journal.scan(run)
        assert contents.records == whole + late
        torn = [] if cut in (0, *(end + extra for end in ends for extra in (0, 1))) else [[len(whole) + 1]]
        assert [*contents.faults.values()] == torn


@pytest.mark.parametrize("share", [0, 0.1, 0.6])
def test_a_write_that_the_disk_cuts_short_is_taken_back(tmp_path: Path, share: float) -> None:
    """If the disk takes only a part of a replicate, append says so and leaves nothing of it; the next one is whole."""
    first, lost, next_one = replicate("eager"), *(replicate("eager", "sdpa", process=number) for number in (1, 2))
    journal.scan(tmp_path).append(first)
    before = (tmp_path / JOURNAL).read_bytes()
    room = int(share * sum(len(line_of(one)) for one in lost))

    with full_after(len(before) + room), pytest.raises(CannotWrite, match=f"{JOURNAL} can't be written: File too"):
        journal.scan(tmp_path).append(lost)

    assert (tmp_path / JOURNAL).read_bytes() == before
    journal.scan(tmp_path).append(next_one)
    assert journal.read(tmp_path) == [*first, *next_one]


@pytest.mark.parametrize("fails", ["write", "fsync"])
def test_whatever_fails_in_a_write_is_taken_back(tmp_path: Path, fails: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A replicate that did not reach the disk, or was interrupted on its way, doesn't count even in part."""
    journal.scan(tmp_path).append(replicate("eager"))
    before = (tmp_path / JOURNAL).read_bytes()
    real = getattr(os, fails)

    def stopped(*given: Any) -> None:
        real(*given)
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(os, fails, stopped)
    with pytest.raises(KeyboardInterrupt):
        journal.scan(tmp_path).append(replicate("sdpa", process=1))
    assert (tmp_path / JOURNAL).read_bytes() == before


# Lines that stand twice


def test_the_first_record_of_a_case_and_process_counts(tmp_path: Path) -> None:
    """A line that stands twice, and a replicate of another writer with the same number, are named by number."""
    whole = replicate("eager", "sdpa")
    other = [line_of(dataclasses.replace(one, detail="the other writer's")) for one in whole]
    lines = [line_of(one) for one in whole]
    (tmp_path / JOURNAL).write_bytes(b"".join([lines[0], lines[0], lines[1], *other]))

    contents = journal.scan(tmp_path)
    assert contents.records == whole
    assert contents.faults == {journal.REPEATED: [2, 4, 5]}
    (notice,) = contents.notices()
    assert notice.startswith(f"{tmp_path / JOURNAL}: lines 2, 4, 5 are ")


# Invalid journals


RECORD = encode_line(record())


def changed(before: bytes, after: bytes) -> bytes:
    """Return the line of a record with another value."""
    assert before in RECORD
    return RECORD.replace(before, after)


FOREIGN: dict[str, bytes] = {
    "a cut object": b"{",
    "no text": b"\xff\xfe\x00",
    "an unknown status": changed(b'"ok"', b'"fine"'),
    "samples that are none": changed(b'"others":[0.0,0.1,0.0]', b'"others":[0.0,-0.1,0.0]'),
    "nested too deep": b"[" * 100_000,
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_foreign_line_does_not_count(tmp_path: Path, kind: str) -> None:
    """A damaged line, or one that isn't a record, is named with the file and its number; all others count."""
    foreign, place = FOREIGN[kind], len(kind) % 3
    whole = replicate("sdpa", "online")
    lines = [line_of(one) for one in whole]
    (tmp_path / JOURNAL).write_bytes(b"".join([*lines[:place], foreign + b"\n", *lines[place:]]))

    contents = journal.scan(tmp_path)
    assert contents.records == whole
    (notice,) = contents.notices()
    assert notice.startswith(f"{tmp_path / JOURNAL}: line {place + 1} is ignored as invalid (")
    assert "\n" not in notice


@settings(deadline=None, max_examples=50)
@given(st.binary(min_size=1).filter(lambda line: b"\n" not in line and line.strip()))
def test_no_garbage_passes(garbage: bytes) -> None:
    """Whatever bytes stand in a line, it doesn't count, and nothing worse happens."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / JOURNAL).write_bytes(garbage + b"\n")

        contents = journal.scan(Path(folder))
        assert (contents.records, [*contents.faults.values()]) == ([], [[1]])


@pytest.mark.parametrize(("version", "reader"), [(SCHEMA_VERSION + 1, "update the suite"), (8, "read it with the ")])
def test_another_schema_is_refused(tmp_path: Path, version: int, reader: str) -> None:
    """The whole journal is, in one line with the file, the line's number, both versions and who reads it."""
    other = changed(b'"schema_version":%d' % SCHEMA_VERSION, b'"schema_version":%d' % version)
    (tmp_path / JOURNAL).write_bytes(line_of(record()) + other + b"\n")
    versions = f"schema_version is {version}, but this suite reads only {SCHEMA_VERSION}; {reader}"
    assert refusal(journal.read, tmp_path).startswith(f"{tmp_path / JOURNAL}: line 2: {versions}")
