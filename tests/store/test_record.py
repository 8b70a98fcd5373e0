"""Records, and the JSON objects that they become."""

import dataclasses
import json
import math
import re
from typing import Any

import pytest
from hypothesis import given, settings

from bench.plan.case import CASE_COLUMNS, COLUMNS
from bench.plan.columns import REQUIRED
from bench.plan.errors import WrongRequest
from bench.store.record import SCHEMA_VERSION, STATUSES, Record, Samples, latest
from tests.examples import record, records

NEEDED = [
    "implementation",
    *(name for name, column in COLUMNS.items() if column.absent is REQUIRED),
    "schema_version",
    "process",
    "status",
    "samples",
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
    assert [key for key, value in line.items() if isinstance(value, dict)] == ["samples"]


def test_what_was_not_measured_is_null() -> None:
    """A number that was not measured is null in a line, and not 0."""
    line = json.loads(json.dumps(record(status="unsupported", samples=Samples(), calls_per_timing=None).to_json()))

    assert {line[name] for name in ("peak_bytes", "compile_s", "error", "calls_per_timing", "graphs")} == {None}
    assert line["samples"] == {
        "rounds": [],
        "timings_s": [],
        "switches": [],
        "faults": [],
        "others": [],
        "product_s": [],
        "copy_s": [],
    }


@pytest.mark.parametrize("status", ["", "OK", "failed", None])
def test_another_status_is_refused(status: Any) -> None:
    """A way to end that is not listed is a ValueError with those that are, which are part of the format."""
    with pytest.raises(ValueError, match=f"{', '.join(STATUSES)}.* got"):
        record(status=status)
    assert " ".join(STATUSES) == "ok unsupported incorrect fallback oom timeout crashed error skipped"


@pytest.mark.parametrize("key", NEEDED)
def test_a_line_without_what_it_needs_is_no_record(key: str) -> None:
    """A line that lacks a part of the case, its origin or its outcome is refused and not filled up."""
    line = record().to_json()
    del line[key]

    with pytest.raises((KeyError, TypeError), match=key):
        Record.from_json(line)


@pytest.mark.parametrize("version", range(SCHEMA_VERSION + 1))
def test_an_older_line_is_read(version: int) -> None:
    """A line from before a measured value was known is read, the value taken as not measured."""
    line = record(saved_bytes=3, peak_bytes=5).to_json() | {"schema_version": version}
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


def slots_with(**columns: Any) -> dict[str, Any]:
    """Return a line whose samples have other columns."""
    line: dict[str, Any] = json.loads(json.dumps(record().to_json()))
    line["samples"] |= columns
    return line


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"timings_s": [[0.5], [math.nan], [0.5]]}, "timings_s must be numbers of seconds above 0, got nan"),
        ({"timings_s": [[0.5], [math.inf], [0.5]]}, "got inf"),
        ({"timings_s": [[0.5], [-0.1], [0.5]]}, "got -0.1"),
        ({"timings_s": [[0.5], [0.0], [0.5]]}, "got 0.0"),
        ({"timings_s": [[0.5], [10**400], [0.5]]}, "above 0, got 1000"),
        ({"timings_s": [[0.5], ["0.5"], [0.5]]}, "got '0.5'"),
        ({"timings_s": [[0.5], [True], [0.5]]}, "got True"),
        ({"timings_s": [[0.5], [], [0.5]]}, "at least one timing in each sample"),
        ({"timings_s": [0.5, 0.5, 0.5]}, "timings_s must be a list, got 0.5"),
        ({"timings_s": [[0.5], [0.5]]}, "rounds has 3 values and timings_s has 2"),
        ({"switches": [0, 0]}, "rounds has 3 values and switches has 2"),
        ({"faults": [0, 0, 0, 0]}, "rounds has 3 values and faults has 4"),
        ({"others": [0.1]}, "rounds has 3 values and others has 1"),
        ({"rounds": [0, 1, 1]}, "rounds must differ"),
        ({"rounds": [0, 1, -1]}, "rounds must be whole numbers of at least 0, got -1"),
        ({"rounds": [0, 1, 2.0]}, "rounds must be whole numbers"),
        ({"rounds": [0, True, 2]}, "rounds must be whole numbers"),
        ({"rounds": "012"}, "rounds must be a list"),
        ({"faults": [0, 0, -7]}, "faults must be whole numbers of at least 0, got -7"),
        ({"others": [0.1, math.nan, 0.1]}, "others must be numbers of at least 0, got nan"),
        ({"rounds": [], "timings_s": [], "switches": [], "faults": []}, "at least one sample if the status is ok"),
    ],
)
def test_samples_that_no_measurement_can_be_are_refused(columns: dict[str, Any], reason: str) -> None:
    """The reason names the column, the rule and what came."""
    with pytest.raises(ValueError, match=re.escape(reason)):
        Record.from_json(slots_with(**columns))


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"process": -1}, "process must be a finite number of at least 0, got -1"),
        ({"process": True}, "process must be a whole number, got True"),
        ({"process": None}, "process must be a whole number, got None"),
        ({"peak_bytes": 1.5}, "peak_bytes must be a whole number or empty, got 1.5"),
        ({"peak_bytes": 2**63}, "peak_bytes must be a finite number"),
        ({"error": math.nan}, "error must be a finite number of at least 0, got nan"),
        ({"compile_s": "1"}, "compile_s must be a number or empty, got '1'"),
        ({"settled": 1}, "settled must be true or false or empty, got 1"),
        ({"detail": None}, "detail must be text, got None"),
        ({"kernels": "flash"}, "kernels must be a list of texts, got 'flash'"),
        ({"kernels": [1]}, "kernels must be a list of texts"),
        ({"replicate_size": 0}, "replicate_size must be at least 1"),
        ({"env_id": 3}, "env_id must be text, got 3"),
        ({"batch": "8"}, "batch must be a whole number, got '8'"),
        ({"qkv_bias": 0}, "qkv_bias must be true or false, got 0"),
        ({"implementation": None}, "implementation must be text, got None"),
        ({"status": "fine"}, "status must be one of ok"),
    ],
)
def test_values_that_no_measurement_can_be_are_refused(values: dict[str, Any], reason: str) -> None:
    """Wrong types, booleans as numbers, negative numbers and those that are none."""
    with pytest.raises(ValueError, match=re.escape(reason)):
        Record.from_json({**slots_with(), **values})


def test_a_failure_that_was_tried_again_does_not_count() -> None:
    """The last word on a case is its latest record; good ones all count."""
    good, failed, last = record(process=0), record(process=1, status="oom"), record(process=2)
    other = record("sdpa", process=1, status="error")
    assert latest([good, failed, other, last]) == [good, other, last]
    assert latest([good, failed, other]) == [good, failed, other]
    assert latest([failed, dataclasses.replace(failed, process=2)]) == [dataclasses.replace(failed, process=2)]
