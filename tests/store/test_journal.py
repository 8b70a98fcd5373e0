"""The journal: what is appended comes back, whatever kills the run."""

import dataclasses
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
from bench.store.journal import JOURNAL, SET_ASIDE
from bench.store.record import SCHEMA_VERSION, SEAL_BYTES, Record, encode_line, sealed
from tests.examples import record, records
from tests.refusals import refusal
from tests.store.disk import full_after


def replicate(*implementations: str, process: int = 0) -> list[Record]:
    """Return the records of one replicate."""
    size = len(implementations)
    return [record(implementation, process=process, replicate_size=size) for implementation in implementations]


def line_of(one: Record) -> bytes:
    """Return the line of a record as the journal holds it."""
    return encode_line(one) + b"\n"


# Whole journals


@settings(deadline=None, max_examples=50)
@given(st.lists(records, max_size=4, unique_by=lambda one: (one.case, one.process)))
def test_round_trip(written: list[Record]) -> None:
    """Whatever is appended is read back the same, in the same order."""
    with tempfile.TemporaryDirectory() as folder:
        for one in written:
            journal.append(Path(folder), [one])

        assert journal.read(Path(folder)) == written


def test_replicates_follow_each_other(tmp_path: Path) -> None:
    """Visits stand in the order in which they were appended, each record a line of JSON that says its schema."""
    first, second = replicate("eager", "sdpa"), replicate("eager", "sdpa", "online", process=1)
    journal.append(tmp_path, first)
    journal.append(tmp_path, second)

    assert journal.read(tmp_path) == first + second
    lines = [json.loads(line) for line in (tmp_path / JOURNAL).read_text(encoding="utf-8").splitlines()]
    assert [line["implementation"] for line in lines] == [one.case.implementation for one in first + second]
    assert {line["schema_version"] for line in lines} == {SCHEMA_VERSION}


