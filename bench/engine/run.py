"""A run: every point of a sweep measured by worker processes that take turns, each result kept as it comes."""

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
"""`heard(point, process, implementation, stage)` is called at every sign of life of a worker."""


def _unheard(_point: Point, _process: int, _implementation: str, _stage: str) -> None: ...


class Run:
    """A run folder that is being filled: use it as a context, and ask it for one point after the other.

    Entering it raises WrongRequest if the sweep asks for more threads than there are cores, if the folder can't be
    written or somebody else writes into it, or if it holds another sweep or results that were measured under other
    conditions.
    With `extend` the sweep may add to the folder's own.
    `warnings` then says what is amiss with the machine and the folder.
    `workers` is the number of processes that stand by together, as many as measure a point where nothing is said.
    With `retry_failed` all cases that failed in an earlier session are tried again; without it only those that are not
    known to be the cause of their failure.
    `heard` is called at every sign of life of a worker; its implementation is "" if none is at work.
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
        idle = admission.nothing_fits(sweep, machine.available_bytes())  # one worker says what the machine is
        self._pool = (
            Pool(1, (), ()) if idle else Pool(workers or sweep.effort.processes, sweep.implementations, devices)
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
            seen = preflight.look()
            facts = self._pool.check(self.sweep.points[0], self._needed)
            self._ledger.open(machine.observe(facts, plan(self.sweep), dataclasses.asdict(seen)))
            self.warnings = [*self._ledger.notices, *warnings(seen, self.sweep)]
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all workers, and leave the folder to others."""
        self._pool.close()
        self._ledger.close()

    def renew(self) -> None:
        """End all workers, so that the next process of a point is one that has measured nothing yet."""
        self._pool.renew()

    def finished(self) -> list[Point]:
        """Return the points at which nothing is missing."""
        processes = self.sweep.effort.processes
        return [point for point in self.sweep.points if not self._missing(point, processes)]

    def measured_cases(self) -> int:
        """Return the number of cases that have a record, of however many processes."""
        return sum(
            bool(self.records(point, name)) for point in self.sweep.points for name in self.sweep.implementations
        )

    @property
    def _needed(self) -> Sequence[str]:
        """The implementations that end the run if they can't be imported; the others end their own cases."""
        return ()

    def _skip_too_large(self, point: Point, missing: Sequence[str]) -> None:
        """Give each case that wasn't begun and can't fit into the free memory a row that says so."""
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
        """Where the run measures."""
        return self._ledger.here

    @property
    def busy_share(self) -> float:
        """The share of the time since start-up that was spent in calls that measure, warm up or compile."""
        return self._busy_s / max(self._measured_s - self._opened_s - self._pool.start_up_s, 1e-9)

    def measure(self, point: Point, processes: int | None = None) -> list[Record]:
        """Measure what is missing of a point, and return its records that count, earlier ones too.

        Each process's records are in the journal, and the point's rows in results.csv, before this returns.
        `processes` asks for fewer than the sweep does, for now.
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
        """Return the table of what the run holds so far."""
        return self._ledger.results()

    def rows(self, point: Point) -> pd.DataFrame:
        """Return the table of a point that was measured."""
        return self._ledger.rows(point)

    @property
    def has_results(self) -> bool:
        """Whether there is anything to show."""
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
            answer = self._ask(point, turn, number, group)
            if isinstance(answer, Died):
                records = [
                    self._ledger.record(
                        Case(point, end.implementation), number, started, end.status, end.detail,
                        {"own_cause": end.own_cause},
                    )
                    for end in trials.died(answer)
                ]  # fmt: skip
            else:
                trials.came_through()
                records = self._records(point, number, started, group, answer)
                if trials.group:  # under suspicion, so they get a fresh process
                    self._pool.retire(point, turn)
            if records:
                self._ledger.keep(point, records)

    def _records(
        self, point: Point, number: int, started: str, group: Sequence[str], answer: dict[str, Any]
    ) -> list[Record]:
        self._busy_s += answer["busy_s"]
        ceilings.remember(self.environment.env_id, point, answer.get("ceiling"))
        outcomes = {name: answer["outcomes"][name] for name in group}
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
        """Add what the operating system sees of the memory of each case that is ok, where it can be seen."""
        if point.device != "cpu":
            return
        for name, outcome in outcomes.items():
            if outcome["status"] != "ok":
                continue
            request = {"request": "memory", "point": dataclasses.asdict(point), "implementation": name}
            worker: Worker | None = None
            try:
                worker = self._pool.memory_worker(point.threads)
                seen = worker.ask(request, self.sweep.effort.timeout_s, partial(self.heard, point, number))
                outcome["found"]["system_peak_bytes"] = seen["peak_bytes"]
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
    """Return the request for a visit of a point, one process's share of the point's budget."""
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
    """Return what environment.json keeps of a sweep; plan.json keeps all of it."""
    return {"sweep": sweep.name}


def warnings(seen: preflight.Preflight, sweep: Sweep) -> list[str]:
    """Return what to say of this machine before a sweep is measured on it."""
    return preflight.warnings(seen, max(point.threads for point in sweep.points), machine.physical_cores())


def now() -> str:
    """Return the time as records have it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def run(
    sweep: Sweep | str, folder: str | Path, *, extend: bool = False, retry_failed: bool = False
) -> Iterator[list[Record]]:
    """Measure a sweep into a run folder, yielding the records of each point as it is finished.

    `sweep` is a shipped name, a TOML file, or a Sweep.
    An existing folder is resumed: what it holds is not measured again. It must hold the same sweep; with `extend` the
    union of both is measured. With `retry_failed` cases that failed before are tried again.
    """
    folder = Path(folder)
    if isinstance(sweep, str):
        sweep = load_sweep(sweep, threads=machine.default_threads())
    sweep = stored.continued(sweep, stored.load(folder), folder, extend=extend)
    with Run(sweep, folder, extend=extend, retry_failed=retry_failed) as opened:
        for point in sweep.points:
            yield opened.measure(point)
