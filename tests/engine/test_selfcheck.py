"""A self-check: the same points in one process after the other, for as long as there is time."""

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
        """Return a record that is good, but for the unlike kernel."""
        case = Case(point, implementation)
        return [examples.record(case=case, status="error" if implementation == "sdpa" else "ok")]


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


def test_records_are_those_of_each_point_by_implementation(run: Scripted) -> None:
    """What could not be measured is left out."""
    found = selfcheck.records(run)
    assert [*found] == [*run.sweep.points]
    for point, by_name in found.items():
        assert {name: [record.case for record in own] for name, own in by_name.items()} == {
            name: [Case(point, name)] for name in ("eager", selfcheck.TWIN)
        }
