"""A self-check: the same points in one process after the other, for as long as there is time."""

import math

import pytest

from bench.engine import selfcheck
from bench.engine.run import Run
from bench.plan.case import Case, Point
from bench.store.record import Record
from tests import examples


class Scripted(Run):
    """A run without processes, each of whose measurements takes ten seconds of a clock that it keeps."""

    def __init__(self, threads: tuple[int, ...] = (1, 2)) -> None:
        self.sweep = selfcheck.sweep(threads)
        self.now_s = 0.0
        self.measured: list[tuple[int, int | None]] = []
        self.renewed = 0

    def measure(self, point: Point, processes: int | None = None) -> list[Record]:
        """Let ten seconds pass."""
        self.now_s += 10
        self.measured.append((point.threads, processes))
        return []

    def renew(self) -> None:
        """Count how often fresh processes are asked for."""
        self.renewed += 1

    def records(self, point: Point, implementation: str) -> list[Record]:
        """Return five processes in which the copy takes a hundredth more."""
        timing_s = {selfcheck.TWIN: 1.01e-3, "sdpa": 2e-3}.get(implementation, 1e-3)
        samples, case = examples.timed(timing_s), Case(point, implementation)
        return [examples.record(process=number, samples=samples, case=case) for number in range(5)]


@pytest.fixture
def run() -> Scripted:
    """Return a run that needs nothing but its clock: 40 seconds for each process."""
    return Scripted()


def test_eager_and_its_copy_are_measured_with_each_number_of_threads() -> None:
    """The article's two points, once for each."""
    sweep = selfcheck.sweep([1, 2])
    assert sweep.implementations == ("eager", selfcheck.TWIN, "sdpa")
    assert sweep.baseline == "eager"
    assert [(point.num_heads, point.threads) for point in sweep.points] == [(1, 1), (1, 2), (4, 1), (4, 2)]


def test_it_begins_no_process_that_would_end_too_late(run: Scripted) -> None:
    """In 170 seconds there is room for four processes of 40, and not for a fifth."""
    assert list(selfcheck.measure(run, 170, lambda: run.now_s)) == [1, 2, 3, 4]
    assert run.renewed == 4
    assert [processes for _, processes in run.measured] == [number for number in (1, 2, 3, 4) for _ in range(4)]


def test_it_measures_no_more_than_a_claim_needs(run: Scripted) -> None:
    """With all the time in the world it ends after ten processes."""
    assert list(selfcheck.measure(run, 1e9, lambda: run.now_s))[-1] == selfcheck.PROCESSES


def test_the_fewest_that_tell_a_scatter_are_measured_in_any_case(run: Scripted) -> None:
    """A slow machine takes longer rather than to say nothing."""
    assert list(selfcheck.measure(run, 0, lambda: run.now_s)) == [1, 2, 3]


def test_ratios_are_those_of_the_copy(run: Scripted) -> None:
    """One logarithm for each process, below 0 where the copy is slower."""
    found = selfcheck.ratios(run)
    assert len(found) == 4
    assert all(logs == pytest.approx([-0.00995] * 5, abs=1e-5) for logs in found.values())


def test_errors_are_those_of_the_rounds_of_each_process(run: Scripted) -> None:
    """A single round says nothing of its scatter."""
    assert selfcheck.errors(run) == {point: [math.inf] * 5 for point in run.sweep.points}


def test_occasions_are_pairs_of_processes_that_follow_each_other(run: Scripted) -> None:
    """The fifth process has no partner; the copy and the unlike kernel are a row each."""
    found = selfcheck.occasions(run)
    assert len(found) == 4
    for copy, unlike in found.values():
        assert [len(occasion) for occasion in copy] == [2, 2]
        assert copy[0] == pytest.approx([-0.00995] * 2, abs=1e-5)
        assert unlike[1] == pytest.approx([-0.6931] * 2, abs=1e-4)
