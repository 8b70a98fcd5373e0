"""A run: every planned case ends as a row, faults stay where they are, and nothing is measured twice.

All but one test use a scripted worker that makes its times up, because importing torch takes seconds.
"""

import dataclasses
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bench.engine import pool, preflight
from bench.engine import run as engine
from bench.engine.preflight import Preflight
from bench.engine.run import Run
from bench.plan.case import Case
from bench.plan.errors import WrongRequest
from bench.plan.sweep import Effort, Sweep
from bench.store import ceilings, journal, machine
from bench.store.table import load
from tests import mutants
from tests.points import point

pytestmark = pytest.mark.slow

QUICK = Effort(processes=2, target=0.5, budget_s=0.1, timeout_s=60)


def swept(*implementations: str, effort: Effort = QUICK, tokens: tuple[int, ...] = (5, 7)) -> Sweep:
    """Return a sweep of tiny points."""
    return Sweep("tiny", tuple(point(num_tokens=n) for n in tokens), implementations, effort=effort)


def lines(folder: Path) -> Counter[tuple[Any, ...]]:
    """Return how often each case and process stands in the journal."""
    records = journal.read(folder)
    return Counter((record.case, record.process) for record in records)


@pytest.fixture
def _scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have workers make their times up, and take the machine for quiet."""
    monkeypatch.setattr(pool, "MODULE", "tests.engine.scripted_worker")
    monkeypatch.setattr(preflight, "watch", lambda: Preflight(0.0, 0, 0.0))


scripted = pytest.mark.usefixtures("_scripted")


def test_a_real_worker_measures_real_faults(tmp_path: Path) -> None:
    """Wrong numbers, an exception, an exit, forged output and every mutant end as rows beside eager, which is ok.

    So do a module that isn't there and an attribute that isn't in its module.
    """
    statuses = {"wrong": "incorrect", "raises": "error", "exits": "crashed", "talkative": "ok", "nothing": "error"}
    foreign = {f"tests.foreign:{name}": status for name, status in statuses.items()}
    foreign["nosuch:kernel"] = "error"
    foreign |= {f"tests.mutants:{name}": "incorrect" for name in mutants.ALL}
    list(engine.run(swept("eager", *foreign), tmp_path))
    table = load(tmp_path)
    assert list(zip(table["num_tokens"], table["implementation"], table["status"], strict=True)) == [
        (n, name, status) for n in (5, 7) for name, status in {"eager": "ok", **foreign}.items()
    ]
    imported = table["implementation"].isin(["nosuch:kernel", "tests.foreign:nothing"])
    assert table["detail"][imported].str.contains("can't be imported: ").all()
    failed = table[table["status"] != "ok"]
    assert failed[["latency_s", "speedup"]].isna().all(axis=None)
    assert table["speedup_low"][table["status"] == "ok"].notna().all()
    assert set(lines(tmp_path).values()) == {1}


@scripted
def test_the_systems_view_of_memory_comes_from_a_process_of_its_own(tmp_path: Path) -> None:
    """Where it is asked for, it is told by a worker that gives memory back; one that dies there costs that figure."""
    effort = Effort(processes=2, target=0.5, budget_s=0.1, timeout_s=60, check_memory=True)
    list(engine.run(swept("eager", "test:exits_in_memory", "sdpa", effort=effort, tokens=(5,)), tmp_path))
    table = load(tmp_path).set_index("implementation")
    assert (table["status"] == "ok").all()
    assert table["system_peak_bytes"]["eager"] == table["system_peak_bytes"]["sdpa"] == 65536
    assert table["system_peak_bytes"].isna()["test:exits_in_memory"]


@scripted
def test_the_best_that_was_seen_of_the_device_goes_to_the_next_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each worker is told what is known and says what it saw, one more here; it is kept beyond the run."""
    monkeypatch.setattr(ceilings, "PATH", tmp_path / "ceilings.json")
    for processes in (1, 2):
        with Run(swept("eager"), tmp_path / str(processes)) as run:
            for at in run.sweep.points:
                run.measure(at, processes)
            env_id = run.environment.env_id
    assert ceilings.recall(env_id, point()) == {"flops_per_s": 6.0, "bytes_per_s": 6.0}


