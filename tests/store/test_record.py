"""Records, their samples and metrics, and their lines in the journal."""

import dataclasses
import json
import re
from typing import Any

import pytest
from hypothesis import given, settings

from bench.plan.case import CASE_COLUMNS, COLUMNS
from bench.plan.columns import REQUIRED
from bench.plan.errors import WrongRequest
from bench.store.record import (
    OLDEST_SCHEMA,
    SCHEMA_VERSION,
    SEAL_BYTES,
    Cases,
    Record,
    Samples,
    decode_line,
    encode_line,
    record_of,
    reported,
    sealed,
)
from tests.make.records import record
from tests.make.strategies import records

NEEDED = [
    "implementation",
    *(name for name, column in COLUMNS.items() if column.absent is REQUIRED),
    *("schema_version", "process", "status", "samples"),
    *("env_id", "device_name", "torch_version", "commit", "started_at"),
]
"""What a line can't do without."""


def test_what_was_not_measured_is_empty() -> None:
    """A metric that was not measured is None, one of several texts an empty tuple, and never 0."""
    metrics = record(status="unsupported", samples=Samples(), calls_per_timing=None, settled=None).metrics
    assert {value for value in metrics.values() if value != ()} == {None}
    assert metrics["kernels"] == ()


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"timings_s": ((0.5,), (0.5,))}, "rounds has 3 values and timings_s has 2"),
        ({"switches": (0, 0)}, "rounds has 3 values and switches has 2"),
        ({"others": (0.1,)}, "rounds has 3 values and others has 1"),
        ({"rounds": (0, 1, 1)}, "rounds must differ"),
    ],
)
def test_columns_of_samples_belong_together(columns: dict[str, Any], reason: str) -> None:
    """The columns are equally long, and no round is there twice."""
    with pytest.raises(ValueError, match=reason):
        dataclasses.replace(record().samples, **columns)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("peak_bytes", -1, "peak_bytes must be a whole number of at least 0, got -1"),
        ("peak_bytes", 2**63, "peak_bytes must be a whole number of at most 9223372036854775807, got"),
        ("error", float("nan"), "error must be a number of at least 0.0, got nan"),
        ("error", float("inf"), "error must be a number of at most 1.79"),
        ("error", 10**400, "must be a number in range, got 1000"),
        ("compile_s", "1", "compile_s must be a number or empty, got '1'"),
        ("settled", 1, "settled must be true or false or empty, got 1"),
        ("kernels", "flash", "kernels must be a list, got 'flash'"),
        ("mood", 1, "unknown metric 'mood'; bench/store/metrics.py"),
        ("eror", 1.0, "unknown metric 'eror'; did you mean error?"),
    ],
)
def test_a_metric_that_no_worker_can_measure_is_refused(name: str, value: Any, reason: str) -> None:
    """The reason has the metric, the rule and what came."""
    with pytest.raises(ValueError, match=re.escape(reason)):
        reported(name, value)


def test_a_metric_has_its_type() -> None:
    """A whole number is a number too, several texts are a tuple, and empty stays empty."""
    given = {"error": 0, "kernels": ["a", "b"], "peak_bytes": None}
    assert [reported(name, value) for name, value in given.items()] == [0, ("a", "b"), None]


def read(content: bytes) -> Record:
    """Return the record of a line."""
    line = decode_line(content)
    return record_of(Cases().of(line), line, content)


def changed(**values: Any) -> bytes:
    """Return a line with other values and the right checksum; those that are `...` are missing."""
    content = json.loads(encode_line(record()))
    if isinstance(values.get("samples"), dict):
        values["samples"] = content["samples"] | values["samples"]
    kept = {name: value for name, value in (content | values).items() if value is not ... and name != "crc32"}
    return sealed(json.dumps(kept, separators=(",", ":")).encode())


@settings(deadline=None, max_examples=100)
@given(records)
def test_round_trip(before: Record) -> None:
    """A record is the same after its journey."""
    content = encode_line(before)
    assert b"\n" not in content
    assert read(content) == before


def test_a_line_is_json_without_what_is_empty() -> None:
    """Anybody can read it: flat columns by name, no null, and every timing of each sample."""
    content = json.loads(encode_line(record("sdpa", process=2, peak_bytes=1024)))
    assert content["schema_version"] == SCHEMA_VERSION
    may_lack = {name for name, declared in COLUMNS.items() if declared.absent is not REQUIRED}
    assert {*CASE_COLUMNS} - may_lack <= set(content)
    assert (content["implementation"], content["process"], content["peak_bytes"]) == ("sdpa", 2, 1024)
    assert None not in content.values()
    assert [key for key, value in content.items() if isinstance(value, dict)] == ["samples"]
    assert [len(each) for each in content["samples"]["timings_s"]] == [len(each) for each in record().samples.timings_s]
    failed = json.loads(encode_line(record(status="oom", samples=Samples())))
    assert failed["samples"] == {"rounds": [], "timings_s": [], "switches": [], "faults": []}


