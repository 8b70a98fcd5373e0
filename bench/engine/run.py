"""A run: every point of a sweep measured by worker processes that take turns, each result kept as it comes."""

import dataclasses
import random
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import pandas as pd

from bench.engine import preflight
from bench.engine.allowance import Allowance
from bench.engine.ledger import Ledger
from bench.engine.pool import Pool
from bench.engine.worker import Died, Worker
from bench.plan.case import Case, Point
from bench.plan.sweep import Sweep, load_sweep
from bench.store import ceilings, machine
from bench.store.environment import Environment
from bench.store.record import Record


class Run:
    """A run folder that is being filled: use it as a context, and ask it for one point after the other.

    Entering it raises WrongRequest when an implementation can't be found,
    or when the folder holds results that were measured under other conditions.
    `warnings` then says what is amiss with the machine.
    `workers` is the number of processes that stand by together, as many as measure a point where nothing is said.
    """

    def __init__(self, sweep: Sweep, folder: Path, workers: int | None = None) -> None:
        self.sweep = sweep
        self.folder = folder
        devices = tuple(dict.fromkeys(point.device for point in sweep.points))
        self._pool = Pool(workers or sweep.effort.processes, sweep.implementations, devices)
        self._ledger = Ledger(sweep, folder)
        self._allowance = Allowance(sweep.effort, len(sweep.points))
        self.warnings: list[str] = []
        self._busy_s = 0.0
        self._opened_s = self._measured_s = time.monotonic()

    def __enter__(self) -> Self:
        try:
            seen = preflight.look()
            facts = self._pool.check(self.sweep.points[0])
            self._ledger.open(machine.observe(facts, plan(self.sweep), dataclasses.asdict(seen)))
            self.warnings = warnings(seen, self.sweep)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all workers."""
        self._pool.close()

    def renew(self) -> None:
        """End all workers, so that the next process of a point is one that has measured nothing yet."""
        self._pool.renew()

    @property
    def environment(self) -> Environment:
        """Where the run measures."""
        return self._ledger.here

    @property
    def busy_share(self) -> float:
        """The share of the time since start-up that was spent in calls that measure, warm up or compile."""
        return self._busy_s / max(self._measured_s - self._opened_s - self._pool.start_up_s, 1e-9)

    def measure(self, point: Point, processes: int | None = None) -> list[Record]:
        """Measure what is missing of a point, and return all its records, earlier ones too.

        Each process's records are in the journal, and the point's rows in results.csv, before this returns.
        `processes` asks for fewer than the sweep does, for now.
        """
        processes = processes or self.sweep.effort.processes
        if self._ledger.missing(point, processes):
            self._allowance.begin()
            while missing := self._ledger.missing(point, processes):
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

    def _visit(self, point: Point, missing: Sequence[str]) -> None:
        """Measure a point in one more process; a case that takes the process with it is left out of the next try."""
        number, started = self._ledger.next_process(point), now()
        left, records = self._beside_baseline(point, missing), []
        while left:
            answer = self._ask(point, number, left)
            if isinstance(answer, Died):
                culprits = [answer.implementation] if answer.implementation in left else [*left]
                for culprit in culprits:
                    left.remove(culprit)
                    case = Case(point, culprit)
                    records.append(self._ledger.record(case, number, started, answer.status, answer.detail))
                continue
            self._busy_s += answer["busy_s"]
            ceilings.remember(self.environment.env_id, point, answer.get("ceiling"))
            if self._ledger.is_new(point, left) and self.sweep.effort.check_memory:
                self._check_memory(point, answer["outcomes"])
            records += [
                self._ledger.record(Case(point, name), number, started, **outcome)
                for name, outcome in answer["outcomes"].items()
            ]
            break
        self._ledger.keep(point, records)

    def _beside_baseline(self, point: Point, missing: Sequence[str]) -> list[str]:
        """Return what a visit measures: nothing alone, but beside the baseline, unless that one failed."""
        baseline = self.sweep.baseline
        unneeded = baseline in missing or baseline in self._ledger.failed(point)
        return [*missing] if unneeded else [baseline, *missing]

    def _ask(self, point: Point, number: int, implementations: Sequence[str]) -> dict[str, Any] | Died:
        worker: Worker | None = None
        try:
            worker = self._pool.worker(point, number)
            return worker.ask(self._request(point, implementations), self.sweep.effort.timeout_s)
        except Died as death:
            if worker is not None:
                self._pool.replace(worker)
            return death

    def _check_memory(self, point: Point, outcomes: dict[str, dict[str, Any]]) -> None:
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
                seen = worker.ask(request, self.sweep.effort.timeout_s)
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
    """Return what environment.json keeps of a sweep."""
    return {"sweep": sweep.name, "baseline": sweep.baseline, "effort": dataclasses.asdict(sweep.effort)}


def warnings(seen: preflight.Preflight, sweep: Sweep) -> list[str]:
    """Return what to say of this machine before a sweep is measured on it."""
    return preflight.warnings(seen, max(point.threads for point in sweep.points), machine.physical_cores())


def now() -> str:
    """Return the time as records have it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def run(sweep: Sweep | str, folder: str | Path) -> Iterator[list[Record]]:
    """Measure a sweep into a run folder, yielding the records of each point as it is finished.

    `sweep` is a shipped name, a TOML file, or a Sweep.
    An existing folder is resumed: what it holds is not measured again.
    """
    if isinstance(sweep, str):
        sweep = load_sweep(sweep, threads=machine.default_threads())
    with Run(sweep, Path(folder)) as opened:
        for point in sweep.points:
            yield opened.measure(point)
