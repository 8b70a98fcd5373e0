"""When a run measures which points: in equal shares, or in turns over a time. The third schedule is `race.py`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from bench.analyse.standing import Answer
from bench.analyse.summary import Summary
from bench.engine.replicate import Replicate
from bench.machine import monotonic
from bench.plan.case import Point
from bench.plan.sweep import Sweep
from bench.sampling.rounds import Length

Missing = Mapping[Point, Sequence[str]]
"""The implementations to be measured in a replicate, at each of its points."""


class Measuring(Protocol):
    """What a schedule uses of a run, which says what each of these does."""

    sweep: Sweep

    @property
    def summary(self) -> Summary: ...  # noqa: D102 - as in the run
    def together(self, point: Point) -> list[Point]: ...  # noqa: D102
    def missing(self, point: Point, processes: int | None = None) -> list[str]: ...  # noqa: D102
    def leave_out(self, point: Point, processes: int) -> None: ...  # noqa: D102
    def end_unneeded(self, point: Point) -> None: ...  # noqa: D102
    def replicate(self, missing: Missing, length: Length, *, with_baseline: bool = True) -> Replicate: ...  # noqa: D102
    def answer(self, point: Point, bound: float) -> Answer: ...  # noqa: D102


def complete(
    run: Measuring, points: Sequence[Point], processes: int, replicate: Callable[[Missing, Length], object]
) -> None:
    """Measure points by `replicate`, all in the same rounds, until so many processes measured each implementation."""
    for point in points:
        run.leave_out(point, processes)
    share_s = run.sweep.effort.budget_s / run.sweep.effort.processes
    while missing := {point: names for point in points if (names := run.missing(point, processes))}:
        replicate(missing, Length(share_s * len(missing)))


def equal_shares(run: Measuring, points: Sequence[Point]) -> Iterator[Point]:
    """Give all implementations the same time, one point after the other, and yield each point when it is measured."""
    for point in points:
        run.end_unneeded(point)
        complete(run, run.together(point), run.sweep.effort.processes, run.replicate)
        yield point


def spread(run: Measuring, points: Sequence[Point]) -> Iterator[Point]:
    """Measure the replicates of all points in turns, evenly over the effort's `spread_s`, and yield all at the end.

    A machine is faster in some minutes than in others. Then a point's replicates don't all come from the same ones.
    """
    effort = run.sweep.effort
    turns = [(number + 1, point) for number in range(effort.processes) for point in points]
    turns = [(number, point) for number, point in turns if run.missing(point, number)]
    begin_s = monotonic.now_s()
    for index, (number, point) in enumerate(turns):
        monotonic.sleep(max(0.0, begin_s + (effort.spread_s or 0.0) * index / len(turns) - monotonic.now_s()))
        if number == effort.processes:  # else earlier points follow
            run.end_unneeded(point)
        complete(run, run.together(point), number, run.replicate)
    yield from points
