"""Which cases of a run are profiled, and their profiles on disk."""

import gzip
import json
from pathlib import Path

import msgspec
import pandas as pd
import pytest

from bench.plan.case import Case
from bench.plan.errors import WrongRequest
from bench.profiling import traces, worker
from bench.profiling.traces import chosen
from bench.sampling.requests import Profiled, Trace
from bench.store import profile
from tests.make.points import point
from tests.make.records import record, samples
from tests.make.results import summarise
from tests.measure.stub import Announcements

pytestmark = pytest.mark.slow


def asked_here(case: Case, path: Path, _scratch: Path) -> Profiled:
    """Return the reply to the request for a profile as its process would send it."""
    reply = worker.trace(Trace(case.point, case.implementation, str(path)), Announcements())
    return msgspec.json.decode(msgspec.json.encode(reply), type=Profiled)


def test_a_case_leaves_its_trace_its_profile_and_its_operators(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that can't be computed says why."""
    monkeypatch.setattr(traces, "_ask", asked_here)
    case, other = Case(point(), "graph"), Case(point(token_len=5), "mha")
    made, reason = traces.write([case, other], tmp_path)
    assert isinstance(reason, str)
    assert "needs token_len = channels" in reason
    trace = json.loads(gzip.decompress(traces.trace_of(case, tmp_path).read_bytes()))
    assert {"graph call", "aten::bmm"} <= {event.get("name") for event in trace["traceEvents"]}
    assert profile.load(tmp_path) == [made]
    assert {path.name.removeprefix(case.name) for path in (tmp_path / "traces").iterdir()} == {
        ".json.gz", ".profile.json", ".operators.csv", "tensorboard",
    }  # fmt: skip
    (copy,) = (tmp_path / "traces" / "tensorboard").glob("*/*.pt.trace.json.gz")
    assert copy.parent.name == case.name


@pytest.fixture
def table() -> pd.DataFrame:
    """Return results of two points in which sdpa wins, and manual failed."""
    times = {"eager": 2.0, "sdpa": 1.0, "online": 3.0}
    records = []
    for tokens in (5, 7):
        for name, value in times.items():
            records.append(record(case=Case(point(num_tokens=tokens), name), samples=samples(value, value)))
        records.append(record(case=Case(point(num_tokens=tokens), "manual"), status="oom", samples=samples()))
    return summarise(records, "eager")


def names(cases: list[Case]) -> list[tuple[int, str]]:
    """Return tokens and implementation of each case."""
    return [(case.point.num_tokens, case.implementation) for case in cases]


def test_without_a_selector_the_first_the_baseline_and_the_graph_of_each_point_are_chosen(table: pd.DataFrame) -> None:
    """The graph, which the run doesn't have, is there for its stages; it doesn't come twice if it is the first."""
    expected = [(tokens, name) for tokens in (5, 7) for name in ("sdpa", "eager", "graph")]
    assert names(chosen(table, [], "eager")) == expected
    renamed = table.replace({"implementation": {"sdpa": "graph"}})
    assert names(chosen(renamed, [], "eager")) == [(5, "graph"), (5, "eager"), (7, "graph"), (7, "eager")]


def test_a_selector_names_columns(table: pd.DataFrame) -> None:
    """All conditions of one hold together, several add up. The graph comes with each point, unless it failed there."""
    selectors = ["implementation=sdpa", "num_tokens=7,implementation=online", "num_tokens=5,implementation=sdpa"]
    expected = [(5, "sdpa"), (5, "graph"), (7, "sdpa"), (7, "online"), (7, "graph")]
    assert names(chosen(table, selectors, "eager")) == expected
    assert names(chosen(table, ["implementation=graph"], "eager")) == [(5, "graph"), (7, "graph")]
    failed = table.replace({"implementation": {"manual": "graph"}})
    assert names(chosen(failed, selectors, "eager")) == [case for case in expected if "graph" not in case]
    with pytest.raises(WrongRequest, match="expected implementation = eager, sdpa, online"):
        chosen(failed, ["implementation=graph"], "eager")
