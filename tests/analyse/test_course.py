"""The course of a run: the look after each replicate of a point, and when that was."""

import dataclasses
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from bench.analyse.course import Step, course
from bench.analyse.summary import of_records
from bench.plan.case import Point
from bench.store.record import Record
from tests import examples
from tests.examples import ORIGIN, case

BOUND = 0.02
BEGAN = datetime(2025, 1, 31, 12, tzinfo=UTC)


def replicate(process: int, at_s: float, mha: float = 1.0, tokens: int = 5, scatter: float = 0.01) -> list[Record]:
    """Return the records of a replicate that began so many seconds after the run; sdpa and eager take 1 ms and 2 ms."""
    origin = dataclasses.replace(ORIGIN, started_at=(BEGAN + timedelta(seconds=at_s)).isoformat())
    return [
        examples.measured(case(name, num_tokens=tokens), process, value * 1e-3, origin=origin, scatter=scatter)
        for name, value in (("eager", 2.0), ("sdpa", 1.0), ("mha", mha))
    ]


def of(*replicates: Sequence[Record]) -> dict[Point, list[Step]]:
    """Return the course of a run, by point."""
    found: dict[Point, list[Step]] = {}
    for step in course([record for own in replicates for record in own], "eager", BOUND):
        found.setdefault(step.point, []).append(step)
    return found


def test_the_last_look_is_that_at_all_replicates() -> None:
    """At each of two points; the looks before it are at two replicates and more, with the errors of the whole run."""
    every = [replicate(number, 10 * (3 * tokens + number), tokens=tokens) for tokens in (5, 7) for number in range(4)]
    summary = of_records([record for own in every for record in own], "eager")
    found = of(*every)
    assert [*found] == [*summary]
    for point, steps in found.items():
        assert steps[-1].look == summary.look(point, BOUND)
        assert [step.look.replicates for step in steps] == [2, 3, 4]


def test_who_joins_later_is_in_no_look_before() -> None:
    """Mha was not measured in the first two replicates, so nobody could name it, though it is the fastest."""
    first = [[record for record in replicate(n, 10 * n) if record.case.implementation != "mha"] for n in range(2)]
    (steps,) = of(*first, *(replicate(number, 10 * number, mha=0.5) for number in range(2, 5))).values()
    assert [step.look.named for step in steps] == ["sdpa", "mha", "mha", "mha"]


def test_one_replicate_gives_no_look() -> None:
    """Without a second one there is no bound."""
    assert of(replicate(0, 0)) == {}
    assert of() == {}


def test_a_replicate_ends_when_the_next_one_begins() -> None:
    """At whatever point that is; the last one takes as long beside its samples as the others."""
    found = of(replicate(0, 0), replicate(1, 4), replicate(0, 10, tokens=7), replicate(1, 15, tokens=7))
    assert [step.end_s for steps in found.values() for step in steps] == pytest.approx([10, 20], abs=0.05)


@pytest.mark.parametrize("gap_s", [1_000, 100_000])
def test_the_gap_of_a_resumed_run_does_not_count(gap_s: int) -> None:
    """However long it was: the replicate before it takes as long as the others."""
    (steps,) = of(*(replicate(number, 5 * number + gap_s * (number > 2)) for number in range(5))).values()
    assert [step.end_s for step in steps] == pytest.approx([10, 15, 20, 25], abs=0.05)


def test_a_point_is_answered_from_one_look_on() -> None:
    """Sdpa is the fastest by far from the second replicate on, or as fast as mha, which nothing tells in time."""
    (clear,) = of(*(replicate(number, 5 * number, mha=3.0) for number in range(4))).values()
    assert [step.answers for step in clear] == [True, False, False]
    assert all(step.look.is_answered for step in clear)
    (alike,) = of(*(replicate(number, 5 * number, scatter=0.1) for number in range(4))).values()
    assert not any(step.answers or step.look.is_answered for step in alike)


def test_a_journal_without_times_has_no_course() -> None:
    """Somebody wrote it by hand."""
    origin = dataclasses.replace(ORIGIN, started_at="yesterday")
    records = [dataclasses.replace(record, origin=origin) for n in range(2) for record in replicate(n, 0)]
    assert list(course(records, "eager", BOUND)) == []
