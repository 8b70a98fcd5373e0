"""A duel: ever more processes until all is decided, each of them fresh."""

from collections import defaultdict
from pathlib import Path

import pytest

from bench.analyse.duel import Sides
from bench.engine import pool, preflight
from bench.engine.duel import Look, Together, fight
from bench.engine.preflight import Preflight
from bench.plan.case import Point
from bench.plan.sweep import Effort, Sweep
from bench.store import journal
from bench.store.record import Record, Samples
from tests import examples
from tests.points import point

LOOKS = (2, 4, 6)
PLAIN, UNCLEAR, BROKEN = point(num_tokens=5), point(num_tokens=7), point(num_tokens=9)


class Scripted:
    """A contest without processes: B is twice as fast at one point, unclear at another, broken at a third."""

    def __init__(self) -> None:
        self.steps: list[tuple[int, int]] = []
        self.renewed = 0
        self._values: dict[Point, list[float]] = defaultdict(list)

    def measure(self, point: Point, processes: int) -> None:
        """Add one process."""
        self.steps.append((point.num_tokens, processes))
        factor = 2 if point == PLAIN else 1
        self._values[point].append(factor * (1 + (0.001 if point == PLAIN else 0.2) * (processes % 2)))

    def renew(self) -> None:
        """Count how often fresh processes are asked for."""
        self.renewed += 1

    def sides(self, point: Point) -> Sides:
        """Return records in which A takes a millisecond."""
        values = self._values[point]
        a = [record(n, 1e-3) for n in range(len(values))]
        if point == BROKEN and values:
            return a, [examples.record(process=0, status="error", detail="no", samples=Samples())]
        return a, [record(n, 1e-3 / value) for n, value in enumerate(values)]


def record(process: int, slot_s: float) -> Record:
    """Return a record of one slot."""
    return examples.record(process=process, samples=examples.timed(slot_s))


def test_every_process_measures_what_is_open_and_is_then_replaced() -> None:
    """A point that is decided or broken is measured no more; the others go on process by process."""
    contest = Scripted()
    looks = list(fight(contest, (PLAIN, UNCLEAR, BROKEN), LOOKS))
    assert contest.steps[:3] == [(5, 1), (7, 1), (9, 1)]
    assert contest.steps[3:] == [(5, 2), *[(7, number) for number in range(2, 7)]]
    assert contest.renewed == 6
    assert [look.processes for look in looks] == [2, 4, 6]


def test_each_process_is_told_before_it_begins() -> None:
    """Whoever watches hears the number, the look that it counts for, and how many points it measures."""
    told: list[tuple[int, int, int]] = []
    list(fight(Scripted(), (PLAIN, UNCLEAR, BROKEN), LOOKS, begun=lambda *said: told.append(said)))
    assert told == [(1, 2, 3), (2, 2, 2), (3, 4, 1), (4, 4, 1), (5, 6, 1), (6, 6, 1)]


def test_it_ends_with_the_look_that_decides_the_last_row() -> None:
    """Two processes are enough for what is plain."""
    contest = Scripted()
    (look,) = fight(contest, (PLAIN,), LOOKS)
    assert look.is_last
    assert contest.renewed == 2
    assert [row.judgement.verdict for row in look.rows] == ["faster"]


def test_what_is_unclear_is_inconclusive_at_the_last_look() -> None:
    """No row stays open."""
    *_, last = fight(Scripted(), (PLAIN, UNCLEAR, BROKEN), LOOKS)
    assert isinstance(last, Look)
    assert [row.judgement.verdict for row in last.rows] == ["faster", "inconclusive", "open"]
    assert [row.detail for row in last.rows] == ["", "", "B error: no"]


def test_two_implementations_are_measured_in_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is an ordinary run's, A its baseline, with a fresh process for each number."""
    monkeypatch.setattr(pool, "MODULE", "tests.engine.scripted_server")
    monkeypatch.setattr(preflight, "watch", lambda: Preflight(0.0, 0, 0.0))
    effort = Effort(processes=4, budget_s=0.1, timeout_s=60)
    sweep = Sweep("tiny", (PLAIN, UNCLEAR), ("eager", "test:half"), "eager", effort)
    with Together(sweep, tmp_path, servers=1) as run:
        (look,) = fight(run, sweep.points, (2, 4))
        table = run.run_folder.results()
    assert [(row.judgement.verdict, row.judgement.processes) for row in look.rows] == [("faster", 2)] * 2
    assert table["speedup"].tolist() == pytest.approx([1, 2, 1, 2], rel=1e-2)
    halves = [record for record in journal.read(tmp_path) if record.case.implementation == "test:half"]
    assert len({record.pid for record in halves}) == len({record.samples.values_s for record in halves}) == 4
