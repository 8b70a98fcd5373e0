"""A line of the journal."""

import json

import pytest
from hypothesis import given, settings

from bench.plan.errors import WrongRequest
from bench.store.line import Head, Heads, decode, encode
from bench.store.record import SCHEMA_VERSION, Record
from tests.examples import case, record, records


@settings(deadline=None, max_examples=100)
@given(records)
def test_round_trip(before: Record) -> None:
    """A record is the same after its journey, and its head is read without the rest."""
    line = encode(before)
    assert b"\n" not in line
    assert decode(line) == before
    assert Heads().read(line) == (before.case, Head.of(before))


def test_a_line_is_json_without_what_is_empty() -> None:
    """Anybody can read it: the columns by name, no null, and every timing of each sample."""
    content = json.loads(encode(record("sdpa", peak_bytes=1024)))
    assert (content["schema_version"], content["implementation"]) == (SCHEMA_VERSION, "sdpa")
    assert content["peak_bytes"] == 1024
    assert None not in content.values()
    assert [len(each) for each in content["samples"]["timings_s"]] == [len(each) for each in record().samples.timings_s]


def test_an_older_line_is_read() -> None:
    """Without a checksum the line is checked value by value."""
    before = record()
    line = json.dumps(before.to_json()).encode()
    assert decode(line) == before
    assert Heads().read(line) == (before.case, Head.of(before))


def test_equal_cases_are_one_object() -> None:
    """So are equal points, whichever suite wrote the line."""
    heads = Heads()
    eager, later = (heads.read(encode(record(process=number)))[0] for number in range(2))
    old, _ = heads.read(json.dumps(record(process=2).to_json()).encode())
    sdpa, _ = heads.read(encode(record("sdpa")))
    assert eager is later is old
    assert eager.point is sdpa.point


@pytest.mark.parametrize(("before", "after"), [(b'"process":0', b'"process":1'), (b'"rounds":[0', b'"rounds":[9')])
def test_a_changed_line_is_told(before: bytes, after: bytes) -> None:
    """Whatever was changed after it was written, the checksum is another one."""
    changed = encode(record()).replace(before, after)
    assert changed != encode(record())
    for read in (decode, Heads().read):
        with pytest.raises(ValueError, match="changed since it was written"):
            read(changed)


def test_a_newer_line_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not taken for a damaged one."""
    monkeypatch.setattr("bench.store.record.SCHEMA_VERSION", SCHEMA_VERSION + 1)
    newer = encode(record(case=case("eager", batch=3)))
    monkeypatch.undo()
    for read in (decode, Heads().read):
        with pytest.raises(WrongRequest, match=f"schema_version {SCHEMA_VERSION + 1}"):
            read(newer)