@scripted
def test_whoever_comes_later_is_looked_at_as_thoroughly(tmp_path: Path) -> None:
    """The first visit that meets an implementation asks for both inputs and an inspection, whatever its number."""
    list(engine.run(swept("eager", tokens=(5,)), tmp_path))
    list(engine.run(swept("eager", "sdpa", tokens=(5,)), tmp_path, extend=True))
    looks = [
        (record.process, record.case.implementation)
        for record in journal.read(tmp_path)
        if record.metrics["kernels"] == ("thoroughly",)
    ]
    assert looks == [(0, "eager"), (2, "eager"), (2, "sdpa")]


@scripted
def test_a_death_before_anyone_is_at_work_is_told_of_all(tmp_path: Path) -> None:
    """If the reference itself takes the process down twice, it is not tried again for each implementation."""
    effort = Effort(processes=1, target=0.5, budget_s=0.1, timeout_s=60)
    list(engine.run(swept("eager", "test:takes_the_reference_down", "sdpa", effort=effort, tokens=(5,)), tmp_path))
    table = load(tmp_path)
    assert table["status"].tolist() == ["crashed"] * 3
    assert table["detail"].str.contains("during reference").all()
    assert not any(record.own_cause for record in journal.read(tmp_path))


@scripted
def test_every_planned_case_ends_as_a_row(tmp_path: Path) -> None:
    """Two points and two implementations are four rows, with a journal line for each process."""
    sweep = swept("eager", "sdpa")
    results = list(engine.run(sweep, tmp_path / "run"))
    assert [len(records) for records in results] == [4, 4]
    table = load(tmp_path / "run")
    assert list(table["status"]) == ["ok"] * 4
    assert list(zip(table["num_tokens"], table["implementation"], strict=True)) == [
        (5, "eager"),
        (5, "sdpa"),
        (7, "eager"),
        (7, "sdpa"),
    ]
    assert set(lines(tmp_path / "run").values()) == {1}
    assert len(lines(tmp_path / "run")) == 8
    assert table["speedup_low"].notna().all()
    assert json.loads((tmp_path / "run" / "environment.json").read_text())["env_id"] == table["env_id"][0]


@scripted
def test_a_process_that_dies_or_hangs_takes_one_case_with_it(tmp_path: Path) -> None:
    """A crash and a time-out are rows that say at which stage; a new worker measures the rest of the point."""
    effort = Effort(processes=2, target=0.5, budget_s=0.1, timeout_s=1)
    list(engine.run(swept("eager", "test:exits", "test:sleeps", "test:raises", effort=effort), tmp_path))
    table = load(tmp_path)
    assert list(table["status"]) == ["ok", "crashed", "timeout", "error"] * 2
    assert table["detail"][1].startswith("ended with exit status 1 during first call (second death")
    assert table["detail"][2].startswith("no sign of life for 1 s during first call (second death")
    assert list(table["processes"]) == [2, 1, 1, 1] * 2
    assert all(record.own_cause for record in journal.read(tmp_path))


