"""A run: worker processes measure every point of a sweep, one at a time, and each result is stored at once."""

import dataclasses
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Self

import pandas as pd

from bench.engine import admission, preflight
from bench.engine.allowance import Allowance
from bench.engine.ledger import Ledger
from bench.engine.pool import Pool
from bench.engine.trials import Trials
from bench.engine.worker import Died, Worker
from bench.plan.case import Case, Point
from bench.plan.sweep import Sweep, load_sweep
from bench.store import ceilings, machine
from bench.store import plan as stored
from bench.store.environment import Environment
from bench.store.record import Record

Heard = Callable[[Point, int, str, str], None]
"""`heard(point, process, implementation, stage)` is called for every event from a worker."""


def _unheard(_point: Point, _process: int, _implementation: str, _stage: str) -> None: ...


class Run:
    """A measurement of a sweep into a run folder; it is a context manager, inside which points are measured.

    Entering it raises WrongRequest if the sweep has more threads than there are cores, if the folder can't be written
    or another process writes into it, or if it has another sweep or results that were measured under other conditions.
    Then `warnings` lists problems of the machine and repairs of the folder.
    With `extend` the sweep may add to the folder's own.
    `workers` is the number of processes that exist at the same time; by default, the sweep's number per point.
    With `retry_failed` all cases that failed in an earlier session are tried again; without it only those that are not
    known to be the cause of their failure.
    `heard` is called for every event from a worker; its implementation is "" if none is running.
    """

    def __init__(
        self,
        sweep: Sweep,
        folder: Path,
        workers: int | None = None,
        *,
        extend: bool = False,
        retry_failed: bool = False,
    ) -> None:
        self.sweep = sweep
        self.folder = folder
        self.retry_failed = retry_failed
        self.heard: Heard = _unheard
        devices = tuple(dict.fromkeys(point.device for point in sweep.points))
        is_idle = admission.nothing_fits(sweep, machine.available_bytes())  # then one worker identifies the machine
        self._pool = (
            Pool(1, (), ()) if is_idle else Pool(workers or sweep.effort.processes, sweep.implementations, devices)
        )
        self._ledger = Ledger(sweep, folder, extend=extend)
        self._allowance = Allowance(sweep.effort, len(sweep.points))
        self._visits: Counter[Point] = Counter()
        self.warnings: list[str] = []
        self._busy_s = 0.0
        self._opened_s = self._measured_s = time.monotonic()

    def __enter__(self) -> Self:
        try:
            admission.check_threads(self.sweep)
            self._ledger.prepare()
            state = preflight.watch()
            facts = self._pool.check(self.sweep.points[0], self._needed)
            self._ledger.open(machine.observe(facts, plan(self.sweep), dataclasses.asdict(state)))
            self.warnings = [*self._ledger.notices, *warnings(state, self.sweep)]
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all workers and unlock the folder."""
        self._pool.close()
        self._ledger.close()

    def renew(self) -> None:
        """End all workers, so that the next process of a point is a fresh one."""
        self._pool.renew()

    def finished(self) -> list[Point]:
        """Return the points that are completely measured."""
        processes = self.sweep.effort.processes
        return [point for point in self.sweep.points if not self._missing(point, processes)]

    def measured_cases(self) -> int:
        """Return the number of cases that have a record of at least one process."""
        return sum(
            bool(self.records(point, name)) for point in self.sweep.points for name in self.sweep.implementations
        )

    @property
    def _needed(self) -> Sequence[str]:
        """The implementations whose failed import ends the run; that of others ends only their cases."""
        return ()

    def _skip_too_large(self, point: Point, missing: Sequence[str]) -> None:
        """Write a record with the status `skipped` for each new case that can't fit into the free memory."""
        new = [name for name in missing if self._ledger.is_new(point, [name])]
        reasons = admission.too_large(point, new, machine.available_bytes())
        number, started = self._ledger.next_process(point), now()
        records = [
            self._ledger.record(Case(point, name), number, started, "skipped", reason)
            for name, reason in reasons.items()
        ]
        if records:
            self._ledger.keep(point, records)

    @property
    def environment(self) -> Environment:
        """The environment in which the run measures."""
        return self._ledger.here

    @property
    def busy_share(self) -> float:
        """The share of the time since start-up that was spent in calls of implementations."""
        return self._busy_s / max(self._measured_s - self._opened_s - self._pool.start_up_s, 1e-9)

    def measure(self, point: Point, processes: int | None = None) -> list[Record]:
        """Measure the missing processes of a point, and return all of its valid records.

        Each process's records are in the journal, and the point's rows in results.csv, before this returns.
        `processes` is the number to reach now, if not the sweep's.
        """
        processes = processes or self.sweep.effort.processes
        self._skip_too_large(point, self._missing(point, processes))
        if self._missing(point, processes):
            self._allowance.begin()
            while missing := self._missing(point, processes):
                self._visit(point, missing)
            self._allowance.end()
        self._ledger.tabulate(point)
        self._measured_s = time.monotonic()
        return self._ledger.of(point)

    def records(self, point: Point, implementation: str) -> list[Record]:
        """Return the records of one case."""
        return [record for record in self._ledger.of(point) if record.case.implementation == implementation]

    def results(self) -> pd.DataFrame:
        """Return the table of all results so far."""
        return self._ledger.results()

    def rows(self, point: Point) -> pd.DataFrame:
        """Return the table of a measured point."""
        return self._ledger.rows(point)

    @property
    def has_results(self) -> bool:
        """Whether there are results."""
        return self._ledger.has_results

    def _missing(self, point: Point, processes: int) -> list[str]:
        return self._ledger.missing(point, processes, retry_failed=self.retry_failed)

    def _visit(self, point: Point, missing: Sequence[str]) -> None:
        """Measure a point in one more process; if that dies, in fresh ones until every case has a record."""
        baseline = self.sweep.baseline
        trials = Trials(missing, None if baseline in self._ledger.failed(point) - {*missing} else baseline)
        turn = self._visits[point]
        self._visits[point] += 1
        while group := trials.group:
            number, started = self._ledger.next_process(point), now()
            reply = self._ask(point, turn, number, group)
            if isinstance(reply, Died):
                records = [
                    self._ledger.record(
                        Case(point, end.implementation), number, started, end.status, end.detail,
                        {"own_cause": end.own_cause},
                    )
                    for end in trials.died(reply)
                ]  # fmt: skip
            else:
                trials.came_through()
                records = self._records(point, number, started, group, reply)
                if trials.group:  # one of them may have killed a process, so they get a fresh one
                    self._pool.retire(point, turn)
            if records:
                self._ledger.keep(point, records)

    def _records(
        self, point: Point, number: int, started: str, group: Sequence[str], reply: dict[str, Any]
    ) -> list[Record]:
        self._busy_s += reply["busy_s"]
        ceilings.remember(self.environment.env_id, point, reply.get("ceiling"))
        outcomes = {name: reply["outcomes"][name] for name in group}
        if self._ledger.is_new(point, group) and self.sweep.effort.check_memory:
            self._check_memory(point, number, outcomes)
        return [
            self._ledger.record(Case(point, name), number, started, **outcome) for name, outcome in outcomes.items()
        ]

    def _ask(self, point: Point, turn: int, number: int, implementations: Sequence[str]) -> dict[str, Any] | Died:
        worker: Worker | None = None
        heard = partial(self.heard, point, number)
        heard("", "start")
        try:
            worker = self._pool.worker(point, turn, heard)
            return worker.ask(self._request(point, implementations), self.sweep.effort.timeout_s, heard)
        except Died as death:
            if worker is not None:
                self._pool.replace(worker)
            return death

    def _check_memory(self, point: Point, number: int, outcomes: dict[str, dict[str, Any]]) -> None:
        """Add the operating system's peak memory to the metrics of each successful case on a CPU."""
        if point.device != "cpu":
            return
        for name, outcome in outcomes.items():
            if outcome["status"] != "ok":
                continue
            request = {"request": "memory", "point": dataclasses.asdict(point), "implementation": name}
            worker: Worker | None = None
            try:
                worker = self._pool.memory_worker(point.threads)
                reply = worker.ask(request, self.sweep.effort.timeout_s, partial(self.heard, point, number))
                outcome["metrics"]["system_peak_bytes"] = reply["peak_bytes"]
            except Died:
                if worker is not None:
                    self._pool.replace(worker)

    def _request(self, point: Point, implementations: Sequence[str]) -> dict[str, Any]:
        thorough, budget_s = self._ledger.is_new(point, implementations), self._allowance.budget_s
        request = visit_request(self.sweep, point, implementations, budget_s, thorough=thorough)
        return {**request, "ceiling": ceilings.recall(self.environment.env_id, point)}


