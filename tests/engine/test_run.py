"""A run: every planned case ends as a row, faults stay where they are, and nothing is measured twice.

Most tests have workers that make their times up, because importing torch takes seconds: in threads of this process, or
in processes of their own where one dies.
"""

import dataclasses
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from bench.analyse.analysed_run import AnalysedRun
from bench.analyse.rows import plain
from bench.analyse.standing import Answer
from bench.analyse.summary import Summary
from bench.engine import replicate
from bench.engine import run as engine
from bench.engine.run import Run
from bench.engine.schedule import complete
from bench.machine import facts, quiet
from bench.machine.quiet import Preflight
from bench.plan.case import CONTROL, Case, Point
from bench.plan.sweep import BASE_S, POINT_S, Effort, Sweep
from bench.sampling.rounds import Length
from bench.store import journal
from bench.store.record import Record
from tests.clock import Clock, wait_by_hand
from tests.make.points import point

pytestmark = pytest.mark.slow

QUICK = Effort(processes=2, budget_s=0.04, timeout_s=60)
ONE = dataclasses.replace(QUICK, processes=1)


def swept(*implementations: str, tokens: tuple[int, ...] = (5, 7), **facts: Any) -> Sweep:
    """Return a sweep of tiny points."""
    points = tuple(point(num_tokens=n) for n in tokens)
    return Sweep("tiny", points, implementations, **{"effort": QUICK, **facts})


def lines(folder: Path) -> Counter[tuple[Any, ...]]:
    """Return how often each case and process stands in the journal."""
    records = journal.read(folder)
    return Counter((record.case, record.process) for record in records)


def records_of(opened: Run, at: Point) -> list[Record]:
    """Measure a point by the schedule of its run, and return its records."""
    assert [*opened.measured([at])] == [at]
    return opened.records(at)


def load(folder: Path) -> pd.DataFrame:
    """Return the table of a run with the rows of the control."""
    return AnalysedRun(folder).whole


def ran(sweep: Sweep, folder: Path, *, extend: bool = False) -> pd.DataFrame:
    """Measure the missing part of a sweep in a folder, and return its table."""
    list(engine.run(sweep, folder, extend=extend))
    return load(folder)


scripted = pytest.mark.usefixtures("scripted_workers")

FOREIGN = {"wrong": "incorrect", "raises": "error", "exits": "crashed", "talkative": "ok", "nothing": "error"}
MUTANTS = ("mean_of_values", "stale_output", "edits_its_input", "one_nan")
"""Those that are wrong in ways of their own; `test_correctness` has all of them."""

RUNTIMES = [f"tests.own_runtime:{name}" for name in ("NumPy", "Halved", "Broken")]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run of real workers: kernels with real faults, mutants and other runtimes beside eager."""
    foreign = [*(f"tests.foreign:{name}" for name in FOREIGN), "nosuch:kernel"]
    names = ("eager", *foreign, *(f"tests.mutants:{name}" for name in MUTANTS), *RUNTIMES)
    folder = tmp_path_factory.mktemp("real")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quiet, "watch", lambda: Preflight(0.0, 0, 0.0))
        ran(swept(*names, effort=ONE, tokens=(5,)), folder / "run")
    return folder / "run"


def test_real_workers_measure_real_faults(real: Path) -> None:
    """Wrong numbers, an exception, an exit, forged output and mutants end as rows beside eager, which is ok.

    So do a module that isn't there and an attribute that isn't in its module.
    """
    table = load(real)
    table = table[~table["implementation"].isin(RUNTIMES)]
    expected = {f"tests.foreign:{name}": status for name, status in FOREIGN.items()} | {"nosuch:kernel": "error"}
    expected |= {f"tests.mutants:{name}": "incorrect" for name in MUTANTS}
    assert dict(zip(table["implementation"], table["status"], strict=True)) == {"eager": "ok", **expected}
    imported = table["implementation"].isin(["nosuch:kernel", "tests.foreign:nothing"])
    assert table["detail"][imported].str.contains("can't be imported: ").all()
    failed = table[table["status"] != "ok"]
    assert failed[["latency_s", "speedup"]].isna().all(axis=None)
    assert table["speedup"][table["status"] == "ok"].notna().all()
    assert set(lines(real).values()) == {1}


def test_another_runtime_is_built_and_asked(real: Path) -> None:
    """Its row has the build time and the kernels that it reports, but no memory, which it hides.

    If its output is wrong, they say in which precision it computed. One that can't be built is an error, and the others
    go on.
    """
    rows = {row["implementation"]: row for row in plain(load(real))}
    eager, own, halved, broken = (rows[name] for name in ("eager", *RUNTIMES))
    assert (own["status"], own["kernels"]) == ("ok", "matmul float32;exp float32")
    assert own["compile_cold_s"] > 0
    assert own["memory_bytes"] is own["peak_bytes"] is None
    assert eager["memory_bytes"] == eager["peak_bytes"] + eager["held_bytes"]
    assert (halved["status"], halved["kernels"]) == ("incorrect", "matmul bfloat16")
    assert (broken["status"], "libnumpy.so.7" in broken["detail"]) == ("error", True)


@pytest.mark.toolchain
def test_openvino_is_not_blamed_for_the_core_that_it_keeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It moves its process back to the core on which it was built; of three replicates one or more would show that."""
    monkeypatch.setattr(quiet, "watch", lambda: Preflight(0.0, 0, 0.0))
    sweep = swept("eager", "openvino", effort=ONE, tokens=(5,))
    with Run(sweep, tmp_path) as opened:
        for _ in range(3):
            opened.replicate(sweep.points[0], sweep.implementations, Length(0.0, 2))
    table = load(tmp_path)
    assert {*table["status"]} <= {"ok", "error"}
    assert not table["detail"].str.contains("the cores to run on").any()


