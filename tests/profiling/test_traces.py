"""Profiles of cases, on disk."""

import gzip
import json
from pathlib import Path

import pytest

from bench.plan.case import Case
from bench.plan.errors import WrongRequest
from bench.profiling import traces
from bench.store import profile
from tests.points import point

pytestmark = pytest.mark.slow


def test_a_case_leaves_its_trace_its_profile_and_its_operators(tmp_path: Path) -> None:
    """The files of stepwise are named after it and hold its stages; an unsupported case says why it has none."""
    cases = [Case(point(), "stepwise"), Case(point(token_len=5), "mha")]
    made, refused = traces.write(cases, tmp_path)
    assert made.reason == ""
    assert made.trace.parent == tmp_path / "traces"
    names = {event.get("name") for event in json.loads(gzip.decompress(made.trace.read_bytes()))["traceEvents"]}
    assert {"stepwise call", "softmax", "qkv projection", "aten::bmm"} <= names
    assert profile.load(tmp_path) == [made.profile]
    assert refused.profile is None
    assert "needs token_len = channels" in refused.reason
    assert {path.name.removeprefix(cases[0].name) for path in (tmp_path / "traces").iterdir()} == {
        ".json.gz", ".profile.json", ".operators.csv", "tensorboard",
    }  # fmt: skip
    (copy,) = (tmp_path / "traces" / "tensorboard").glob("*/*.pt.trace.json.gz")
    assert copy.parent.name == cases[0].name


@pytest.mark.parametrize("unwritable", ["/proc/self/attention-bench", "in the way"])
def test_a_folder_that_cannot_be_written_is_a_wrong_request(unwritable: str, tmp_path: Path) -> None:
    """Where traces/ is a file or can't take files one line says so."""
    (tmp_path / "in the way").touch()
    (tmp_path / "traces").symlink_to(tmp_path / unwritable)
    with pytest.raises(WrongRequest, match="can't be written"):
        list(traces.write([Case(point(), "eager")], tmp_path))
