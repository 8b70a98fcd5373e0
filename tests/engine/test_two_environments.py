"""Two environments side by side: what each side measured stands in its folder, and the rounds of the two pair."""

import dataclasses
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from bench.analyse.race import Look
from bench.analyse.standing import FASTEST
from bench.analyse.summary import values_of
from bench.engine import member, replicate
from bench.engine.pool import Pool
from bench.engine.two_environments import SIDES, Pair
from bench.machine import facts
from bench.plan.case import HUGE
from bench.plan.errors import WrongRequest
from bench.plan.sweep import Effort, Sweep
from bench.store import journal
from bench.store.record import Record
from bench.store.table import load
from tests.engine import threads
from tests.engine.interpreters import two
from tests.points import point

pytestmark = pytest.mark.slow

EFFORT = Effort(processes=2, budget_s=0.1, race=True, bound=0.02, within_s=0.01, timeout_s=60)
"""The time of a base alone."""


@pytest.fixture(autouse=True)
def _scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    threads.use_processes(monkeypatch)


def measured(folder: Path, implementation: str = "sdpa", effort: Effort = EFFORT) -> Pair:
    """Return a pair after a race at one tiny point; B takes twice the time of A."""
    sweep = Sweep("tiny", (point(),), (implementation,), implementation, effort)
    with Pair(sweep, folder, two(folder, "2e-3")) as pair:
        pair.race(sweep.points)
    return pair


def sides(pair: Pair) -> list[list[Record]]:
    """Return the records of each side."""
    return [journal.read(pair.folder / side.lower()) for side in SIDES]


def statuses(pair: Pair) -> list[list[str]]:
    """Return the statuses of the records of each side."""
    return [[record.status for record in side] for side in sides(pair)]


def log_ratios(pair: Pair) -> list[float]:
    """Return the log ratio of A's time to B's in each pair of processes."""
    a, b = values_of(dict(zip(SIDES, sides(pair), strict=True))).logs
    return [float(log) for log in a - b if not np.isnan(log)]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """Return a pair that measured a point in two pairs of processes."""
    with pytest.MonkeyPatch.context() as patch:
        threads.use_processes(patch)
        return measured(tmp_path_factory.mktemp("filled"))


def test_a_side_that_takes_twice_the_time_is_half_as_fast(filled: Pair) -> None:
    """Each pair of processes gives one ratio, and another pair another."""
    ratios = log_ratios(filled)
    assert ratios == pytest.approx([-0.693] * 2, abs=0.005)
    assert len(set(ratios)) == 2


def test_each_side_is_a_run_folder_of_its_own(filled: Pair) -> None:
    """The folders a and b hold a row for the case, with the environment that it comes from."""
    for side, torch in (("a", "2.0"), ("b", "2.1")):
        table = load(filled.folder / side)
        assert table[["status", "processes", "torch_version"]].to_numpy().tolist() == [["ok", 2, torch]]
        records = journal.read(filled.folder / side)
        assert [record.process for record in records] == [0, 1]
        assert [record.metrics["kernels"] for record in records] == [("thorough",), ()]
    assert len({load(filled.folder / side)["env_id"][0] for side in "ab"}) == 2


def test_sides_take_turns_in_the_same_rounds(filled: Pair) -> None:
    """Every round has a sample of each side, with the readings that the worker gave."""
    (a, _), (b, _) = sides(filled)
    assert a.samples.rounds == b.samples.rounds
    assert len(a.samples.rounds) > 1
    assert b.samples.timings_s[0] == (b.samples.values_s[0],) * 3
    assert set(b.samples.faults) == {1}


def test_a_second_run_into_the_same_folders_measures_only_what_is_missing(tmp_path: Path) -> None:
    """Pairs that are there stay, and a record without its other half is no pair."""
    one = dataclasses.replace(EFFORT, processes=1, bound=0.99)
    measured(tmp_path, effort=one)
    before = journal.read(tmp_path / "a")
    assert [len(side) for side in sides(measured(tmp_path, effort=one))] == [1, 1]
    (tmp_path / "b" / journal.JOURNAL).unlink()
    pair = measured(tmp_path, effort=one)
    assert journal.read(tmp_path / "a")[:1] == before
    assert [[record.process for record in side] for side in sides(pair)] == [[0, 1], [1]]
    assert len(log_ratios(pair)) == 1


def test_a_race_of_environments_goes_on_until_one_is_the_fastest(tmp_path: Path) -> None:
    """The sides are named A and B after each look; B takes twice the time, which two replicates can't show."""
    looks: list[Look] = []
    effort = dataclasses.replace(EFFORT, within_s=600.0)
    sweep = Sweep("tiny", (point(),), ("sdpa",), "sdpa", effort)
    with Pair(sweep, tmp_path, two(tmp_path, "2e-3")) as pair:
        pair.race(sweep.points, lambda _, look: looks.append(look))
    assert [look.is_answered for look in looks] == [False] * (len(looks) - 1) + [True]
    assert {look.named for look in looks} == {"A"}
    assert looks[0].replicates == effort.processes
    rows = {row["implementation"]: row for row in pair.summary.rows(point())}
    assert rows["A"]["standing"] == FASTEST
    assert rows["B"]["speedup"] == pytest.approx(0.5, rel=0.01)
    with Pair(sweep, tmp_path, two(tmp_path, "2e-3")) as again:
        again.race(sweep.points)
    assert len(journal.read(tmp_path / "a")) == looks[-1].replicates