@scripted
def test_a_reference_that_fails_is_no_fault_of_the_cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it dies twice, it is not tried for each; a resumed run tries it again.

    None of the cases is the known cause.
    """
    sweep = swept("eager", "sdpa", tokens=(5,), effort=ONE)
    monkeypatch.setenv("TEST_REFERENCE", "exits")
    table = ran(sweep, tmp_path)
    assert table["status"].tolist() == ["crashed"] * 2
    assert table["detail"].str.contains("during reference").all()
    assert [record.own_cause for record in journal.read(tmp_path)] == [False] * 2
    monkeypatch.delenv("TEST_REFERENCE")
    assert ran(sweep, tmp_path)["status"].tolist() == ["ok"] * 2


@scripted
@pytest.mark.parametrize(
    "names",
    [("eager", "test:large", "test:large_too"), ("test:large", "test:large_too", "sdpa")],
    ids=["other", "baseline"],
)
def test_memory_that_runs_out_beside_others_is_measured_by_itself(names: tuple[str, ...], tmp_path: Path) -> None:
    """Two that need much don't fit beside each other, so one of them gets replicates with the baseline alone.

    Where the baseline runs out of memory nothing is kept, and the point is measured in pairs.
    """
    table = ran(swept(*names, tokens=(5,), baseline=names[0]), tmp_path)
    assert table["status"].tolist() == ["ok"] * 3
    assert (table["processes"] >= 2).all()
    assert table["speedup"].notna().all()


@scripted
def test_every_planned_case_ends_as_a_row(tmp_path: Path) -> None:
    """Two points and two implementations are four rows, with a journal line for each process.

    Each implementation has a process of its own, and all of a replicate have the same weights and inputs. From the
    start of a replicate to the last calls, the engine says which implementation is at which stage.
    """
    heard: list[tuple[Any, ...]] = []
    sweep = swept("eager", "sdpa")
    with Run(sweep, tmp_path / "run") as opened:
        opened.heard = lambda *sign: heard.append(sign)
        assert [len(records_of(opened, each)) for each in sweep.points] == [4, 4]
    first = [sign[2:] for sign in heard if sign[:2] == (sweep.points[0], 0)]
    assert first[:2] == [("", "start"), ("", "reference")]
    for name in sweep.implementations:
        stages = list(dict.fromkeys(stage for implementation, stage in first if implementation == name))
        assert stages == ["preparation", "first call", "rounds", "last calls"]
    assert {sign[:2] for sign in heard} == {(each, number) for each in sweep.points for number in (0, 1)}
    table = load(tmp_path / "run")
    assert list(table["status"]) == ["ok"] * 4
    cases = list(zip(table["num_tokens"], table["implementation"], strict=True))
    assert cases == [(5, "eager"), (5, "sdpa"), (7, "eager"), (7, "sdpa")]
    assert set(lines(tmp_path / "run").values()) == {1}
    assert table["speedup_low"].notna().all()
    assert json.loads((tmp_path / "run" / "environment.json").read_text())["env_id"] == table["env_id"][0]
    records = journal.read(tmp_path / "run")
    assert len({record.pid for record in records}) == len(records) == 8
    assert len({(record.case.point, record.seed) for record in records}) == 2


FAULTS = {
    "test:exits": ("crashed", "ended with exit status 1 during first call (died again in a fresh process)"),
    "test:sleeps": ("timeout", "no progress for 60 s during first call (died again in a fresh process)"),
    "test:raises": ("error", "no"),
    "test:alarm": ("crashed", "SIGALRM during rounds (died again in a fresh process)"),
    "test:wrong": ("incorrect", "wrong numbers"),
    "test:wrong_when_timed": ("incorrect", "wrong numbers"),
}
"""The status of each fault, and a part of its detail."""


@pytest.mark.usefixtures("scripted_processes")
def test_a_process_that_dies_or_hangs_takes_one_case_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash, a signal in the rounds and a time-out are rows that say at which stage; the others go on.

    What died is tried a second time. Wrong numbers are not tried again: the row has both figures.
    """
    clock, sweep = wait_by_hand(monkeypatch), swept("eager", *FAULTS, "sdpa", tokens=(5,))
    monkeypatch.setattr(replicate, "_cores", lambda _: [])  # so that nothing else is waited for meanwhile

    def heard(_point: Point, _process: int, implementation: str, stage: str) -> None:
        if (implementation, stage) == ("test:sleeps", "first call"):
            clock.sleep(2 * QUICK.timeout_s)

    with Run(sweep, tmp_path) as opened:
        opened.heard = heard
        assert [*opened.measured()] == [*sweep.points]
    table = load(tmp_path)
    assert table["status"].tolist() == ["ok", *(status for status, _ in FAULTS.values()), "ok"]
    details = zip(table["detail"].fillna(""), ["", *(words for _, words in FAULTS.values()), ""], strict=True)
    assert [(detail, words) for detail, words in details if words not in detail] == []
    assert table["processes"].tolist() == [2, *[1] * len(FAULTS), 2]
    assert table["speedup"].notna().tolist() == (table["status"] == "ok").tolist()
    assert set(table["error"][table["status"] == "incorrect"]) == {1.0}
    assert set(lines(tmp_path).values()) == {1}
    assert all(record.own_cause for record in journal.read(tmp_path))


