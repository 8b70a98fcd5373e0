"""The request for a visit and its outcomes. A visit is one process that measures one point."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from bench.plan.case import Point
from bench.sampling.rounds import StoppingRule
from bench.store.roofline import Roof

Announce = Callable[[str, str], None]
"""`announce(implementation, stage)` reports what the process is about to do, in case it dies there."""


@dataclass(frozen=True)
class Request:
    """The request for a visit.

    A `thorough` visit, the first of a point, also checks the normal input and inspects a call.
    All random values and orders come from `seed`.
    `beside` is the id of the process that alternates with this one, None if there is none: it is no interference.
    `ceiling` is the highest rate that the device is known to reach, None if nothing is known yet.
    """

    point: Point
    implementations: tuple[str, ...]
    baseline: str
    limits: StoppingRule
    seed: int
    thorough: bool
    beside: int | None = None
    ceiling: Roof | None = None


@dataclass
class Outcome:
    """The result of a visit for one implementation; `metrics` has metrics and other fields of a record by name."""

    status: str = "ok"
    detail: str = ""
    metrics: dict[str, Any] = field(default_factory=dict)

    def end(self, status: str, detail: str) -> None:
        """End the case with a status; nothing more is measured."""
        self.status, self.detail = status, detail


@dataclass
class Visit:
    """The outcomes of a visit, the seconds spent in calls of implementations, and the device's highest known rates."""

    outcomes: dict[str, Outcome]
    busy_s: float = 0.0
    ceiling: Roof | None = None

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Count the time spent inside as measuring, warming up or compiling."""
        start = perf_counter()
        try:
            yield
        finally:
            self.busy_s += perf_counter() - start