def test_equal_cases_are_one_object() -> None:
    """Equal points are one object too."""
    cases, of = Cases(), [record(), record(detail="later"), record("sdpa")]
    eager, later, sdpa = (cases.of(decode_line(encode_line(each))) for each in of)
    assert eager is later
    assert eager.point is sdpa.point
    assert [eager, sdpa] == [of[0].case, of[2].case]


@pytest.mark.parametrize(("before", "after"), [(b'"process":0', b'"process":1'), (b'"rounds":[0', b'"rounds":[9')])
def test_a_changed_line_is_told(before: bytes, after: bytes) -> None:
    """Whatever was changed after it was written, the checksum is another one."""
    content = encode_line(record())
    line = decode_line(content)
    content = content.replace(before, after)
    assert content != encode_line(record())
    for call in (lambda: record_of(record().case, line, content), lambda: decode_line(content)):
        with pytest.raises(ValueError, match="changed since it was written"):
            call()


def test_a_line_without_what_it_needs_is_no_record() -> None:
    """A line that lacks a part of the case, its origin or its outcome is refused and not filled up."""
    for key in NEEDED:
        with pytest.raises(ValueError, match=f"{key} is missing|{key} must be"):
            read(changed(**{key: ...}))


def test_what_a_line_lacks_or_holds_besides_is_no_reason_to_refuse_it() -> None:
    """What is newer than the line is empty, and what this suite doesn't know is passed over."""
    assert read(changed(mask=..., settled=..., mood="good")) == record(settled=None)


@pytest.mark.parametrize(
    ("version", "message"), [(SCHEMA_VERSION + 1, "so update the suite"), (OLDEST_SCHEMA - 1, "the suite that wrote")]
)
def test_a_line_of_another_schema_is_refused(version: int, message: str) -> None:
    """Such a line is not taken for a damaged one, whatever else is new in it, and with a checksum or without."""
    for line in (changed(schema_version=version), changed(schema_version=version, process="first", dtype=...)):
        for content in (line, line[:-SEAL_BYTES] + b"}"):
            with pytest.raises(WrongRequest, match=f"schema_version {version}; .*{message}"):
                decode_line(content)


@pytest.mark.parametrize(
    ("samples", "reason"),
    [
        ({"timings_s": [[0.5], [float("nan")], [0.5]]}, "samples.timings_s[1][0] must be a number above 0.0, got nan"),
        ({"timings_s": [[0.5], [0.0], [0.5]]}, "got 0.0"),
        ({"timings_s": [[0.5], [10**400], [0.5]]}, "in range, got 1000"),
        ({"timings_s": [[0.5], [True], [0.5]]}, "got True"),
        ({"timings_s": [[0.5], [], [0.5]]}, "samples.timings_s[1] must be a list with a length of at least 1, got []"),
        ({"timings_s": [0.5, 0.5, 0.5]}, "samples.timings_s[0]"),
        ({"faults": [0, 0, 0, 0]}, "rounds has 3 values and faults has 4"),
        ({"rounds": [0, 1, -1]}, "samples.rounds[2]"),
        ({"others": [0.1, float("nan"), 0.1]}, "samples.others[1]"),
        ({"rounds": [], "timings_s": [], "switches": [], "faults": []}, "at least one sample if the status is ok"),
    ],
)
def test_samples_that_no_measurement_can_be_are_refused(samples: dict[str, Any], reason: str) -> None:
    """The reason names the place, the rule and what came."""
    with pytest.raises(ValueError, match=re.escape(reason)):
        read(changed(samples=samples))


@pytest.mark.parametrize(
    "values",
    [
        {"process": True}, {"detail": None}, {"kernels": [1]}, {"replicate_size": 0}, {"batch": "8"}, {"qkv_bias": 0},
        {"status": "fine"}, {"status": "ok\n"}, {"schema_version": "9"},
    ],
)  # fmt: skip
def test_values_that_no_measurement_can_be_are_refused(values: dict[str, Any]) -> None:
    """Wrong types, booleans as numbers, negative numbers and those that are none; the reason names the column."""
    (name,) = values
    with pytest.raises(ValueError, match=f"^{name}" if name != "kernels" else r"^kernels\[0\]"):
        read(changed(**values))


@pytest.mark.parametrize(
    "values", [{"implementation": "sdpa[backend"}, {"implementation": "a\x1b[31m"}, {"layer": "vit["}, {"mask": "\x1b"}]
)
def test_a_case_that_no_request_can_have_is_no_line(values: dict[str, str]) -> None:
    """Its names break their grammar, or hold characters that command a terminal."""
    with pytest.raises(ValueError, match="must"):
        decode_line(changed(**values))