@scripted
@pytest.mark.parametrize(
    ("names", "killed", "processes"),
    [
        (("eager", "manual", "test:killed_once"), "test-killed_once", [2, 1, 1]),
        (("eager", "manual", "sdpa"), "reference", [1, 1, 1]),
        (("test:killed_once", "manual", "sdpa"), "test-killed_once", [2, 1, 1]),
    ],
)
def test_a_kill_from_outside_costs_nothing(
    names: tuple[str, ...], killed: str, processes: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is killed once, of an implementation or of the reference, is tried again: every case is ok.

    What was killed may have lacked memory, so it is measured again beside one other. Where the baseline was killed,
    nothing of the replicate is kept, because nothing in it has a ratio; where the judge was, all go on together.
    """
    monkeypatch.setenv("TEST_FOLDER", str(tmp_path))
    if killed == "reference":
        monkeypatch.setenv("TEST_REFERENCE", "killed once")
    sweep = swept(*names, effort=ONE, tokens=(5,), baseline=names[0])
    table = ran(sweep, tmp_path / "run")
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [killed]
    assert table["status"].tolist() == ["ok"] * 3
    assert table["processes"].tolist() == processes
    assert table["speedup"].notna().all()
    assert set(lines(tmp_path / "run").values()) == {1}


@scripted
def test_where_memory_may_be_short_all_are_measured_in_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system would rather kill a process than refuse memory to it, so an estimate says what fits side by side."""
    monkeypatch.setattr(facts, "available_bytes", lambda: 1 << 29)
    table = ran(swept("eager", "sdpa", "manual", tokens=(5,), effort=ONE), tmp_path)
    assert table["processes"].tolist() == [2, 1, 1]
    assert {*Counter(record.process for record in journal.read(tmp_path)).values()} == {2}


# Sessions


@scripted
def test_what_died_without_a_cause_of_its_own_is_tried_again_by_a_resumed_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A case that was killed twice is tried again only in the next session; its result then counts."""
    sweep = swept("eager", "test:killed", "test:exits", tokens=(5,))
    assert ran(sweep, tmp_path)["status"].tolist() == ["ok", "crashed", "crashed"]
    assert "a resumed run tries it again" in load(tmp_path)["detail"][1]
    monkeypatch.setenv("TEST_MERCY", "yes")
    table = ran(sweep, tmp_path)
    assert table["status"].tolist() == ["ok", "ok", "crashed"]
    assert table["processes"].tolist() == [5, 2, 1]  # a killed case is measured with only the baseline
    assert table["speedup"].notna().tolist() == [True, True, False]
    killed = [record for record in journal.read(tmp_path) if record.case.implementation == "test:killed"]
    assert [(record.status, record.own_cause) for record in killed] == [("crashed", False), ("ok", True), ("ok", True)]
    assert killed[1].metrics["kernels"] == ("thorough",)
    assert set(lines(tmp_path).values()) == {1}
    with Run(sweep, tmp_path, retry_failed=True) as opened:
        records_of(opened, sweep.points[0])
    assert load(tmp_path)["status"].tolist() == ["ok", "ok", "ok"]


@scripted
def test_a_baseline_that_is_tried_again_has_the_others_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without it there are no ratios, so a resumed run measures the others again beside it."""
    sweep = Sweep("tiny", (point(),), ("test:killed", "sdpa"), "test:killed", QUICK)
    assert ran(sweep, tmp_path)["status"].tolist() == ["crashed", "ok"]
    assert len(lines(tmp_path)) == 3
    monkeypatch.setenv("TEST_MERCY", "yes")
    table = ran(sweep, tmp_path)
    assert table["processes"].tolist() == [2, 4]
    assert table["speedup"].notna().all()
    assert ran(sweep, tmp_path)["processes"].tolist() == [2, 4]


@scripted
def test_a_second_run_into_the_same_folder_measures_only_what_is_missing(tmp_path: Path) -> None:
    """No case stands twice. An implementation that is added gets processes of its own, with the baseline beside it.

    Its first replicate, whatever its number, requests both inputs and an inspection.
    """
    ran(swept("eager", "sdpa", tokens=(5,)), tmp_path)
    before = journal.read(tmp_path)
    ran(swept("eager", "sdpa", "manual", tokens=(5, 7)), tmp_path, extend=True)
    after = journal.read(tmp_path)
    assert after[: len(before)] == before
    assert set(lines(tmp_path).values()) == {1}
    table = load(tmp_path)
    assert table["processes"].tolist() == [4, 2, 2, 2, 2, 2]
    assert table["speedup"].notna().all()
    assert [
        (record.process, record.case.implementation)
        for record in after
        if record.metrics["kernels"] == ("thorough",) and record.case.point.num_tokens == 5
    ] == [(0, "eager"), (0, "sdpa"), (2, "manual")]


@scripted
def test_what_cannot_fit_into_memory_is_skipped_with_both_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With little memory free eager, which holds all scores, is skipped, and so is its control; sdpa is measured."""
    monkeypatch.setattr(facts, "available_bytes", lambda: 60 << 20)
    points = (point(batch=16, num_tokens=1024, num_heads=1),)
    table = ran(Sweep("large", points, ("eager", "sdpa"), effort=QUICK, control=True), tmp_path).set_index(
        "implementation"
    )
    assert dict(table["status"]) == {"eager": "skipped", "sdpa": "ok", CONTROL: "skipped"}
    figures = re.match(r"needs at least (\d+)\S* MiB of memory, but 60\.0 MiB is free", table["detail"]["eager"])
    assert figures
    assert 64 < int(figures[1]) < 96  # the scores, 4 * 16 * 1024**2 bytes, and small tensors beside them
    assert lines(tmp_path)[Case(points[0], "eager"), 0] == 1


@scripted
def test_beyond_the_tokens_at_which_memory_ran_out_a_case_is_skipped(tmp_path: Path) -> None:
    """The reason names the tokens; fewer tokens, other implementations and other shapes are measured."""
    sweep = swept("eager", "test:outgrows", effort=ONE, tokens=(5, 7, 9, 11))
    other = point(num_tokens=6, batch=5)
    with Run(dataclasses.replace(sweep, points=(*sweep.points, other)), tmp_path) as run:
        for each in run.sweep.points:
            records_of(run, each)
    rows = {(row["num_tokens"], row["implementation"]): row for row in plain(load(tmp_path))}
    own = [rows[tokens, "test:outgrows"] for tokens in (5, 6, 7, 9, 11)]
    assert [row["status"] for row in own] == ["ok", "ok", "oom", "skipped", "skipped"]
    assert {rows[tokens, "eager"]["status"] for tokens in (5, 6, 7, 9, 11)} == {"ok"}
    assert {row["detail"] for row in own[3:]} == {"out of memory at N = 7"}
    assert len(lines(tmp_path)) == 10


# The control


@scripted
def test_the_control_is_a_second_process_of_the_baseline(tmp_path: Path) -> None:
    """Its rows come last at their point, with the ratio to the baseline.

    A resumed run completes it: nothing is measured twice, and missing cases are measured beside the baseline.
    """
    sweep = swept("eager", "test:half", "sdpa", control=True)
    with Run(sweep, tmp_path) as opened:
        complete(opened, sweep.points[0], 1, opened.replicate)
        assert opened.finished() == []
    before = journal.read(tmp_path)
    table = ran(sweep, tmp_path)
    records = journal.read(tmp_path)
    assert records[: len(before)] == before
    assert len({record.pid for record in records}) == len(records) == 16
    assert set(lines(tmp_path).values()) == {1}
    assert table["processes"].tolist() == [2] * 8
    assert table["implementation"].tolist() == ["eager", "test:half", "sdpa", CONTROL] * 2
    control = table["implementation"] == CONTROL
    assert table[control][["speedup", "speedup_low", "speedup_high"]].notna().all(axis=None)
    assert table[control]["speedup"].tolist() == pytest.approx([1, 1], abs=0.01)
    with Run(sweep, tmp_path) as opened:
        assert opened.finished() == [*sweep.points]


# A race


def racing(*implementations: str, bound: float, within_s: float = 60.0, tokens: tuple[int, ...] = (5, 7)) -> Sweep:
    """Return a sweep of tiny points that is a race."""
    effort = dataclasses.replace(QUICK, race=True, bound=bound, within_s=within_s)
    return swept(*implementations, effort=effort, tokens=tokens)


def processes(folder: Path) -> dict[tuple[int, str], list[int]]:
    """Return the numbers of the processes of each implementation at each number of tokens, in their order."""
    numbers: dict[tuple[int, str], list[int]] = {}
    for record in journal.read(folder):
        numbers.setdefault((record.case.point.num_tokens, record.case.implementation), []).append(record.process)
    return numbers


@scripted
def test_who_is_far_behind_is_left_out_of_a_race(tmp_path: Path) -> None:
    """The base has one process of it, and all of the baseline and the control; then all points are answered."""
    sweep = dataclasses.replace(racing("eager", "sdpa", "test:half", bound=0.02), control=True)
    answers: list[Answer] = []
    with Run(sweep, tmp_path) as opened:
        assert opened.finished() == []
        assert [*opened.measured(answered=lambda _, answer: answers.append(answer))] == [*sweep.points]
        assert opened.finished() == [*sweep.points]
    assert [(each.named, each.is_good, each.replicates) for each in answers] == [("test:half", True, 2)] * 2
    expected = {"eager": [0, 1], "sdpa": [0], "test:half": [0, 1], CONTROL: [0, 1]}
    assert processes(tmp_path) == {(tokens, name): own for tokens in (5, 7) for name, own in expected.items()}
    assert load(tmp_path)["speedup"].notna().all()


@scripted
def test_a_race_that_goes_on_in_a_second_session_measures_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes the base of the other point alone; a third session has nothing to do, a stricter one goes on.

    If too little of the time is left to start the servers, nothing is measured in the rest.
    """
    sweep = racing("eager", "sdpa", bound=0.9)
    with Run(sweep, tmp_path) as opened:
        records_of(opened, sweep.points[0])
        assert opened.finished() == [sweep.points[0]]
    first = journal.read(tmp_path)
    for _ in range(2):
        ran(sweep, tmp_path)
        second = journal.read(tmp_path)
        assert second[: len(first)] == first
        assert processes(tmp_path) == {(tokens, name): [0, 1] for tokens in (5, 7) for name in ("eager", "sdpa")}
    monkeypatch.setattr(Summary, "measured_s", lambda _: 0.0)
    stricter = racing("eager", "sdpa", bound=1e-9, within_s=0.2)
    ran(stricter, tmp_path)
    assert journal.read(tmp_path) == second
    monkeypatch.setattr("bench.engine.run.LEAST_RACE_S", 0.0)
    ran(stricter, tmp_path)
    third = journal.read(tmp_path)
    assert third[: len(second)] == second
    assert len(third) > len(second)
    assert set(lines(tmp_path).values()) == {1}


def test_the_seconds_of_an_earlier_session_count(
    tmp_path: Path, scripted_workers: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A race may take as long in all as was asked for, or so long for each point."""
    monkeypatch.setattr(Summary, "measured_s", lambda _: 100.0)
    for within_s, expected_s in ((1000.0, 900.0), (None, BASE_S + 2 * POINT_S - 100.0)):
        sweep = racing("eager", bound=0.1)
        effort = dataclasses.replace(sweep.effort, within_s=within_s)
        with Run(dataclasses.replace(sweep, effort=effort), tmp_path) as opened:
            assert opened.end_s(2) - scripted_workers.now_s == pytest.approx(expected_s)