def test_each_replicate_has_fresh_servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes of one server share the layout of the code, so each replicate ends the servers of both sides."""
    renewed: Counter[Pool] = Counter()
    end = Pool.renew

    def renew(of: Pool) -> None:
        renewed[of] += 1
        end(of)

    monkeypatch.setattr(Pool, "renew", renew)
    with Pair(Sweep("tiny", (point(),), ("sdpa",), "sdpa", EFFORT), tmp_path, two(tmp_path)) as pair:
        pair.race([point()])
        assert [*renewed.values()] == [EFFORT.processes] * len(SIDES)


@pytest.mark.parametrize("implementation", ["test:raises_in_b", "test:exits_in_b"])
def test_where_one_side_cannot_be_prepared_the_other_is_skipped(implementation: str, tmp_path: Path) -> None:
    """Nothing is timed without the other, both sides have their row, and neither is tried again."""
    pair = measured(tmp_path, implementation)
    assert statuses(pair) == [["skipped"], ["incorrect" if "raises" in implementation else "crashed"]]
    assert [len(load(tmp_path / side)) for side in "ab"] == [1, 1]
    assert [record.own_cause for side in sides(pair) for record in side] == [False, True]


def test_a_side_that_is_killed_once_is_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both sides get fresh processes, and the pair is whole."""
    monkeypatch.setenv("TEST_FOLDER", str(tmp_path))
    pair = measured(tmp_path, "test:killed_once")
    assert [*tmp_path.glob("test-*")]
    assert statuses(pair) == [["ok", "ok"], ["ok", "ok"]]
    assert len(log_ratios(pair)) == 2


@pytest.mark.parametrize(
    ("implementation", "status", "detail"),
    [
        ("test:raises_in_rounds_of_b", "error", "tired"),
        ("test:exits_in_rounds_of_b", "crashed", "ended with exit status 1 during rounds"),
    ],
)
def test_one_that_ends_in_its_turn_has_no_time(implementation: str, status: str, detail: str, tmp_path: Path) -> None:
    """What goes wrong in the rounds of one side ends that side, and the other keeps what it measured."""
    (a,), (b,) = sides(measured(tmp_path, implementation))
    assert (a.status, b.status) == ("ok", status)
    assert b.detail.startswith(detail)
    assert b.own_cause
    assert a.samples.rounds
    assert not b.samples.rounds


def test_an_impossible_time_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The objection after the rounds ends the case without its samples, on both sides."""
    monkeypatch.setattr(replicate, "TIMED_AGAIN_S", 0.01)
    monkeypatch.setattr(member, "OVERHEAD_S", 60.0)  # else the clock may disagree first, on a busy machine
    for records in sides(measured(tmp_path, "test:impossible")):
        (record,) = records
        assert (record.status, record.samples.rounds) == ("error", ())
        assert "impossible rate" in record.detail


def test_an_interpreter_that_is_none_is_a_wrong_request(tmp_path: Path) -> None:
    """What can't be started, and what starts without our packages, is named with what it said."""
    sweep = Sweep("tiny", (point(),), ("sdpa",), "sdpa", EFFORT)
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\necho 'No module named torch' >&2; exit 1\n")
    with pytest.raises(WrongRequest, match=r"--python .*python: no worker .*: Permission denied"):
        Pair(sweep, tmp_path / "run", (str(script), str(script))).__enter__()
    script.chmod(0o755)
    with pytest.raises(WrongRequest, match=r"--python .*python: no worker .*: No module named torch"):
        Pair(sweep, tmp_path / "run", (str(script), str(script))).__enter__()
    assert not (tmp_path / "run").exists()


def test_an_implementation_that_cannot_be_found_names_the_side(tmp_path: Path) -> None:
    """It may be there in one environment and not in the other."""
    sweep = Sweep("tiny", (point(),), ("nosuch:kernel",), "nosuch:kernel", EFFORT)
    with pytest.raises(WrongRequest, match=r"--python .*python-a: implementation 'nosuch:kernel' can't be imported"):
        Pair(sweep, tmp_path / "run", two(tmp_path)).__enter__()


def test_a_pair_without_huge_pages_is_unsupported_on_both_sides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both rows say why, and nothing is measured."""
    monkeypatch.setattr(facts, "huge_pages_missing", lambda: "they are switched off")
    at = point(allocator=HUGE)
    sweep = Sweep("huge", (at,), ("sdpa",), "sdpa", EFFORT)
    with Pair(sweep, tmp_path, two(tmp_path, "2e-3")) as pair:
        pair.race([at])
        assert any("they are switched off" in warning for warning in pair.warnings)
    for side in sides(pair):
        assert [record.status for record in side] == ["unsupported"]
        assert "they are switched off" in side[0].detail
