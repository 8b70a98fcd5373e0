"""A run folder that is being filled: what it holds so far, and what is added to it."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from bench.analyse.summary import standing, summarise
from bench.plan.case import Case, Point
from bench.plan.errors import WrongRequest
from bench.plan.sweep import Sweep
from bench.store import environment, journal, table
from bench.store.environment import Environment
from bench.store.record import Origin, Record, Slots


class Ledger:
    """The records of a sweep by point, as the folder's journal has them, and the tables that follow from them."""

    def __init__(self, sweep: Sweep, folder: Path) -> None:
        self.sweep = sweep
        self.folder = folder
        self._records: dict[Point, list[Record]] = {}
        self._tables: dict[Point, pd.DataFrame] = {}
        self._fresh: set[tuple[Case, int]] = set()

    def open(self, here: Environment) -> None:
        """Make the folder, or go on with what it holds.

        Raises WrongRequest when it holds results that were measured under other conditions, or can't be made.
        """
        self.here = here
        known = environment.load(self.folder)
        if known and known.env_id != here.env_id:
            differing = "; ".join(environment.differences(known, here))
            raise WrongRequest(f"{self.folder} was measured under other conditions ({differing}); use another folder")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise WrongRequest(f"the run folder {self.folder} can't be made: {error.strerror}") from None
        environment.save(here, self.folder)
        journal.repair(self.folder)
        for record in journal.read(self.folder):
            self._records.setdefault(record.case.point, []).append(record)
        for point in self._records:
            self._tables[point] = self._summary(point)

    def of(self, point: Point) -> list[Record]:
        """Return the records of a point that count, in the order in which they were measured."""
        return standing(self._records.get(point, []))

    def next_process(self, point: Point) -> int:
        """Return the number of the point's next process."""
        return 1 + max((record.process for record in self._records.get(point, [])), default=-1)

    def failed(self, point: Point, *, retry_failed: bool = False) -> set[str]:
        """Return the implementations that failed at a point and are not to be tried again.

        A failure that an earlier session kept is tried again if it has no cause of its own, or with `retry_failed`.
        """
        return {
            record.case.implementation
            for record in self.of(point)
            if record.status != "ok"
            and ((record.case, record.process) in self._fresh or (record.own_cause and not retry_failed))
        }

    def missing(self, point: Point, processes: int, *, retry_failed: bool = False) -> list[str]:
        """Return the implementations that lack a process, without those that failed and are not to be tried again.

        A process in which the baseline is to be measured, and was not, gives no ratio: it counts for none.
        """
        good: dict[str, set[int]] = {}
        for record in self.of(point):
            if record.status == "ok":
                good.setdefault(record.case.implementation, set()).add(record.process)
        failed, baseline = self.failed(point, retry_failed=retry_failed), self.sweep.baseline
        if baseline in self.sweep.implementations and baseline not in failed:
            good = {name: measured & good.get(baseline, set()) for name, measured in good.items()}
        return [
            name for name in self.sweep.implementations if name not in failed and len(good.get(name, ())) < processes
        ]

    def is_new(self, point: Point, implementations: Sequence[str]) -> bool:
        """Return whether one of the implementations has no good record at the point yet."""
        good = {record.case.implementation for record in self.of(point) if record.status == "ok"}
        return not good.issuperset(implementations)

    def record(
        self, case: Case, number: int, started: str, status: str, detail: str, found: dict[str, Any] | None = None
    ) -> Record:
        """Return the record of a case in one process, from what its worker found out."""
        here = self.here
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

    def keep(self, point: Point, records: list[Record]) -> None:
        """Add the records of one visit, in the order of the sweep; they are in the journal when this returns."""
        records = self._in_order(records)
        records = [dataclasses.replace(record, visit_size=len(records)) for record in records]
        journal.append(self.folder, records)
        self._records.setdefault(point, []).extend(records)
        self._fresh.update((record.case, record.process) for record in records)

    def tabulate(self, point: Point) -> None:
        """Bring the point's rows in results.csv up to date."""
        self._tables[point] = self._summary(point)
        table.save(self.results(), self.folder)

    def _summary(self, point: Point) -> pd.DataFrame:
        return summarise(self._in_order(self.of(point)), self.sweep.baseline)

    def _in_order(self, records: Sequence[Record]) -> list[Record]:
        """Return records in the order of the sweep's implementations, those of others at the end."""
        order = {name: place for place, name in enumerate(self.sweep.implementations)}
        return sorted(records, key=lambda record: order.get(record.case.implementation, len(order)))

    def results(self) -> pd.DataFrame:
        """Return the table of what the folder holds so far."""
        return pd.concat(self._tables.values(), ignore_index=True)

    def rows(self, point: Point) -> pd.DataFrame:
        """Return the table of a point that was measured."""
        return self._tables[point]

    @property
    def has_results(self) -> bool:
        """Whether there is anything to show."""
        return bool(self._tables)
