"""Two environments side by side: what each side measured stands in its folder, and the rounds of the two pair."""

import dataclasses
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from bench.analyse.standing import FASTEST, Look
from bench.analyse.summary import values_of
from bench.engine import member, replicate
from bench.engine.pool import Pool
from bench.engine.two_environments import SIDES, Pair
from bench.machine import facts
from bench.plan.case import HUGE, Point
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


def swept(implementation: str, effort: Effort = EFFORT, at: Point | None = None) -> Sweep:
    """Return a race of an implementation at one tiny point."""
    return Sweep("tiny", (at or point(),), (implementation,), implementation, effort)


def measured(folder: Path, implementation: str = "sdpa", effort: Effort = EFFORT) -> Pair:
    """Return a pair after a race at one tiny point; B takes twice the time of A."""
    sweep = swept(implementation, effort)
    with Pair(sweep, folder, two(folder, "2e-3")) as pair:
        pair.race(sweep.points)
    return pair


def sides(pair: Pair) -> list[list[Record]]:
    """Return the records of each side."""
    return [journal.read(pair.folder / side.lower()) for side in SIDES]


def log_ratios(pair: Pair) -> list[float]:
    """Return the log ratio of A's time to B's in each pair of processes."""
    a, b = values_of(dict(zip(SIDES, sides(pair), strict=True))).logs
    return [float(log) for log in a - b if not np.isnan(log)]


def test_the_rounds_of_two_environments_pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pair of processes gives one ratio, and another pair another: B takes twice the time.

    The folders a and b hold a row for the case, with the environment that it comes from. Every round has a sample of
    each side. Processes of one server share the layout of the code, so each replicate ends the servers of both sides.
    """
    renewed: Counter[Pool] = Counter()
    end = Pool.renew

    def renew(of: Pool) -> None:
        renewed[of] += 1
        end(of)

    monkeypatch.setattr(Pool, "renew", renew)
    pair = measured(tmp_path)
    assert [*renewed.values()] == [EFFORT.processes + 1] * len(SIDES)  # and at the end
    ratios = log_ratios(pair)
    assert ratios == pytest.approx([-0.693] * 2, abs=0.005)
    assert len(set(ratios)) == 2
    for side, torch, records in zip("ab", ("2.0", "2.1"), sides(pair), strict=True):
        table = load(tmp_path / side)
        assert table[["status", "processes", "torch_version"]].to_numpy().tolist() == [["ok", 2, torch]]
        assert [record.process for record in records] == [0, 1]
        assert [record.metrics["kernels"] for record in records] == [("thorough",), ()]
    assert len({load(tmp_path / side)["env_id"][0] for side in "ab"}) == 2
    (a, _), (b, _) = sides(pair)
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
    sweep = swept("sdpa", effort)
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


@pytest.mark.parametrize(
    ("implementation", "status"), [("test:raises_in_b", "incorrect"), ("test:exits_in_b", "crashed")]
)
def test_where_one_side_cannot_be_prepared_the_other_is_skipped(
    implementation: str, status: str, tmp_path: Path
) -> None:
    """Nothing is timed without the other, both sides have their row, and neither is tried again."""
    (a,), (b,) = sides(measured(tmp_path, implementation))
    assert (a.status, a.own_cause, b.status, b.own_cause) == ("skipped", False, status, True)
    assert [len(load(tmp_path / side)) for side in "ab"] == [1, 1]


def test_a_side_that_is_killed_once_is_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both sides get fresh processes, and the pair is whole."""
    monkeypatch.setenv("TEST_FOLDER", str(tmp_path))
    pair = measured(tmp_path, "test:killed_once")
    assert [*tmp_path.glob("test-*")]
    assert [[record.status for record in side] for side in sides(pair)] == [["ok", "ok"], ["ok", "ok"]]
    assert len(log_ratios(pair)) == 2


@pytest.mark.parametrize(
    ("implementation", "status", "detail", "other"),
    [
        ("test:raises_in_rounds_of_b", "error", "tired", "ok"),
        ("test:exits_in_rounds_of_b", "crashed", "ended with exit status 1 during rounds", "ok"),
        ("test:impossible", "error", "impossible rate", "error"),
    ],
)
def test_one_that_ends_in_its_turn_has_no_time(
    implementation: str, status: str, detail: str, other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What goes wrong in the rounds of one side ends that side, and the other keeps what it measured.

    An objection after the rounds ends the case without its samples too.
    """
    monkeypatch.setattr(replicate, "TIMED_AGAIN_S", 0.01)
    monkeypatch.setattr(member, "OVERHEAD_S", 60.0)  # else the clock may disagree first, on a busy machine
    (a,), (b,) = sides(measured(tmp_path, implementation))
    assert (a.status, b.status) == (other, status)
    assert b.detail.startswith(detail)
    assert b.own_cause
    assert bool(a.samples.rounds) is (other == "ok")
    assert not b.samples.rounds


def test_an_interpreter_that_is_none_is_a_wrong_request(tmp_path: Path) -> None:
    """What can't be started, and what starts without our packages, is named with what it said.

    So is the side where an implementation can't be found: it may be there in one environment and not in the other.
    """
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\necho 'No module named torch' >&2; exit 1\n")
    for mode, words in ((0o644, "Permission denied"), (0o755, "No module named torch")):
        script.chmod(mode)
        with pytest.raises(WrongRequest, match=rf"--python .*python: no worker .*: {words}"):
            Pair(swept("sdpa"), tmp_path / "run", (str(script), str(script))).__enter__()
    assert not (tmp_path / "run").exists()
    with pytest.raises(WrongRequest, match=r"--python .*python-a: implementation 'nosuch:kernel' can't be imported"):
        Pair(swept("nosuch:kernel"), tmp_path / "run", two(tmp_path)).__enter__()


def test_a_pair_without_huge_pages_is_unsupported_on_both_sides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both rows say why, and nothing is measured."""
    monkeypatch.setattr(facts, "huge_pages_missing", lambda: "they are switched off")
    at = point(allocator=HUGE)
    with Pair(swept("sdpa", at=at), tmp_path, two(tmp_path, "2e-3")) as pair:
        pair.race([at])
        assert any("they are switched off" in warning for warning in pair.warnings)
    for side in sides(pair):
        assert [record.status for record in side] == ["unsupported"]
        assert "they are switched off" in side[0].detail
