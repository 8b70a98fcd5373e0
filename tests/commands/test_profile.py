"""The command `python -m bench profile`: its cases, output and files."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from bench.machine import nvml
from bench.plan.case import Case
from bench.profiling import traces
from bench.store import profile as store
from bench.store import table
from bench.store.profile import TRACES, Profile
from tests.make.points import vit_s
from tests.make.profiles import graph, profile
from tests.make.results import results

TOKENS = (197, 577)
CASES = [Case(vit_s(num_tokens=tokens), name) for tokens in TOKENS for name in ("eager", "sdpa", "online")]

Printed = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return a run of two points in which sdpa wins; nothing is profiled."""
    (tmp_path / TRACES).mkdir()
    table.save(results(CASES), tmp_path)
    return tmp_path


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Case]:
    """Return the cases that were profiled: stand-ins come from nowhere, and eager and graphs of others have none."""
    asked: list[Case] = []

    def write(cases: Sequence[Case], _folder: Path) -> Iterator[Profile | str]:
        for case in cases:
            asked.append(case)
            failed = case.implementation == "eager" or (case.implementation == "graph" and ":" in case.point.layer)
            made = graph() if case.implementation == "graph" else profile(case.implementation)
            yield "no memory" if failed else made

    monkeypatch.setattr(traces, "write", write)
    return asked


def test_first_baseline_and_graph_are_profiled(run: Path, asked: list[Case], printed: Printed) -> None:
    """Each prints where its trace is and its tables; where one fails the others go on, and the status is 1."""
    output = printed("profile", run, status=1)
    assert [case.implementation for case in asked] == ["sdpa", "eager", "graph"] * 2
    assert [output.count(words) for words in ("eager: no memory", "sdpa.json.gz", "in no stage")] == [2, 2, 2]


def test_a_module_without_a_graph_has_its_other_profiles(tmp_path: Path, asked: list[Case], printed: Printed) -> None:
    """Its stages were not in the run, so that they fail is said, and the status is 0."""
    table.save(results([Case(vit_s(layer="layers:Mine"), "sdpa")]), tmp_path)
    output = printed("profile", tmp_path, status=0)
    assert [case.implementation for case in asked] == ["sdpa", "graph"]
    assert [words in output for words in ("graph: no memory", "sdpa.json.gz")] == [True, True]


def test_selectors_and_top_are_passed_on(run: Path, asked: list[Case], printed: Printed) -> None:
    """The output is one case with the stages of its point, and no more of its operators than were asked for."""
    output = printed("profile", run, "--case", "implementation=sdpa,num_tokens=577", "--top", "1")
    assert asked == [CASES[4], Case(CASES[4].point, "graph")]
    assert [words in output for words in ("2 others", "in no stage", "aten::add ")] == [True, True, False]


def test_pictures_and_the_page_have_all_profiles_of_the_run(run: Path, asked: list[Case], printed: Printed) -> None:
    """Pictures lie with the run's others; both have profiles that were there before."""
    store.save(graph(), run)
    output = printed("profile", run, "--case", "implementation=sdpa,num_tokens=577")
    pictures = sorted((run / "plots").iterdir())
    assert {picture.suffix for picture in pictures} == {".png"}
    assert all(str(file) in output for file in (*pictures, run / "report.html"))
    assert "<summary>graph</summary>" in (run / "report.html").read_text(encoding="utf-8")


def test_a_run_of_a_gpu_is_refused_where_there_is_none(
    tmp_path: Path, asked: list[Case], refused: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one line, before any process starts for one of its cases."""
    monkeypatch.setattr(nvml, "gpus", list)
    at = vit_s(device="cuda", timing="device-cold")
    table.save(results([Case(at, name) for name in ("eager", "sdpa")]), tmp_path)
    assert "device = cuda can't be used here" in refused("profile", tmp_path)
    assert asked == []