@scripted
@pytest.mark.parametrize("name", ["test:killed_once", "test:reference_killed_once"])
def test_a_worker_that_is_killed_once_costs_nothing(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same implementations are measured again in a fresh process: every case is ok, with its ratio."""
    monkeypatch.setenv("TEST_FOLDER", str(tmp_path))
    effort = Effort(processes=1, target=0.5, budget_s=0.1, timeout_s=60)
    list(engine.run(swept("eager", "sdpa", name, effort=effort, tokens=(5,)), tmp_path / "run"))
    table = load(tmp_path / "run")
    assert [*tmp_path.glob("test-*")]
    assert table[["status", "processes"]].to_numpy().tolist() == [["ok", 1]] * 3
    assert table["speedup"].notna().all()
    assert len(lines(tmp_path / "run")) == 3


@scripted
def test_one_that_ends_others_is_found_out(tmp_path: Path) -> None:
    """The timer of one implementation ends the baseline at work: it ends itself, and the others are ok."""
    effort = Effort(processes=2, target=0.5, budget_s=0.1, timeout_s=60)
    list(engine.run(swept("eager", "sdpa", "test:alarm", "manual", effort=effort, tokens=(5,)), tmp_path))
    table = load(tmp_path)
    assert table["status"].tolist() == ["ok", "ok", "crashed", "ok"]
    assert "SIGALRM during rounds (second death, in a fresh process, while eager was running)" in table["detail"][2]
    assert table["speedup"].notna().tolist() == [True, True, False, True]
    assert (table["processes"][[0, 1, 3]] >= 2).all()
    assert set(lines(tmp_path).values()) == {1}


@scripted
def test_what_died_without_a_cause_of_its_own_is_tried_again_by_a_resumed_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A case that was killed twice is not tried for ever, but again in the next session; what it gives then counts."""
    effort = Effort(processes=2, target=0.5, budget_s=0.1, timeout_s=60)
    sweep = swept("eager", "test:killed", "test:exits", effort=effort, tokens=(5,))
    list(engine.run(sweep, tmp_path))
    assert load(tmp_path)["status"].tolist() == ["ok", "crashed", "crashed"]
    assert "a resumed run tries it again" in load(tmp_path)["detail"][1]
    monkeypatch.setenv("TEST_MERCY", "yes")
    list(engine.run(sweep, tmp_path))
    table = load(tmp_path)
    assert table["status"].tolist() == ["ok", "ok", "crashed"]
    assert table["processes"].tolist() == [4, 2, 1]
    assert table["speedup"].notna().tolist() == [True, True, False]
    killed = [record for record in journal.read(tmp_path) if record.case.implementation == "test:killed"]
    assert [(record.status, record.own_cause) for record in killed] == [("crashed", False), ("ok", True), ("ok", True)]
    assert killed[1].metrics["kernels"] == ("thoroughly",)
    assert set(lines(tmp_path).values()) == {1}
    with Run(sweep, tmp_path, retry_failed=True) as opened:
        opened.measure(sweep.points[0])
    assert load(tmp_path)["status"].tolist() == ["ok", "ok", "ok"]


@scripted
def test_a_baseline_that_is_tried_again_has_the_others_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was measured without it has no ratio, so a resumed run measures the others once more."""
    effort = Effort(processes=2, target=0.5, budget_s=0.1, timeout_s=60)
    sweep = Sweep("tiny", (point(),), ("test:killed", "sdpa"), "test:killed", effort)
    list(engine.run(sweep, tmp_path))
    assert load(tmp_path)["status"].tolist() == ["crashed", "ok"]
    assert len(lines(tmp_path)) == 3
    monkeypatch.setenv("TEST_MERCY", "yes")
    list(engine.run(sweep, tmp_path))
    table = load(tmp_path)
    assert table["processes"].tolist() == [2, 4]
    assert table["speedup"].notna().all()
    list(engine.run(sweep, tmp_path))
    assert load(tmp_path)["processes"].tolist() == [2, 4]


@scripted
def test_signs_of_life_are_heard_with_the_point_and_the_process(tmp_path: Path) -> None:
    """From the start of a process to its rounds, the engine says which implementation is at which stage."""
    heard: list[tuple[Any, ...]] = []
    sweep = swept("eager", "sdpa", tokens=(5,))
    with Run(sweep, tmp_path) as opened:
        opened.heard = lambda *sign: heard.append(sign)
        opened.measure(sweep.points[0])
    assert {sign[0] for sign in heard} == {sweep.points[0]}
    assert [sign[1:] for sign in heard] == [
        (number, *sign)
        for number in range(2)
        for sign in (("", "start"), ("eager", "first call"), ("sdpa", "first call"))
    ]


@scripted
def test_a_second_run_into_the_same_folder_measures_only_what_is_missing(tmp_path: Path) -> None:
    """After one of two points, running again adds the other, and no case stands twice."""
    list(engine.run(swept("eager", "sdpa", tokens=(5,)), tmp_path))
    before = journal.read(tmp_path)
    list(engine.run(swept("eager", "sdpa", tokens=(5, 7)), tmp_path, extend=True))
    after = journal.read(tmp_path)
    assert after[: len(before)] == before
    assert set(lines(tmp_path).values()) == {1}
    assert len(load(tmp_path)) == 4


@scripted
def test_a_visit_that_was_cut_is_measured_again_and_set_aside(tmp_path: Path) -> None:
    """A journal that a kill cut in the middle of a visit ends with the same cases as an undisturbed one."""
    sweep = swept("eager", "sdpa", tokens=(5,))
    list(engine.run(sweep, tmp_path))
    path = tmp_path / journal.JOURNAL
    whole = path.read_bytes()
    path.write_bytes(whole[: -len(whole.splitlines()[-1]) // 2])
    list(engine.run(sweep, tmp_path))
    assert set(lines(tmp_path).values()) == {1}
    assert len(lines(tmp_path)) == 4
    assert len((tmp_path / journal.SET_ASIDE).read_bytes().splitlines()) == 2


@scripted
def test_an_implementation_added_later_is_measured_beside_the_baseline(tmp_path: Path) -> None:
    """A new implementation in an old folder gets processes of its own, in which the baseline runs too."""
    list(engine.run(swept("eager", "sdpa", tokens=(5,)), tmp_path))
    list(engine.run(swept("eager", "sdpa", "manual", tokens=(5,)), tmp_path, extend=True))
    table = load(tmp_path).set_index("implementation")
    assert dict(table["processes"]) == {"eager": 4, "sdpa": 2, "manual": 2}
    assert table["speedup"].notna().all()
    assert set(lines(tmp_path).values()) == {1}


@scripted
def test_more_threads_than_cores_are_refused_unless_insisted_on(tmp_path: Path) -> None:
    """Before anything starts the refusal says both numbers, and no folder is made; a sweep may insist."""
    cores = machine.visible_cores()
    crowded = Sweep("tiny", (point(threads=cores + 1),), ("eager",), effort=QUICK)
    with pytest.raises(WrongRequest, match=f"threads = {cores + 1} is more than the {cores} cores"):
        Run(crowded, tmp_path / "run").__enter__()
    assert not (tmp_path / "run").exists()
    insisting = dataclasses.replace(crowded, effort=dataclasses.replace(QUICK, oversubscribe=True))
    list(engine.run(insisting, tmp_path / "run"))
    assert load(tmp_path / "run")["status"].tolist() == ["ok"]


@scripted
def test_what_cannot_fit_into_memory_is_skipped_with_both_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With little memory free the implementation that holds all scores is skipped, the others are measured."""
    monkeypatch.setattr(machine, "available_bytes", lambda: 80 << 20)
    large = Sweep("large", (point(batch=16, num_tokens=1024, num_heads=1),), ("eager", "sdpa"), effort=QUICK)
    list(engine.run(large, tmp_path))
    table = load(tmp_path).set_index("implementation")
    assert dict(table["status"]) == {"eager": "skipped", "sdpa": "ok"}
    said = re.match(r"needs at least (\d+) MiB of memory, and 80\.0 MiB is free", table["detail"]["eager"])
    assert said
    assert 128 < int(said[1]) < 160  # both score tensors, 2 * 4 * 16 * 1024**2 bytes, and what is small beside them
    assert lines(tmp_path)[Case(large.points[0], "eager"), 0] == 1


@scripted
def test_a_reference_that_cannot_fit_skips_the_point_before_a_worker_is_asked(tmp_path: Path) -> None:
    """At ten million tokens every case ends as skipped for one and the same reason, at once."""
    huge = Sweep("huge", (point(num_tokens=10_000_000), point(num_tokens=5)), ("eager", "sdpa"), effort=QUICK)
    with Run(huge, tmp_path) as opened:
        records = opened.measure(huge.points[0])
        assert [record.status for record in records] == ["skipped", "skipped"]
        assert len({record.detail for record in records}) == 1
        assert "no implementation can be checked here" in records[0].detail
        assert "PiB" in records[0].detail
        assert [record.status for record in opened.measure(huge.points[1])] == ["ok"] * 4
        assert opened.finished() == [*huge.points]


@scripted
def test_a_folder_from_another_machine_is_refused(tmp_path: Path) -> None:
    """Rows of two machines never meet in one folder: the refusal names what differs."""
    list(engine.run(swept("eager", tokens=(5,)), tmp_path))
    path = tmp_path / "environment.json"
    content = json.loads(path.read_text())
    content["identity"]["cpu"] = "another"
    path.write_text(json.dumps(content))
    with pytest.raises(WrongRequest, match=r"other conditions.*'another'"):
        list(engine.run(swept("eager", tokens=(5,)), tmp_path))


@scripted
def test_the_share_of_busy_time_is_a_share(tmp_path: Path) -> None:
    """A worker that says it was busy for no time leaves a share of 0."""
    sweep = swept("eager", tokens=(5,))
    with Run(sweep, tmp_path) as opened:
        opened.measure(sweep.points[0])
        assert opened.busy_share == 0
