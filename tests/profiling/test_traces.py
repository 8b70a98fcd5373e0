"""Chrome traces."""

import gzip
import json
from pathlib import Path

import pytest

from bench.plan.case import Case
from bench.plan.errors import WrongRequest
from bench.profiling import traces
from tests.points import point


def test_a_trace_is_chrome_json_that_holds_the_calls_and_their_operators(tmp_path: Path) -> None:
    """The trace of stepwise shows calls, stages and torch's operators; an unsupported case says why there is none."""
    cases = [Case(point(), "stepwise"), Case(point(token_len=5), "mha")]
    (_, path, objection), (_, missing, refusal) = traces.write(cases, tmp_path)
    assert objection == ""
    assert path.parent == tmp_path / "traces"
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    names = [event.get("name") for event in events]
    assert names.count("stepwise call") >= 3
    assert {"softmax", "qkv projection", "aten::bmm"} <= set(names)
    assert not missing.exists()
    assert "needs token_len = channels" in refusal


def test_a_folder_that_cannot_be_made_is_a_wrong_request(tmp_path: Path) -> None:
    """Where a file stands in the way of traces/ one line says so."""
    (tmp_path / "traces").write_text("in the way")
    with pytest.raises(WrongRequest, match="can't be made"):
        list(traces.write([Case(point(), "eager")], tmp_path))
