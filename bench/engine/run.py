"""A run: every point of a sweep measured by worker processes that take turns, each result kept as it comes."""

import dataclasses
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import pandas as pd

from bench.analyse.summary import summarise
from bench.engine import preflight
from bench.engine.pool import Pool
from bench.engine.worker import Died, Worker
from bench.plan.case import Case, Point
from bench.plan.errors import WrongRequest
from bench.plan.sweep import Sweep, load_sweep
from bench.store import environment, journal, machine, table
from bench.store.record import Origin, Record, Slots

CHECK_S = 120.0
"""The longest that importing the implementations may take."""


class Run:
    """A run folder that is being filled: use it as a context, and ask it for one point after the other.

    Entering it raises WrongRequest when an implementation can't be found,
    or when the folder holds results that were measured under other conditions.
    `warnings` then says what is amiss with the machine.
    """

    def __init__(self, sweep: Sweep, folder: Path) -> None:
        self.sweep = sweep
        self.folder = folder
        devices = tuple(dict.fromkeys(point.device for point in sweep.points))
        self._pool = Pool(sweep.effort.processes, sweep.implementations, devices)
        self.warnings: list[str] = []
        self._records: dict[Point, list[Record]] = {}
        self._tables: dict[Point, pd.DataFrame] = {}
        self._busy_s = 0.0
        self._opened_s = self._measured_s = time.monotonic()

    def __enter__(self) -> Self:
        try:
            seen = preflight.look()
            self._environment = machine.observe(self._check(), self._plan(), dataclasses.asdict(seen))
            self._take_up()
            threads = max(point.threads for point in self.sweep.points)
            self.warnings = preflight.warnings(seen, threads, machine.physical_cores())
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all workers."""
        self._pool.close()

    @property
    def busy_share(self) -> float:
        """The share of the time since start-up that was spent in calls that measure, warm up or compile."""
        return self._busy_s / max(self._measured_s - self._opened_s - self._pool.start_up_s, 1e-9)

    def measure(self, point: Point) -> list[Record]:
        """Measure what is missing of a point, and return all its records, earlier ones too.

        Each process's records are in the journal, and the point's rows in results.csv, before this returns.
        """
        while missing := self._missing(point):
            self._visit(point, missing)
        self._tables[point] = summarise(self._of(point), self.sweep.baseline)
        table.save(self.results(), self.folder)
        self._measured_s = time.monotonic()
        return self._of(point)

    def results(self) -> pd.DataFrame:
        """Return the table of what the run holds so far."""
        return pd.concat(self._tables.values(), ignore_index=True)

    def rows(self, point: Point) -> pd.DataFrame:
        """Return the table of a point that was measured."""
        return self._tables[point]

    @property
    def has_results(self) -> bool:
        """Whether there is anything to show."""
        return bool(self._tables)

    def _check(self) -> dict[str, Any]:
        """Return what torch says of the machine, after every implementation was found by a worker."""
        try:
            worker = self._pool.worker(self.sweep.points[0], 0)
            answer = worker.ask({"request": "check", "implementations": self.sweep.implementations}, CHECK_S)
        except Died as death:
            raise WrongRequest(f"no worker process could be started: {death.detail}") from None
        if answer["objection"]:
            raise WrongRequest(answer["objection"])
        facts: dict[str, Any] = answer["facts"]
        return facts

    def _plan(self) -> dict[str, Any]:
        sweep = self.sweep
        return {"sweep": sweep.name, "baseline": sweep.baseline, "effort": dataclasses.asdict(sweep.effort)}

    def _take_up(self) -> None:
        """Make the folder, or go on with what it holds."""
        known = environment.load(self.folder)
        if known and known.env_id != self._environment.env_id:
            differing = "; ".join(environment.differences(known, self._environment))
            raise WrongRequest(f"{self.folder} was measured under other conditions ({differing}); use another folder")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise WrongRequest(f"the run folder {self.folder} can't be made: {error.strerror}") from None
        environment.save(self._environment, self.folder)
        journal.repair(self.folder)
        for record in journal.read(self.folder):
            self._records.setdefault(record.case.point, []).append(record)
        for point in self._records:
            self._tables[point] = summarise(self._of(point), self.sweep.baseline)

    def _of(self, point: Point) -> list[Record]:
        return self._records.get(point, [])

    def _missing(self, point: Point) -> list[str]:
        """Return the implementations that lack a process; one that failed in any process is not tried again."""
        ended = Counter(record.case.implementation for record in self._of(point))
        failed = {record.case.implementation for record in self._of(point) if record.status != "ok"}
        needed = self.sweep.effort.processes
        return [name for name in self.sweep.implementations if name not in failed and ended[name] < needed]

    def _visit(self, point: Point, missing: Sequence[str]) -> None:
        """Measure a point in one more process; a case that takes the process with it is left out of the next try."""
        number = 1 + max((record.process for record in self._of(point)), default=-1)
        started = datetime.now(UTC).isoformat(timespec="seconds")
        left, records = self._beside_baseline(point, missing), []
        while left:
            answer = self._ask(point, number, left)
            if isinstance(answer, Died):
                culprits = [answer.implementation] if answer.implementation in left else [*left]
                for culprit in culprits:
                    left.remove(culprit)
                    records.append(self._record(Case(point, culprit), number, started, answer.status, answer.detail))
                continue
            self._busy_s += answer["busy_s"]
            if self._is_thorough(point, left) and self.sweep.effort.check_memory:
                self._check_memory(point, answer["outcomes"])
            records += [
                self._record(Case(point, name), number, started, **outcome)
                for name, outcome in answer["outcomes"].items()
            ]
            break
        self._keep(point, records)

    def _beside_baseline(self, point: Point, missing: Sequence[str]) -> list[str]:
        """Return what a visit measures: nothing alone, but beside the baseline, unless that one failed."""
        baseline = self.sweep.baseline
        failed = any(record.case.implementation == baseline and record.status != "ok" for record in self._of(point))
        return [*missing] if failed or baseline in missing else [baseline, *missing]

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
        effort = self.sweep.effort
        budget_s = effort.budget_s / effort.processes
        return {
            "request": "visit",
            "point": dataclasses.asdict(point),
            "implementations": implementations,
            "baseline": self.sweep.baseline,
            "limits": {"target": effort.target, "budget_s": budget_s, "processes": effort.processes},
            "seed": random.SystemRandom().randrange(1 << 32),
            "thorough": self._is_thorough(point, implementations),
        }

    def _is_thorough(self, point: Point, implementations: Sequence[str]) -> bool:
        """Return whether a visit meets an implementation for the first time at the point."""
        return not {record.case.implementation for record in self._of(point)}.issuperset(implementations)

    def _record(
        self, case: Case, number: int, started: str, status: str, detail: str, found: dict[str, Any] | None = None
    ) -> Record:
        here = self._environment
        origin = Origin(
            env_id=here.env_id,
            device_name=here.device_name(case.point.device),
            torch_version=here.identity["torch"],
            commit=here.context["commit"],
            started_at=started,
        )
        values = dict(found or {})
        slots = Slots.from_json(values.pop("slots")) if "slots" in values else Slots()
        return Record(case, number, status, origin, detail, slots, **values)

    def _keep(self, point: Point, records: list[Record]) -> None:
        order = {name: place for place, name in enumerate(self.sweep.implementations)}
        records = sorted(records, key=lambda record: order[record.case.implementation])
        records = [dataclasses.replace(record, visit_size=len(records)) for record in records]
        journal.append(self.folder, records)
        self._records.setdefault(point, []).extend(records)


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
