"""The schedule of a run in equal shares; the other schedule is `race.py`."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from bench.analyse.standing import Answer
from bench.analyse.summary import Summary
from bench.engine.replicate import Replicate
from bench.plan.case import Point
from bench.plan.sweep import Sweep
from bench.sampling.rounds import Length


class Measuring(Protocol):
    """The part of a run that a schedule uses; see `Run`."""

    sweep: Sweep

    @property
    def summary(self) -> Summary: ...  # noqa: D102 - as in the run
    def missing(self, point: Point, processes: int | None = None) -> list[str]: ...  # noqa: D102
    def leave_out(self, point: Point, processes: int) -> None: ...  # noqa: D102
    def end_unneeded(self, point: Point) -> None: ...  # noqa: D102
    def replicate(  # noqa: D102
        self, point: Point, names: Sequence[str], length: Length, *, with_baseline: bool = True
    ) -> Replicate: ...
    def answer(self, point: Point, bound: float) -> Answer: ...  # noqa: D102


def complete(
    run: Measuring, point: Point, processes: int, replicate: Callable[[Point, Sequence[str], Length], object]
) -> None:
    """Measure a point by `replicate` until each implementation has this many processes."""
    run.leave_out(point, processes)
    share_s = run.sweep.effort.budget_s / run.sweep.effort.processes
    while names := run.missing(point, processes):
        replicate(point, names, Length(share_s))


def equal_shares(run: Measuring, points: Sequence[Point]) -> Iterator[Point]:
    """Give all implementations the same time, point by point, and yield each point when it is measured."""
    for point in points:
        run.end_unneeded(point)
        complete(run, point, run.sweep.effort.processes, run.replicate)
        yield point
