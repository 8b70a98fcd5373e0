"""Records, their samples and metrics, and their lines in the journal."""

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings

from bench.plan.case import CASE_COLUMNS, COLUMNS
from bench.plan.columns import REQUIRED
from bench.store.record import (
    SCHEMA_VERSION,
    Record,
    Samples,
    decode_line,
    encode_line,
    reported,
)
from tests.make.records import record
from tests.make.strategies import records

NEEDED = [
    "implementation",
    *(name for name, column in COLUMNS.items() if column.absent is REQUIRED),
    *("schema_version", "process", "status", "samples"),
    *("env_id", "device_name", "torch_version", "commit", "started_at"),
]
"""The fields that a line must have."""


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("peak_bytes", -1, "peak_bytes: "),
        ("error", float("nan"), "error: "),
        ("kernels", "flash", "kernels: "),
        ("eror", 1.0, "unknown metric 'eror'; did you mean error?"),
    ],
)
def test_a_metric_that_no_worker_can_measure_is_refused(name: str, value: Any, reason: str) -> None:
    """The reason has the metric, the rule and what came."""
    with pytest.raises(ValueError, match=re.escape(reason)):
        reported(name, value)


def changed(**values: Any) -> bytes:
    """Return a line with other values; `...` stands for a missing one."""
    content = json.loads(encode_line(record()))
    if isinstance(values.get("samples"), dict):
        values["samples"] = content["samples"] | values["samples"]
    kept = {name: value for name, value in (content | values).items() if value is not ...}
    return json.dumps(kept, separators=(",", ":")).encode()


@settings(deadline=None, max_examples=100)
@given(records)
def test_round_trip(before: Record) -> None:
    """A record is the same after its journey."""
    content = encode_line(before)
    assert b"\n" not in content
    assert decode_line(content) == before


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
    assert failed["samples"] == {"rounds": [], "timings_s": [], "switches": [], "others": []}


def test_what_a_line_lacks_or_holds_besides_is_no_reason_to_refuse_it() -> None:
    """A metric that it lacks is empty, a column has the value that layers without it have; the rest is passed over."""
    assert decode_line(changed(mask=..., settled=..., mood="good")) == record(settled=None)


@pytest.mark.parametrize(
    "values",
    [
        *({name: ...} for name in NEEDED),
        {"samples": {"timings_s": [[0.5], [float("nan")], [0.5]]}},
        {"samples": {"timings_s": [[0.5], [0.0], [0.5]]}},
        {"samples": {"timings_s": [[0.5], [], [0.5]]}},
        {"samples": {"switches": [0, 0, 0, 0]}},
        {"samples": {"rounds": [0, 1, 1]}},
        {"samples": {"rounds": [], "timings_s": [], "switches": [], "others": []}},
        {"implementation": "sdpa[backend"},
        {"implementation": "a\x1b[31m"},
        {"layer": "vit["},
        {"mask": "\x1b"},
    ],
)
def test_what_no_measurement_can_be_is_no_record(values: dict[str, Any]) -> None:
    """A part that is missing is not filled up; names keep their grammar and can't command a terminal."""
    with pytest.raises(ValueError, match=r"."):
        decode_line(changed(**values))
