"""All that is said of a run agrees: each published one, some that stopped early, and the drill that reads them."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.analyse.analysed_run import AnalysedRun
from bench.plan.case import CONTROL, Case
from bench.plan.sweep import Effort, Sweep
from bench.show.charts import catalogue
from bench.show.rows import by_point
from bench.store import journal, plan
from bench.store.record import Record
from tests.drills import statements
from tests.drills.statements import Bound, Said, Told, contradictions
from tests.make import runs
from tests.make.points import vit_s
from tests.make.records import environment
from tests.make.results import modelled

PUBLISHED = Path(__file__).parents[2] / "results" / "published"
EVERY = sorted(path.parent for path in PUBLISHED.rglob("journal.jsonl"))
FEW = [PUBLISHED / "advise-swin-xeon-2core"]
NAMES = ("eager", "sdpa", "manual")
AT = [vit_s(num_tokens=tokens) for tokens in (50, 197, 577)]


@pytest.fixture(autouse=True)
def _no_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the pictures of pages out, which say nothing that the drill reads."""
    monkeypatch.setattr(catalogue, "KINDS", {})


def run(folder: Path, records: Sequence[Record], waiting: int = 0, names: Sequence[str] = NAMES) -> Path:
    """Write a run of these records, whose plan has so many other points."""
    saved = runs.saved(folder, records, environment())
    points = dict.fromkeys(
        [*(each.case.point for each in records), *(vit_s(num_tokens=n + 600) for n in range(waiting))]
    )
    plan.keep(Sweep("mine", tuple(points), tuple(names), effort=Effort(processes=3), control=True), journal.scan(saved))
    return saved


def of(*fates: tuple[int, str], processes: int = 3) -> list[Record]:
    """Return records of NAMES and the control at AT, of which these failed: by the point's place and their name."""
    return [
        modelled(Case(at, name), process, ("error", "worked on") if (place, name) in fates else None)
        for place, at in enumerate(AT)
        for name in (*NAMES, CONTROL)
        for process in range(processes)
    ]


RUNS = {
    "all": (of(), 0),
    "interrupted": (of(), 997),
    "in one process": (of(processes=1), 0),
    "in two": (of(processes=2), 2),
    "one failed": (of((1, "sdpa")), 0),
    "nearly all failed": (of(*((place, name) for place in (1, 2) for name in NAMES)), 0),
    "the control failed": (of((0, CONTROL)), 1),
}


FAST = ("interrupted", "nearly all failed")


@pytest.mark.parametrize(
    "name", [*FAST, *(pytest.param(name, marks=pytest.mark.slow) for name in RUNS if name not in FAST)]
)
def test_all_that_is_said_of_a_run_agrees(tmp_path: Path, name: str) -> None:
    """In the terminal, at its end, on its page, in a comment and in its table for programs, whatever happened to it."""
    records, waiting = RUNS[name]
    assert [*contradictions(run(tmp_path / "run", records, waiting))] == []


@pytest.mark.parametrize(
    "folder", [*FEW, *(pytest.param(each, marks=pytest.mark.slow) for each in EVERY if each not in FEW)],
    ids=lambda each: str(each.relative_to(PUBLISHED)),
)  # fmt: skip
def test_all_that_is_said_of_a_published_run_agrees(folder: Path) -> None:
    """Also in the answer for a model that lies beside it."""
    assert [*contradictions(folder)] == []


# what the drill finds


def said(*slower: tuple[str, str, str], **parts: object) -> list[str]:
    """Return what contradicts where sdpa is 1.03 to 1.15 times as fast as eager, and rows are slower by so many %."""
    told = Told("sdpa", "eager", Bound.of("1.03"), Bound.of("1.15"), "terminal")
    bounds = [(name, Bound.of(low, True), Bound.of(high, True), "terminal") for name, low, high in slower]
    return [*statements._disagree(Said(pairs=[told], slower=bounds, **parts))]  # type: ignore[arg-type]


def test_two_statements_of_a_pair_are_compared_within_their_digits() -> None:
    """One that says less, or as much in other digits, contradicts nothing."""
    assert said(("eager", "3", "15")) == said(("eager", "2.9", "15.2")) == []
    assert "by only 1" in said(("eager", "0", "15"))[0]
    assert any("by 1.01 at most" in line for line in said(("eager", "2.9", "1.0")))


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"may_be_fastest": [("eager", "page")]}, "may be the fastest"),
        ({"pays": {"compiled_eager": "5 calls", "compiled_sdpa": "never"}}, "pays after: never"),
        ({"medians_s": {"sdpa": 0.0415, "eager": 0.0402}}, "its median"),
    ],
)
def test_each_other_contradiction_is_found(parts: dict[str, object], words: str) -> None:
    """What may be the fastest though it is slower, what never pays though nothing is slower, opposite medians."""
    slower = ("eager", "2.9", "15"), ("compiled_sdpa", "0", "14")
    assert [words in line for line in said(*slower, **parts)] == [True]
    assert said(*slower) == []
    assert said(*slower, medians_s={"sdpa": 0.0415, "eager": 0.0402}, explained={"sdpa"}) == []


@pytest.mark.parametrize(
    "text",
    [
        "All 8 cases were measured.", "1 of 12 cases have no time", "Use sdpa: at all 3 points it takes",
        "3 of 4 measured cases", "all 6 cases were measured",
    ],
)  # fmt: skip
def test_a_count_that_is_not_that_of_the_plan_is_found(tmp_path: Path, text: str) -> None:
    """With three of six planned cases measured; what is counted rightly is not."""
    saved = AnalysedRun(run(tmp_path / "run", of()[:9], 1, NAMES))
    assert len([*statements._miscounted(text, by_point(saved.table), saved.planned)]) >= 1
    right = "3 of 6 cases have no time; at the 1 of 2 points that was measured; in 3 of 3 measured cases"
    assert [*statements._miscounted(right, by_point(saved.table), saved.planned)] == []


def test_a_name_for_points_that_wait_is_found(tmp_path: Path) -> None:
    """And one that hardly any point compares."""
    saved = AnalysedRun(run(tmp_path / "run", of((1, "sdpa"), (2, "sdpa")), 1))
    (waits, few) = statements._named("Use sdpa: at all 3 points", by_point(saved.table), saved.planned)
    assert "wait" in waits
    assert "compared at 1 of 3" in few
