"""What a visit is asked for, and what it finds out."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from bench.plan.case import Point
from bench.sampling.rounds import Limits
from bench.store.roofline import Roof

Announce = Callable[[str, str], None]
"""`announce(implementation, stage)` says what the process is about to do, in case it doesn't come back."""


@dataclass(frozen=True)
class Request:
    """What a visit is asked for; a `thorough` one, a point's first, tries both inputs and inspects a call too.

    All random values and orders come from `seed`.
    `beside` is the process that takes turns with this one, if one does: it is no neighbour.
    `ceiling` is the best that the device is known to reach, None if nothing is known yet.
    """

    point: Point
    implementations: tuple[str, ...]
    baseline: str
    limits: Limits
    seed: int
    thorough: bool
    beside: int | None = None
    ceiling: Roof | None = None


@dataclass
class Outcome:
    """What a visit found out about one implementation, as the fields of a record."""

    status: str = "ok"
    detail: str = ""
    found: dict[str, Any] = field(default_factory=dict)

    def end(self, status: str, detail: str) -> None:
        """End the case: nothing more is measured of it."""
        self.status, self.detail = status, detail


@dataclass
class Visit:
    """The outcomes of a visit, the seconds spent in calls of implementations, and the best seen of the device."""

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
