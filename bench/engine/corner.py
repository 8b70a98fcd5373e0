"""One side of an A/B run of two environments: its interpreter, its run folder, and its case in one process."""

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.engine import preflight
from bench.engine.ledger import Ledger
from bench.engine.pool import Pool
from bench.engine.run import plan, visit_request
from bench.engine.trials import detail, is_own
from bench.engine.worker import Died, Worker
from bench.plan.case import Case, Point
from bench.plan.errors import WrongRequest
from bench.plan.sweep import Sweep
from bench.sampling.rounds import Sample
from bench.store import ceilings, machine
from bench.store.record import Slots


class Side:
    """One of the two environments: its workers, one at a time for each process setting, and its run folder."""

    def __init__(self, sweep: Sweep, folder: Path, python: str) -> None:
        devices = tuple(dict.fromkeys(point.device for point in sweep.points))
        self.sweep = sweep
        self.python = python
        self.pool = Pool(1, sweep.implementations, devices, python)
        self.ledger = Ledger(sweep, folder)

    def start(self) -> None:
        """Lock the folder and start the first worker; raises WrongRequest if either is not possible."""
        self.ledger.prepare()
        try:
            self.pool.start(self.sweep.points[0])
        except OSError as error:
            raise WrongRequest(f"--python {self.python} can't be started: {error.strerror}") from None

    def open(self, state: preflight.Preflight) -> None:
        """Check the environment and open its folder; raises WrongRequest if either is not possible."""
        try:
            facts = self.pool.check(self.sweep.points[0], self.sweep.implementations)
        except WrongRequest as error:
            raise WrongRequest(f"--python {self.python}: {error}") from None
        self.ledger.open(machine.observe(facts, plan(self.sweep), dataclasses.asdict(state)))

    def ended(self, point: Point) -> set[int]:
        """Return the processes in which a point was measured without a failure."""
        return {record.process for record in self.ledger.of(point) if record.status == "ok"}


class Ended(Exception):  # noqa: N818 - an outcome that becomes a row
    """A case ended during a sample, with an error or with the death of its worker."""

    def __init__(self, status: str, detail: str, death: Died | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.death = death


class Corner:
    """One side of an A/B run, for one point and one process: its worker and its outcome.

    An error in a step ends the case. An error in a sample is raised, so that both sides stop.
    """

    def __init__(self, side: Side, point: Point) -> None:
        self.side = side
        self.case = Case(point, side.sweep.implementations[0])
        self.slots = Slots()
        names = [self.case.implementation]
        is_new, budget_s = side.ledger.is_new(point, names), side.sweep.effort.budget_s
        self.request = visit_request(side.sweep, point, names, budget_s, thorough=is_new)
        self._outcome: dict[str, Any] = {"status": "ok", "detail": "", "metrics": {}}
        self._worker: Worker | None = None
        self.death: Died | None = None
        """How the worker died, None if it lives."""

    @property
    def is_ok(self) -> bool:
        """Whether nothing has ended the case."""
        return bool(self._outcome["status"] == "ok")

    @property
    def pid(self) -> int | None:
        """The process id of the worker, None if there is no worker."""
        return self._worker.pid if self._worker else None

    def come(self) -> None:
        """Wait for the worker."""
        with self._ending():
            try:
                self._worker = self.side.pool.worker(self.case.point, 0)
            except Died as death:
                raise Ended(death.status, death.detail, death) from None

    def prepare(self, beside: int | None, core: int | None) -> None:
        """Let the worker check the case and warm it up, with half of the budget."""
        limits = {**self.request["limits"], "budget_s": self.request["limits"]["budget_s"] / 2}
        ceiling = ceilings.recall(self.side.ledger.here.env_id, self.case.point)
        shared = {"beside": beside, "core": core, "ceiling": ceiling}
        with self._ending():
            self._take(self._ask({**self.request, "request": "prepare", "limits": limits, **shared}))

    def take_sample(self) -> Sample:
        """Return one sample; raises Ended."""
        reply = self._ask({"request": "sample"})
        if reply["status"] != "ok":
            raise Ended(reply["status"], reply["detail"])
        sample = reply["sample"]
        return Sample(**{**sample, "timings_s": tuple(sample["timings_s"])})

    def finish(self, slots: Slots) -> None:
        """End the rounds, in which these samples were taken."""
        with self._ending():
            reply = self._ask({"request": "finish"})
            ceilings.remember(self.side.ledger.here.env_id, self.case.point, reply.get("ceiling"))
            self._take(reply["outcomes"][self.case.implementation])
            self.slots = slots

    def end(self, end: Ended) -> None:
        """End the case without a time."""
        self._outcome |= {"status": end.status, "detail": end.detail}
        self.death = end.death

    def skip(self) -> None:
        """End the case because the other side could not be measured."""
        self.end(Ended("skipped", "the other side could not be measured"))
        self._outcome["metrics"] |= {"own_cause": False}

    def blame(self, deaths: int) -> None:
        """Record, if the worker died, whether the case is the cause: it is at the second death at the earliest."""
        if self.death is None:
            return
        own_cause = deaths > 1 and is_own(self.death)
        self._outcome["metrics"] |= {"own_cause": own_cause}
        if deaths > 1:
            self._outcome["detail"] = detail(self.case.implementation, self.death, own_cause=own_cause)

    def keep(self, number: int, started: str) -> None:
        """Write the record of the case in this process."""
        record = self.side.ledger.record(self.case, number, started, **self._outcome)
        self.side.ledger.keep(self.case.point, [dataclasses.replace(record, slots=self.slots)])

    @contextmanager
    def _ending(self) -> Iterator[None]:
        try:
            yield
        except Ended as end:
            self.end(end)

    def _take(self, outcome: dict[str, Any]) -> None:
        self._outcome["metrics"] |= outcome["metrics"]
        if outcome["status"] != "ok":
            raise Ended(outcome["status"], outcome["detail"])

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        if self._worker is None:
            raise Ended("crashed", "no worker process")
        try:
            return self._worker.ask(request, self.side.sweep.effort.timeout_s)
        except Died as death:
            self.side.pool.replace(self._worker)
            raise Ended(death.status, death.detail, death) from None
