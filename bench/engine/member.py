"""A case in one replicate: its process, its end, and its record."""

import dataclasses
import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.engine.claims import Claims, Waiting
from bench.engine.pool import Pool
from bench.engine.worker import Died, Heard, Worker, unheard
from bench.plan.case import Case, Point
from bench.sampling.judged import Kept
from bench.sampling.requests import Outcome, Prepared, Request
from bench.store.environment import Environment
from bench.store.record import Origin, Record, Samples, reported

_numbers = itertools.count()
"""The numbers in names of files for outputs."""

SECOND_DEATH = "died again in a fresh process"
NOT_ITS_OWN = ", perhaps not by its own fault, so a resumed run tries it again"


class Ended(Exception):  # noqa: N818 - an outcome that becomes a row
    """A case ended without a time."""

    def __init__(self, status: str, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


@dataclass(eq=False)
class Member:
    """A case in one replicate: its process, and its outcome.

    Its process runs `implementation`, which the case names except for the control or a side of a duel, at `point`,
    the case's own unless that side has another layer. Its outputs are judged in the pool and at the point of
    `judged_by`, its own by default; with `takes_weights` it gets weights and values from there.
    A `thorough` measurement also checks a normal input and inspects a call. `death` says how its process died, if it
    did. A process that is silent for `timeout_s` is ended; `heard(stage)` is called for each of its events.
    """

    case: Case
    pool: Pool
    thorough: bool
    implementation: str = ""
    status: str = "ok"
    detail: str = ""
    metrics: dict[str, Any] = field(default_factory=dict)
    own_cause: bool = True
    samples: Samples = field(default_factory=Samples)
    death: Died | None = None
    timeout_s: float = math.inf
    heard: Heard = unheard
    calls: int = 1
    """The number of calls in a timing."""
    call_s: float = 0.0
    """The seconds of a call in the warm-up."""
    doubt: str = ""
    """A warning to its users although it is correct."""
    claims: Claims = field(default_factory=Claims)
    waiting: Waiting = field(default_factory=Waiting)
    """The work of its process between samples."""
    keys: list[int] = field(default_factory=list)
    """The keys of all timings of its samples."""
    kept: Kept | None = None
    """The outputs of timed calls that it keeps for the judge."""
    point: Point = None  # type: ignore[assignment]
    judged_by: tuple[Pool, Point] = None  # type: ignore[assignment]
    takes_weights: bool = False
    torch_version: str = ""
    """The version of its torch, if it differs from the run's environment."""
    pid: int | None = None
    worker: Worker | None = None
    files: dict[str, Path] = field(default_factory=dict)
    """The files for the outputs of checks and of timed calls."""

    def __post_init__(self) -> None:
        self.implementation = self.implementation or self.case.implementation
        self.point = self.point or self.case.point
        self.judged_by = self.judged_by or (self.pool, self.point)

    @property
    def is_ok(self) -> bool:
        """Whether the case hasn't ended early."""
        return self.status == "ok"

    @property
    def latency_s(self) -> float:
        """The least seconds of a call in its samples."""
        return min(self.samples.values_s)

    def start(self, number: int) -> None:
        """Start its process for a replicate; raises Died, which isn't blamed on the case."""
        try:
            self.worker = self.pool.worker(self.point, number)
        except Died as death:
            death.is_outside = True
            raise
        self.pid = self.worker.pid

    def post(self, request: Request[Any], stage: str = "start") -> Worker:
        """Send a request that begins a stage to its process, and return the process; raises Died."""
        assert self.worker is not None
        self.worker.post(request, stage=stage)
        return self.worker

    def new_files(self, checks: Iterable[str]) -> dict[str, str]:
        """Return the paths of files for the outputs of checks."""
        return {check: self.file(check) for check in checks}

    def file(self, check: str) -> str:
        """Return the path of the file for the outputs of a check."""
        if check not in self.files:
            self.files[check] = self.pool.folder / f"{next(_numbers)}.pt"
        return str(self.files[check])

    def has_handed_over(self, check: str) -> bool:
        """Return whether its process has written all outputs of a check."""
        return check in self.files and self.files[check].exists()

    def drop(self, check: str) -> None:
        """Remove the file of the outputs of a check."""
        if check in self.files:
            self.files.pop(check).unlink(missing_ok=True)

    def reply(self) -> Any:
        """Return the reply to the latest request, and keep its metrics.

        Raises Died, and Ended for an outcome that is not ok.
        """
        assert self.worker is not None
        reply = self.worker.receive(self.timeout_s, self.heard)
        if isinstance(reply, Outcome | Prepared):
            self.metrics |= reply.metrics
        if isinstance(reply, Outcome) and reply.status != "ok":
            self.own_cause = reply.own_cause
            raise Ended(reply.status, reply.detail)
        return reply

    def end(self, status: str, detail: str, death: Died | None = None) -> None:
        """End the case with a status; `death` is the death of a process that caused it."""
        self.status, self.detail, self.death = status, detail, death

    def record(self, number: int, started_at: str, seed: int, here: Environment) -> Record:
        """Return its record in a replicate, with samples if it is ok.

        If a metric is invalid, the record has the status `error` and keeps the valid metrics.
        """
        status, detail, valid = self.status, self.detail, dict[str, Any]()
        own_cause = self.own_cause
        if self.death is not None:
            own_cause = own_cause and not self.death.is_outside
            detail += f" ({SECOND_DEATH}{'' if own_cause else NOT_ITS_OWN})"
        for name, value in self.metrics.items():
            try:
                valid[name] = reported(name, value)
            except ValueError as error:
                status, detail = "error", f"the worker reported an invalid value: {error}"
        origin = Origin.of(here, self.case.point.device, started_at)
        if self.torch_version:
            origin = dataclasses.replace(origin, torch_version=self.torch_version)
        samples = self.samples if status == "ok" else Samples()
        return Record(
            self.case, number, status, origin, detail, samples, valid, own_cause=own_cause, seed=seed, pid=self.pid
        )

    def close(self) -> None:
        """End its process, and remove its files."""
        if self.worker is not None:
            self.worker.close()
            self.worker = None
        for check in [*self.files]:
            self.drop(check)
