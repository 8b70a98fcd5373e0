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
from tests.refusals import refusal

pytestmark = pytest.mark.slow


def asked_here(case: Case, path: Path, _scratch: Path) -> Profiled:
    """Return the reply to the request for a profile as its process would send it."""
    reply = worker.trace(Trace(case.point, case.implementation, str(path)), Announcements())
    return msgspec.json.decode(msgspec.json.encode(reply), type=Profiled)


def test_a_case_leaves_its_trace_its_profile_and_its_operators(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of stepwise are named after it and hold its stages."""
    monkeypatch.setattr(traces, "_ask", asked_here)
    case = Case(point(), "stepwise")
    (traced,) = traces.write([case], tmp_path)
    assert traced.reason == ""
    assert traced.trace.parent == tmp_path / "traces"
    names = {event.get("name") for event in json.loads(gzip.decompress(traced.trace.read_bytes()))["traceEvents"]}
    assert {"stepwise call", "softmax", "qkv projection", "aten::bmm"} <= names
    assert profile.load(tmp_path) == [traced.profile]
    assert {path.name.removeprefix(case.name) for path in (tmp_path / "traces").iterdir()} == {
        ".json.gz", ".profile.json", ".operators.csv", "tensorboard",
    }  # fmt: skip
    (copy,) = (tmp_path / "traces" / "tensorboard").glob("*/*.pt.trace.json.gz")
    assert copy.parent.name == case.name


def test_an_unsupported_case_says_why_it_has_no_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that profiles it gives the reason."""
    monkeypatch.setattr(traces, "_ask", asked_here)
    (refused,) = traces.write([Case(point(token_len=5), "mha")], tmp_path)
    assert refused.profile is None
    assert "needs token_len = channels" in refused.reason


@pytest.mark.parametrize("unwritable", ["/proc/self/attention-bench", "in the way"])
def test_a_folder_that_cannot_be_written_is_a_wrong_request(unwritable: str, tmp_path: Path) -> None:
    """Where traces/ is a file or can't take files one line says so."""
    (tmp_path / "in the way").touch()
    (tmp_path / "traces").symlink_to(tmp_path / unwritable)
    with pytest.raises(WrongRequest, match="can't be written"):
        list(traces.write([Case(point(), "eager")], tmp_path))


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


def test_without_a_selector_the_first_the_baseline_and_stepwise_of_each_point_are_chosen(table: pd.DataFrame) -> None:
    """Two points give six cases; stepwise, which the run doesn't have, is there for its stages."""
    expected = [(tokens, name) for tokens in (5, 7) for name in ("sdpa", "eager", "stepwise")]
    assert names(chosen(table, [], "eager")) == expected


def test_stepwise_comes_with_every_point_where_it_has_not_failed(table: pd.DataFrame) -> None:
    """It follows the last case of its point, once, whether or not it was chosen, and agrees with selectors too."""
    assert names(chosen(table, ["implementation=stepwise"], "eager")) == [(5, "stepwise"), (7, "stepwise")]
    selectors = ["implementation=sdpa", "num_tokens=7,implementation=online"]
    expected = [(5, "sdpa"), (5, "stepwise"), (7, "sdpa"), (7, "online"), (7, "stepwise")]
    assert names(chosen(table, selectors, "eager")) == expected
    assert names(chosen(table, ["num_tokens=7"], "eager")).count((7, "stepwise")) == 1
    failed = table.replace({"implementation": {"manual": "stepwise"}})
    assert names(chosen(failed, selectors, "eager")) == [case for case in expected if "stepwise" not in case]
    with pytest.raises(WrongRequest, match="the others have implementation = eager, sdpa, online"):
        chosen(failed, ["implementation=stepwise"], "eager")


def test_a_layer_of_the_users_own_has_the_stages_of_its_graph(table: pd.DataFrame) -> None:
    """Stepwise spells out the layers that have a name, so at another the graph is chosen, as a selector can."""
    own = table.assign(layer="mylayer:MyAttention")
    cases = chosen(own, [], "eager")
    assert names(cases) == [(tokens, name) for tokens in (5, 7) for name in ("sdpa", "eager", "graph")]
    assert names(chosen(own, ["implementation=graph"], "eager")) == [(5, "graph"), (7, "graph")]


def test_stepwise_is_chosen_once_where_it_is_the_first(table: pd.DataFrame) -> None:
    """A case of rank 1 doesn't come twice."""
    renamed = table.replace({"implementation": {"sdpa": "stepwise"}})
    assert names(chosen(renamed, [], "eager")) == [(5, "stepwise"), (5, "eager"), (7, "stepwise"), (7, "eager")]


def test_a_selector_names_columns(table: pd.DataFrame) -> None:
    """All conditions of a selector hold together, and several selectors add up without repeats."""
    assert names(chosen(table, ["num_tokens=7,implementation=online"], "eager")) == [(7, "online"), (7, "stepwise")]
    both = ["implementation=sdpa", "num_tokens=5,implementation=sdpa"]
    assert names(chosen(table, both, "eager")) == [(5, "sdpa"), (5, "stepwise"), (7, "sdpa"), (7, "stepwise")]


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("implementation=manual", "no case of the run that is ok agrees"),
        ("num_tokens=8", "no case of the run that is ok agrees"),
        ("colour=red", "unknown column 'colour'; expected one of layer"),
        ("sdpa", "must be column=value"),
    ],
)
def test_a_selector_that_names_nothing_is_refused(table: pd.DataFrame, selector: str, message: str) -> None:
    """A case that failed, doesn't exist, or can't be understood is a wrong request, and so is a run of failures."""
    assert message in refusal(chosen, table, [selector], "eager")
    assert "holds no case that is ok" in refusal(chosen, table[table["status"] != "ok"], [], "eager")