def visit_request(
    sweep: Sweep, point: Point, implementations: Sequence[str], budget_s: float, *, thorough: bool
) -> dict[str, Any]:
    """Return the request for a visit of a point, with one process's share of the point's budget."""
    effort = sweep.effort
    limits = {"target": effort.target, "budget_s": budget_s / effort.processes, "processes": effort.processes}
    return {
        "request": "visit",
        "point": dataclasses.asdict(point),
        "implementations": implementations,
        "baseline": sweep.baseline,
        "limits": limits,
        "seed": random.SystemRandom().randrange(1 << 32),
        "thorough": thorough,
    }


def plan(sweep: Sweep) -> dict[str, Any]:
    """Return the part of a sweep that environment.json has; plan.json has all of it."""
    return {"sweep": sweep.name}


def warnings(state: preflight.Preflight, sweep: Sweep) -> list[str]:
    """Return the warnings about this machine for a sweep."""
    return preflight.warnings(state, max(point.threads for point in sweep.points), machine.physical_cores())


def now() -> str:
    """Return the current time (UTC) in the format of records."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def run(
    sweep: Sweep | str, folder: str | Path, *, extend: bool = False, retry_failed: bool = False
) -> Iterator[list[Record]]:
    """Measure a sweep into a run folder, yielding the records of each point when it is finished.

    `sweep` is a shipped name, a TOML file, or a Sweep.
    An existing folder is resumed: its results are not measured again. It must have the same sweep; with `extend` the
    union of both is measured. With `retry_failed` cases that failed before are tried again.
    """
    folder = Path(folder)
    if isinstance(sweep, str):
        sweep = load_sweep(sweep, threads=machine.default_threads())
    sweep = stored.continued(sweep, stored.load(folder), folder, extend=extend)
    with Run(sweep, folder, extend=extend, retry_failed=retry_failed) as opened:
        for point in sweep.points:
            yield opened.measure(point)