def test_a_run_without_a_journal_has_no_records(tmp_path: Path) -> None:
    """A folder that nothing was measured into holds no records and needs no repair; one that vanished is said."""
    assert journal.read(tmp_path) == []
    assert journal.repair(tmp_path)[1] == []
    assert "No such file" in refusal(journal.append, tmp_path / "gone", replicate("eager"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_json_can_not_hold_is_refused(tmp_path: Path, number: float) -> None:
    """Records of which one can't be written are refused together, and the journal stays as it was."""
    journal.append(tmp_path, replicate("eager"))
    before = (tmp_path / JOURNAL).read_bytes()

    bad = record("online")
    object.__setattr__(bad, "metrics", {**bad.metrics, "error": number})  # past the check of a record
    with pytest.raises(ValueError, match="JSON"):
        journal.append(tmp_path, [record("sdpa"), bad])

    assert (tmp_path / JOURNAL).read_bytes() == before


# Journals that a kill cut short


@pytest.mark.parametrize("kept", [1, 10, -3, -2])
def test_a_cut_last_line_is_passed_over(tmp_path: Path, kept: int) -> None:
    """A last line without its end is passed over and set aside, and appending goes on after the whole ones."""
    whole, late = replicate("eager", process=0), replicate("eager", process=2)
    cut = line_of(replicate("eager", process=1)[0])[:kept]
    journal.append(tmp_path, whole)
    with (tmp_path / JOURNAL).open("ab") as file:
        file.write(cut)

    assert journal.read(tmp_path) == whole
    _, (notice,) = journal.repair(tmp_path)
    assert f"{tmp_path / JOURNAL}: line 2 is no record" in notice
    assert (tmp_path / SET_ASIDE).read_bytes() == cut + b"\n"
    journal.append(tmp_path, late)
    assert journal.read(tmp_path) == whole + late


@pytest.mark.parametrize("damaged", range(3))
def test_a_damaged_line_costs_itself_alone(tmp_path: Path, damaged: int) -> None:
    """One flipped bit breaks a line's checksum; the other lines of its replicate count, and it is set aside."""
    written = replicate("eager", "sdpa", "online")
    lines = [line_of(one) for one in written]
    middle = len(lines[damaged]) // 2
    lines[damaged] = lines[damaged][:middle] + bytes([lines[damaged][middle] ^ 1]) + lines[damaged][middle + 1 :]
    (tmp_path / JOURNAL).write_bytes(b"".join(lines))

    others = written[:damaged] + written[damaged + 1 :]
    assert journal.read(tmp_path) == others
    _, (notice,) = journal.repair(tmp_path)
    assert f"line {damaged + 1} is no record" in notice
    assert (tmp_path / SET_ASIDE).read_bytes() == lines[damaged]
    assert journal.read(tmp_path) == others


@settings(deadline=None, max_examples=30)
@given(st.data())
def test_a_journal_cut_anywhere_holds_the_lines_before_the_cut(data: st.DataObject) -> None:
    """Wherever a kill cuts the journal, the lines that were whole by then are read, and a repair ends it cleanly."""
    replicates = [
        replicate("eager", "sdpa", process=0),
        replicate("eager", "sdpa", process=1),
        replicate("eager", process=2),
    ]
    every = [one for each in replicates for one in each]
    ends = [sum(len(line_of(one)) for one in every[: n + 1]) - 1 for n in range(len(every))]
    cut = data.draw(st.integers(0, ends[-1] + 1), label="bytes that reached the disk")
    whole = [one for one, end in zip(every, ends, strict=True) if end <= cut]
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder)
        for each in replicates:
            journal.append(run, each)
        (run / JOURNAL).write_bytes((run / JOURNAL).read_bytes()[:cut])

        assert journal.read(run) == whole
        journal.repair(run)
        journal.append(run, replicate("online", process=9))

        assert journal.read(run) == whole + replicate("online", process=9)
        assert journal.repair(run)[1] == []


def test_what_is_set_aside_stays(tmp_path: Path) -> None:
    """A second repair adds to what the first set aside, and neither leaves another file behind."""
    for cut in (b'{"first', b'{"second'):
        with (tmp_path / JOURNAL).open("ab") as file:
            file.write(cut)
        journal.repair(tmp_path)

    assert (tmp_path / SET_ASIDE).read_bytes() == b'{"first\n{"second\n'
    assert (tmp_path / JOURNAL).read_bytes() == b""
    assert {path.name for path in tmp_path.iterdir()} == {JOURNAL, SET_ASIDE}


@pytest.mark.parametrize("share", [0, 0.1, 0.6])
def test_a_write_that_the_disk_cuts_short_is_taken_back(tmp_path: Path, share: float) -> None:
    """If the disk takes only a part of a replicate, append says so and leaves nothing of it; the next one is whole."""
    first, lost, next_one = (
        replicate("eager"),
        replicate("eager", "sdpa", process=1),
        replicate("eager", "sdpa", process=2),
    )
    journal.append(tmp_path, first)
    before = (tmp_path / JOURNAL).read_bytes()
    room = int(share * sum(len(line_of(one)) for one in lost))

    with full_after(len(before) + room), pytest.raises(CannotWrite, match=f"{JOURNAL} can't be written: File too"):
        journal.append(tmp_path, lost)

    assert (tmp_path / JOURNAL).read_bytes() == before
    journal.append(tmp_path, next_one)
    assert journal.read(tmp_path) == [*first, *next_one]
    assert journal.repair(tmp_path)[1] == []


@pytest.mark.parametrize("fails", ["write", "fsync"])
def test_whatever_fails_in_a_write_is_taken_back(tmp_path: Path, fails: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A replicate that did not reach the disk, or was interrupted on its way, does not count in part."""
    journal.append(tmp_path, replicate("eager"))
    before = (tmp_path / JOURNAL).read_bytes()
    real = getattr(os, fails)

    def stopped(*given: Any) -> None:
        real(*given)
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(os, fails, stopped)
    with pytest.raises(KeyboardInterrupt):
        journal.append(tmp_path, replicate("sdpa", process=1))
    assert (tmp_path / JOURNAL).read_bytes() == before


def test_a_whole_last_line_without_its_end_counts(tmp_path: Path) -> None:
    """A line that lacks nothing but its newline is a record, and what comes next stands on a line of its own."""
    first, second = replicate("eager", "sdpa"), replicate("eager", "sdpa", process=1)
    journal.append(tmp_path, first)
    path = tmp_path / JOURNAL
    path.write_bytes(path.read_bytes().removesuffix(b"\n"))

    assert journal.read(tmp_path) == first
    assert journal.repair(tmp_path)[1] == []
    journal.append(tmp_path, second)
    assert journal.read(tmp_path) == first + second
    assert path.read_bytes() == b"".join(line_of(one) for one in first + second)


# Lines that stand twice


def test_a_line_that_stands_twice_counts_once(tmp_path: Path) -> None:
    """It is named by its number, and its replicate stays whole."""
    whole = replicate("eager", "sdpa")
    lines = [line_of(one) for one in whole]
    (tmp_path / JOURNAL).write_bytes(lines[0] + lines[0] + lines[1] + lines[0])

    assert journal.read(tmp_path) == whole
    _, (notice,) = journal.repair(tmp_path)
    assert "lines 2, 4 are of a case and process that already stand above" in notice
    assert (tmp_path / JOURNAL).read_bytes() == b"".join(lines)


def test_of_a_replicate_that_two_wrote_the_first_counts(tmp_path: Path) -> None:
    """Another one with the same number and other times is set aside whole: rounds of two replicates are no pairs."""
    first = replicate("eager", "sdpa")
    second = [dataclasses.replace(one, detail="the other writer's") for one in first]
    journal.append(tmp_path, first)
    journal.append(tmp_path, second)

    assert journal.read(tmp_path) == first
    journal.repair(tmp_path)
    assert (tmp_path / SET_ASIDE).read_bytes() == b"".join(line_of(one) for one in second)


# Journals that are none


RECORD = encode_line(record())
PLAIN = RECORD[:-SEAL_BYTES] + b"}"


def resealed(before: bytes, after: bytes) -> bytes:
    """Return the line of a record with another value and the right checksum."""
    assert before in PLAIN
    return sealed(PLAIN.replace(before, after))


FOREIGN: list[tuple[str, bytes]] = [
    ("prose", b"not json"),
    ("a cut object", b"{"),
    ("a number", b"3"),
    ("null", b"null"),
    ("a list", b"[]"),
    ("a string", b'"text"'),
    ("an empty object", b"{}"),
    ("an empty object with a checksum", sealed(b"{}")),
    ("a checksum alone", sealed(b"")),
    ("a schema alone", b'{"schema_version": %d}' % SCHEMA_VERSION),
    ("a schema of text", b'{"schema_version": "1"}'),
    ("a schema of nothing", b'{"schema_version": null}'),
    ("no text", b"\xff\xfe\x00"),
    ("a zero byte", b"\x00"),
    ("no checksum", PLAIN),
    ("another checksum", RECORD[:-10] + b'00000000"}'),
    ("an unknown status", resealed(b'"ok"', b'"fine"')),
    ("a size of another kind", resealed(b'"replicate_size":1', b'"replicate_size":"one"')),
    ("a batch of another kind", resealed(b'"batch":8', b'"batch":[8]')),
    ("a process that is none", resealed(b'"process":0', b'"process":-1')),
    ("nested too deep", b"[" * 100_000),
    ("nested too deep with a checksum", sealed(b'{"x":' + b"[" * 100_000)),
]


@pytest.mark.parametrize("foreign", [line for _, line in FOREIGN], ids=[kind for kind, _ in FOREIGN])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_foreign_line_is_set_aside(tmp_path: Path, foreign: bytes, number: int) -> None:
    """A line that is no record is named with the file and its number, and the records around it count."""
    assert foreign != RECORD
    whole = [record(process=0), record(process=1)]
    lines = [line_of(one) for one in whole]
    lines.insert(number - 1, foreign + b"\n")
    (tmp_path / JOURNAL).write_bytes(b"".join(lines))

    assert journal.read(tmp_path) == whole
    _, (notice,) = journal.repair(tmp_path)
    assert notice.startswith(f"{tmp_path / JOURNAL}: line {number} is no record of attention-bench (")
    assert "\n" not in notice
    assert (tmp_path / SET_ASIDE).read_bytes() == foreign + b"\n"
    assert (tmp_path / JOURNAL).read_bytes() == b"".join(line_of(one) for one in whole)


@settings(deadline=None, max_examples=50)
@given(st.binary(min_size=1).filter(lambda line: b"\n" not in line and line.strip()))
def test_no_garbage_passes(garbage: bytes) -> None:
    """Whatever bytes stand in a line, they are told as no record and nothing worse happens."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / JOURNAL).write_bytes(garbage + b"\n")

        assert journal.read(Path(folder)) == []
        _, (notice,) = journal.repair(Path(folder))
        assert "line 1 is no record" in notice


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    """A line of a newer suite is refused with the file, the line's number and both versions."""
    newer = resealed(b'"schema_version":%d' % SCHEMA_VERSION, b'"schema_version":%d' % (SCHEMA_VERSION + 1))
    (tmp_path / JOURNAL).write_bytes(line_of(record()) + newer + b"\n")

    line = refusal(journal.read, tmp_path)
    assert line.startswith(f"{tmp_path / JOURNAL}: line 2: results have schema_version {SCHEMA_VERSION + 1}")
    assert f"up to {SCHEMA_VERSION}" in line


def test_an_older_schema_is_refused(tmp_path: Path) -> None:
    """The whole journal is, in one line with the way out; nothing of it is set aside."""
    older = PLAIN.replace(b'"schema_version":%d' % SCHEMA_VERSION, b'"schema_version": 8')
    (tmp_path / JOURNAL).write_bytes(older + b"\n")

    line = refusal(journal.repair, tmp_path)
    assert line.startswith(f"{tmp_path / JOURNAL}: line 1: results have schema_version 8; this suite reads")
    assert (tmp_path / JOURNAL).read_bytes() == older + b"\n"


def test_samples_that_no_measurement_can_be_are_told_when_they_are_read(tmp_path: Path) -> None:
    """A scan reads the heads alone; the message names the file, the line's place, the value and the rule."""
    first, bad = line_of(record("sdpa")), resealed(b'"faults":[0,0,7]', b'"faults":[0,0,-7]') + b"\n"
    (tmp_path / JOURNAL).write_bytes(first + bad)
    line = refusal(journal.read, tmp_path)
    assert line.startswith(f"{tmp_path / JOURNAL}: the line at byte {len(first)} can't be read: ")
    assert line.endswith("samples.faults[2] must be a whole number of at least 0, got -7")
