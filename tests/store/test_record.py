"""Records, and the JSON objects that they become."""

import json
from typing import Any

import pytest
from hypothesis import given, settings

from bench.plan.case import CASE_COLUMNS, SINCE
from bench.plan.errors import WrongRequest
from bench.store.record import SCHEMA_VERSION, STATUSES, Record, Slots, check_schema
from tests.examples import record, records

NEEDED = [
    *(name for name in CASE_COLUMNS if name not in SINCE),
    "schema_version",
    "process",
    "status",
    "slots",
    "kernels",
    "env_id",
    "device_name",
    "torch_version",
    "commit",
    "started_at",
]
"""What a journal line can't do without."""


@settings(deadline=None)
@given(records)
def test_round_trip(before: Record) -> None:
    """A record is the same after a journey through JSON text."""
    assert Record.from_json(json.loads(json.dumps(before.to_json(), allow_nan=False))) == before


def test_a_line_is_flat_and_says_its_schema() -> None:
    """A line holds the case's columns beside the measured values, and the schema that it was written by."""
    line = record("sdpa", process=2, peak_bytes=1024).to_json()

    assert line["schema_version"] == SCHEMA_VERSION
    assert set(CASE_COLUMNS) <= set(line)
    assert (line["implementation"], line["process"], line["status"], line["peak_bytes"]) == ("sdpa", 2, "ok", 1024)
    assert [key for key, value in line.items() if isinstance(value, dict)] == ["slots"]


def test_what_was_not_measured_is_null() -> None:
    """A number that was not measured is null in a line, and not 0."""
    line = json.loads(json.dumps(record(status="unsupported", slots=Slots(), calls_per_timing=None).to_json()))

    assert {line[name] for name in ("peak_bytes", "compile_s", "error", "calls_per_timing", "graphs")} == {None}
    assert line["slots"] == {"rounds": [], "timings_s": [], "switches": [], "faults": [], "others": []}


def test_the_value_of_a_slot_is_its_fastest_timing() -> None:
    """Of a slot's timings the least counts, because a delay can only add."""
    slots = Slots(rounds=(0, 1), timings_s=((3.0, 1.0, 2.0), (4.0,)), switches=(0, 0), faults=(0, 0))

    assert slots.values_s == (1.0, 4.0)


@pytest.mark.parametrize(
    "status", ["ok", "unsupported", "incorrect", "fallback", "oom", "timeout", "crashed", "error", "skipped"]
)
def test_statuses_of_the_contract(status: str) -> None:
    """A case may end in each of the ways that design.md lists."""
    assert record(status=status).status == status
    assert len(STATUSES) == 9


@pytest.mark.parametrize("status", ["", "OK", "failed", None])
def test_another_status_is_refused(status: Any) -> None:
    """A way to end that is not listed is a ValueError with those that are."""
    with pytest.raises(ValueError, match=r"ok, unsupported, incorrect, .* got"):
        record(status=status)


@pytest.mark.parametrize("key", NEEDED)
def test_a_line_without_what_it_needs_is_no_record(key: str) -> None:
    """A line that lacks a part of the case, its origin or its outcome is refused and not filled up."""
    line = record().to_json()
    del line[key]

    with pytest.raises((KeyError, TypeError), match=key):
        Record.from_json(line)


def test_an_older_line_is_read() -> None:
    """A line from before a measured value was known is read, the value taken as not measured."""
    line = record(saved_bytes=3, peak_bytes=5).to_json() | {"schema_version": 0}
    del line["saved_bytes"]

    assert Record.from_json(line) == record(saved_bytes=None, peak_bytes=5)


def test_what_a_line_holds_besides_is_passed_over() -> None:
    """A value that this suite doesn't know is no reason to refuse a line of its own schema."""
    assert Record.from_json({**record().to_json(), "mood": "good"}) == record()


def test_a_newer_line_is_refused() -> None:
    """A line of a newer schema is refused with both versions and the way out."""
    newer = SCHEMA_VERSION + 1

    with pytest.raises(WrongRequest, match=rf"schema_version {newer}; .*{SCHEMA_VERSION}.* update"):
        Record.from_json({**record().to_json(), "schema_version": newer})


@pytest.mark.parametrize("version", range(SCHEMA_VERSION + 1))
def test_schemas_up_to_this_ones_are_read(version: int) -> None:
    """The suite reads its own schema and all before it."""
    check_schema(version)

    assert Record.from_json({**record().to_json(), "schema_version": version}) == record()
