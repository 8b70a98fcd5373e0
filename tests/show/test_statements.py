"""All that is said of a run agrees: each published one, some that stopped early, and what their reader finds."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.plan.case import CONTROL, Case
from bench.plan.sweep import Effort, Sweep
from bench.show.charts import catalogue
from bench.store import journal, plan
from bench.store.record import Record
from tests.make import runs
from tests.make.points import vit_s
from tests.make.records import environment
from tests.make.results import modelled
from tests.show.statements import contradictions, of_answer, wrong_cells

PUBLISHED = Path(__file__).parents[2] / "results" / "published"
EVERY = sorted(path.parent for path in PUBLISHED.rglob("journal.jsonl"))
FEW = [PUBLISHED / "advise-swin-xeon-2core"]
NAMES = ("eager", "sdpa", "manual")
AT = [vit_s(num_tokens=tokens) for tokens in (50, 197, 577)]


@pytest.fixture(autouse=True)
def _no_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the pictures of pages, which have no text that is read here."""
    monkeypatch.setattr(catalogue, "KINDS", {})


def run(folder: Path, records: Sequence[Record], waiting: int = 0, names: Sequence[str] = NAMES) -> Path:
    """Write a run of these records, whose plan has a number of other points."""
    saved = runs.saved(folder, records, environment())
    points = dict.fromkeys(
        [*(each.case.point for each in records), *(vit_s(num_tokens=n + 600) for n in range(waiting))]
    )
    plan.keep(Sweep("mine", tuple(points), tuple(names), effort=Effort(processes=3), control=True), journal.scan(saved))
    return saved


def of(*fates: tuple[int, str], processes: int = 3) -> list[Record]:
    """Return records of NAMES and the control at AT; `failed` has failures by the point's index and the name."""
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
    """It holds in the terminal, at its end, on its page, in a comment and in its data, for any outcome."""
    records, waiting = RUNS[name]
    assert [*contradictions(run(tmp_path / "run", records, waiting))] == []


@pytest.mark.parametrize(
    "folder", [*FEW, *(pytest.param(each, marks=pytest.mark.slow) for each in EVERY if each not in FEW)],
    ids=lambda each: str(each.relative_to(PUBLISHED)),
)  # fmt: skip
def test_all_that_is_said_of_a_published_run_agrees(folder: Path) -> None:
    """Also in the answer for a model that lies beside it."""
    assert [*contradictions(folder)] == []


# the reader's findings


ROW = {
    "implementation": "sdpa", "baseline": "eager", "status": "ok", "standing": "named", "latency_s": 0.0702,
    "latency_low_s": 0.0684, "latency_high_s": 0.072, "speedup": 1.571, "speedup_low": 1.514, "speedup_high": 1.624,
    "slowdown_low": 1.0, "slowdown_high": 1.0153, "memory_bytes": 42_572_000, "flagged_share": 0.0, "rank": 1,
}  # fmt: skip
RIGHT = {"latency": "70.2 ms ±2.6%", "vs eager": "1.57x [1.51, 1.63]", "within": "1.6%", "memory": "40.6 MiB"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"latency": "71.2 ms ±2.6%"}, {"latency": "70.2 µs ±2.6%"}, {"latency": "70.2 ms ±1.6%"}, {"within": "1.5%"},
        {"vs eager": "1.57x [1.51, 1.62]"}, {"vs eager": "1.67x [1.51, 1.63]"}, {"vs eager": "baseline"},
        {"within": "1.7%"}, {"within": "fastest"}, {"memory": "42.6 MiB"},
    ],
)  # fmt: skip
def test_a_number_that_is_not_that_of_its_row_is_found(wrong: dict[str, str]) -> None:
    """A bound is rounded up, an interval outward, the rest to the nearest; a right number isn't a contradiction."""
    assert [*wrong_cells(RIGHT, ROW)] == []
    assert len([*wrong_cells({**RIGHT, **wrong}, ROW)]) == 1


ROWS = {
    "N=1": [ROW, {**ROW, "implementation": "eager", "standing": "slower"}],
    "N=2": [
        {**ROW, "implementation": "eager", "standing": "fastest", "slowdown_high": 1.0},
        {**ROW, "standing": "slower", "slowdown_low": 1.24, "slowdown_high": 1.31, "rank": 2},
    ],
    "N=3": [{**ROW, "slowdown_high": 1.2}, {**ROW, "implementation": "eager", "standing": "open"}],
}
SAID = [
    "Use sdpa: within 1.6% of the fastest at 1 of 3 points, 1.57x [1.51, 1.62] as fast as eager.",
    "Except N=2: eager (sdpa takes 1.24 to 1.31x as long).",
    "Not decided: sdpa or eager (within 20%) at N=3.",
]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("within 1.6%", "within 1.5%"), ("at 1 of 3", "at 2 of 3"), ("1.57x [", "1.77x ["), ("1.24 to", "1.25 to"),
        ("Use sdpa", "Use mha"), ("1.31x as", "1.30x as"), ("Except N=2", "Except N=1"),
    ],
)  # fmt: skip
def test_a_sentence_that_the_rows_do_not_say_is_found(right: str, wrong: str) -> None:
    """And one that is missing: where another is faster, or where nothing is decided."""
    assert [*of_answer(SAID, ROWS)] == []
    assert [*of_answer([said.replace(right, wrong) for said in SAID], ROWS)]
    for left_out in range(3):
        assert [*of_answer(SAID[:left_out] + SAID[left_out + 1 :], ROWS)]
