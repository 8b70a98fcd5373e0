"""A run folder during a measurement: its records so far, and the new ones."""

import dataclasses
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd

from bench.analyse.summary import Summary, rows
from bench.engine.member import Member
from bench.engine.replicate import Replicate, now
from bench.machine import monotonic
from bench.plan.case import Case, Point
from bench.plan.errors import CannotWrite, WrongRequest, refusing
from bench.plan.sweep import Sweep
from bench.store import environment, files, journal, plan, table
from bench.store.environment import Environment
from bench.store.files import Lock
from bench.store.journal import Entry
from bench.store.record import SESSION, Origin, Record, decode_line, encode_line, latest, reported

SECOND_DEATH = "second death, in a fresh process"
NOT_ITS_OWN = ", not known to be its own fault, so a resumed run tries it again"

LATEST = 64
"""The records that stay in memory after they were read, about those of a point: two callers read them."""

FILES = (environment.ENVIRONMENT, journal.JOURNAL, plan.PLAN, table.RESULTS)

SAVE_S, SAVE_TIMES = 60.0, 50
"""Before the end of a run results.csv waits for so many seconds, and for so many times as long as it takes."""


class RunFolder:
    """The records in a run folder's journal by point, and the tables that follow from them.

    Of records all but the samples stay in memory; `of` reads these from the journal, but for the latest.

    From `prepare` to `close`, which must follow even if `prepare` raises, only this process may write into the folder.
    `notices` lists repairs of the folder.
    With `extend` the sweep may add to the folder's own.
    """

    def __init__(self, sweep: Sweep, folder: Path, *, extend: bool = False) -> None:
        self.sweep = sweep
        self.folder = folder
        self.notices: list[str] = []
        self._extend = extend
        self._lock: Lock | None = None
        self._made: list[Path] = []
        self._journal = journal.Contents(folder / journal.JOURNAL)
        self._file: BinaryIO | None = None
        self._entries: dict[Point, list[Entry]] = {}
        self._unwritten: dict[Entry, Record] = {}
        self._loaded = lru_cache(LATEST)(self._load)
        self._fresh: set[Entry] = set()
        self._is_written = True
        self._due_s = 0.0
        self._summary = Summary(sweep.baseline)
        self._unread: dict[Point, None] = {}  # the points of which the summary lacks records, in the journal's order
        self._is_open = False

    def prepare(self) -> None:
        """Make the folder, or read its content; this needs no worker.

        Raises WrongRequest if it can't be made or written, if another process writes into it, or if it holds another
        sweep or the results of a newer suite.
        """
        with refusing(f"the run folder {self.folder} can't be written"):
            self._make()
            self._take()
            self._journal, notices = journal.repair(self.folder)
            self.notices += notices
            self._plan()
        for entry in self._journal.entries:
            self._entries.setdefault(entry.case.point, []).append(entry)
        self._unread = dict.fromkeys(self._entries)
        made = plan.Made(self._journal.end, table.crc32_of(self.folder))
        self._is_written = not self._entries or plan.made_of(self.folder) == made

    def _make(self) -> None:
        self._made = [path for path in (self.folder, *self.folder.parents) if not path.exists()]
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            is_taken = isinstance(error, FileExistsError | NotADirectoryError)
            reason = "there is a file in its place" if is_taken else error.strerror
            raise WrongRequest(f"the run folder {self.folder} can't be made: {reason}") from None

    def _take(self) -> None:
        """Lock the folder, and check that an existing journal can be written."""
        lock = Lock(self.folder)
        lock.acquire()
        self._lock = lock
        if lock.notice:
            self.notices.append(lock.notice)
        files.clear(self.folder, FILES)
        if (self.folder / journal.JOURNAL).exists():
            os.close(os.open(self.folder / journal.JOURNAL, os.O_RDWR | os.O_APPEND))

    def _plan(self) -> None:
        """Check that the sweep is compatible with the folder's own."""
        own = plan.load(self.folder)
        self._planned = plan.continued(self.sweep, own, self.folder, extend=self._extend)
        if own and not (self.folder / plan.PLAN).exists():
            count, names = len(own.points), ", ".join(own.implementations)
            self.notices.append(
                f"{self.folder} holds no {plan.PLAN}: made from what was measured, {count} points of {names}"
            )

    def close(self) -> None:
        """Write what is not yet in results.csv, and unlock the folder; one that was made here and is empty goes."""
        try:
            if self._is_open and self._lock and not self._is_written:
                with suppress(WrongRequest):  # the journal has everything
                    self.save()
        finally:
            self._release()

    def _release(self) -> None:
        if self._file:
            self._file.close()
            self._file = None
        if self._lock:
            self._lock.release()
            self._lock = None
        with suppress(OSError):  # one that isn't empty stays, and so do those above it
            for path in self._made:
                path.rmdir()
        self._made = []

    def open(self, here: Environment) -> None:
        """Open the folder for new records from this environment, after `prepare`.

        Raises WrongRequest if it has results that were measured under other conditions, or can't be written.
        """
        self.here = here
        with refusing(f"the run folder {self.folder} can't be written"):
            self._admit(environment.load(self.folder))
            plan.save(self._planned, self.folder)
            self._is_open = True

    def _admit(self, stored: Environment | None) -> None:
        """Check that all records come from this environment, and write environment.json."""
        here, entries = self.here, self._journal.entries
        if stored and (differing := "; ".join(environment.differences(stored, here))):
            raise WrongRequest(f"{self.folder} was measured under other conditions ({differing}); use another folder")
        origins = Counter(_origin(entry.line) for entry in entries)
        foreign = [origin for origin in origins if origin.env_id != here.env_id]
        if not stored:
            foreign = [origin for origin in origins if not self._is_from_here(origin)]
        if foreign:
            counts = ", ".join(f"{origins[origin]} of {_description(origin)}" for origin in foreign)
            missing = "" if stored else f" and has no {environment.ENVIRONMENT}"
            raise WrongRequest(
                f"{self.folder} holds records of another environment{missing}: {counts}; "
                f"this is {here.env_id} (torch {here.identity['torch']}); use another folder"
            )
        if stored or not entries:
            environment.save(here, self.folder)
            return
        rebuilt = Environment(here.identity, {}, {**here.context, "rebuilt": True})  # the former state is unknown
        environment.save(rebuilt, self.folder)
        self.notices.append(
            f"{self.folder} had no {environment.ENVIRONMENT}: written again, because all its records come from here"
        )

    def _is_from_here(self, origin: Origin) -> bool:
        names = {self.here.device_name(point.device) for point in self._entries}
        identity = (self.here.env_id, self.here.identity["torch"])
        return (origin.env_id, origin.torch_version) == identity and origin.device_name in names

    def of(self, point: Point) -> list[Record]:
        """Return the valid records of a point, in the order in which they were measured."""
        return [self._loaded(entry) for entry in self.entries(point)]

    def entries(self, point: Point, *, is_kept: bool = False) -> list[Entry]:
        """Return the cases and heads of the valid records of a point, which need no reading.

        With `is_kept` those that the journal has: all but what the disk didn't take.
        """
        entries = self._entries.get(point, [])
        return latest([entry for entry in entries if entry not in self._unwritten] if is_kept else entries)

    def _load(self, entry: Entry) -> Record:
        return self._unwritten[entry] if entry in self._unwritten else journal.load(self._opened(), entry)

    def _opened(self) -> BinaryIO:
        """Return the journal for reading; it stays open, so that a folder that is moved meanwhile can be read."""
        if self._file is None:
            with refusing(f"{self._journal.path} can't be read", CannotWrite):
                self._file = self._journal.path.open("rb")
        return self._file

    def next_process(self, point: Point) -> int:
        """Return the number of the point's next process."""
        return 1 + max((entry.process for entry in self._entries.get(point, [])), default=-1)

    def failed(self, point: Point, *, retry_failed: bool = False) -> set[str]:
        """Return the implementations that failed at a point and are not tried again.

        A failure from an earlier session is tried again with `retry_failed`, or if the case was not its cause.
        """
        return {
            entry.case.implementation
            for entry in self.entries(point)
            if entry.status != "ok" and (entry in self._fresh or (entry.line.own_cause and not retry_failed))
        }

    def out_of_memory(self, point: Point) -> set[str]:
        """Return the implementations that ran out of memory at a point by their own fault."""
        entries = self.entries(point)
        return {entry.case.implementation for entry in entries if entry.status == "oom" and entry.line.own_cause}

    def missing(self, point: Point, processes: int, *, retry_failed: bool = False) -> list[str]:
        """Return what needs more processes at a point, without what failed and is not tried again.

        A process without a result of the baseline gives no ratio, so it doesn't count, unless the baseline failed.
        """
        good: dict[str, set[int]] = {}
        for entry in self.entries(point):
            if entry.status == "ok":
                good.setdefault(entry.case.implementation, set()).add(entry.process)
        failed, baseline = self.failed(point, retry_failed=retry_failed), self.sweep.baseline
        if baseline in self.sweep.implementations and baseline not in failed:
            good = {name: measured & good.get(baseline, set()) for name, measured in good.items()}
        return [name for name in self.sweep.measured if name not in failed and len(good.get(name, ())) < processes]

    def is_new(self, point: Point, implementations: Sequence[str]) -> bool:
        """Return whether one of the implementations has no successful record at the point yet."""
        good = {entry.case.implementation for entry in self.entries(point) if entry.status == "ok"}
        return not good.issuperset(implementations)

    def record(
        self, case: Case, number: int, started: str, status: str, detail: str, metrics: dict[str, Any] | None = None
    ) -> Record:
        """Return the record of a case in one process, from its worker's outcome, without samples.

        If a metric is invalid, the record has the status `error` and keeps the valid metrics.
        """
        origin = Origin.of(self.here, case.point.device, started)
        valid, mistakes = dict[str, Any](), list[str]()
        for name, value in (metrics or {}).items():
            try:
                valid[name] = reported(name, value)
            except ValueError as error:
                mistakes.append(str(error))
        if mistakes:
            status, detail = "error", f"the worker reported an invalid value: {mistakes[0]}"
        session = {name: valid.pop(name) for name in SESSION if name in valid}
        return Record(case, number, status, origin, detail, metrics=valid, **session)

    def leave_out(self, point: Point, status: str, reasons: Mapping[str, str]) -> None:
        """Write a record with a status for each implementation that can't be measured at a point, and its reason."""
        number, started = self.next_process(point), now()
        self.keep(point, [self.record(Case(point, name), number, started, status, reasons[name]) for name in reasons])

    def keep_members(self, members: Sequence[Member], number: int, replicate: Replicate) -> None:
        """Write a record of each member of a replicate at one point."""
        if members:
            self.keep(members[0].case.point, [self._of_member(member, number, replicate) for member in members])

    def _of_member(self, member: Member, number: int, replicate: Replicate) -> Record:
        metrics, detail = {"seed": replicate.seed, "pid": member.pid, **member.metrics}, member.detail
        if member.death is not None:
            metrics.setdefault("own_cause", not member.death.is_outside)
            detail += f" ({SECOND_DEATH}{NOT_ITS_OWN if member.death.is_outside else ''})"
        record = self.record(member.case, number, replicate.started, member.status, detail, metrics)
        if member.torch_version:
            origin = dataclasses.replace(record.origin, torch_version=member.torch_version)
            record = dataclasses.replace(record, origin=origin)
        return dataclasses.replace(record, samples=member.samples) if record.status == "ok" else record

    def keep(self, point: Point, records: list[Record]) -> None:
        """Add the records of a replicate, in the order of the sweep; they are in the journal when this returns.

        Raises CannotWrite if they can't be written; then `rows` alone has them.
        """
        if not records:
            return
        records = [
            dataclasses.replace(record, replicate_size=len(records), samples=record.samples.rounded())
            for record in self._in_order(records)
        ]
        try:
            if self._lock:
                self._lock.check()
            entries = self._journal.append(records)
        except CannotWrite as error:
            lost = {Entry(each.case, decode_line(encode_line(each)), 0, -1, 0): each for each in records}
            self._unwritten |= lost
            self._add(point, lost)
            message = f"{error}; process {records[0].process} of {point.name} is lost"
            has_journal = (self.folder / journal.JOURNAL).exists()
            raise CannotWrite(f"{message}, what was measured before it is kept" if has_journal else message) from None
        self._opened()
        self._add(point, entries)
        self._unread[point] = None
        self._is_written = False

    def _add(self, point: Point, entries: Iterable[Entry]) -> None:
        self._entries.setdefault(point, []).extend(entries)
        self._fresh.update(entries)

    def tabulate(self) -> None:
        """Write results.csv if it is due; raises CannotWrite if it can't be written."""
        if not self._is_written and monotonic.now_s() >= self._due_s:
            self.save()

    def _summarise(self) -> None:
        """Take what is new in the journal into the summary, in the journal's order: sums depend on it."""
        for point in [*self._unread]:
            self._summary.put(self._in_order([self._loaded(entry) for entry in self.entries(point, is_kept=True)]))
            del self._unread[point]

    def save(self) -> None:
        """Write results.csv of what the folder holds so far; raises CannotWrite if it can't be written."""
        began_s = monotonic.now_s()
        results, kept = self.results(), f"; all that was measured is kept in {journal.JOURNAL}"
        with refusing(f"{self.folder / table.RESULTS} can't be written", CannotWrite, kept):
            crc32 = table.save(results, self.folder)
            if (self.folder / plan.PLAN).exists():
                plan.save(self._planned, self.folder, plan.Made(self._journal.end, crc32))
        self._is_written, end_s = True, monotonic.now_s()
        self._due_s = end_s + max(SAVE_S, SAVE_TIMES * (end_s - began_s))

    def _in_order(self, records: Sequence[Record]) -> list[Record]:
        """Return records in the order of the sweep's implementations; those of other implementations come last."""
        order = {name: index for index, name in enumerate(self.sweep.measured)}
        return sorted(records, key=lambda record: order.get(record.case.implementation, len(order)))

    def results(self) -> pd.DataFrame:
        """Return the table of all results; the errors of each point follow from all, so a new record changes all."""
        self._summarise()
        self._summary.lend()
        return table.of_rows([row for point in self._summary for row in self._summary.rows(point)])

    def rows(self, point: Point) -> pd.DataFrame:
        """Return the table of a measured point, what the disk didn't take included.

        Its errors are by the points that were measured so far.
        """
        if self._unwritten:
            return table.of_rows(rows(self._in_order(self.of(point)), self.sweep.baseline))
        self._summarise()
        return table.of_rows(self._summary.rows(point))

    @property
    def summary(self) -> Summary:
        """What all records say that the journal has."""
        self._summarise()
        return self._summary

    @property
    def has_new(self) -> bool:
        """Whether this session has added records."""
        return bool(self._fresh)

    @property
    def has_results(self) -> bool:
        """Whether there are results."""
        return bool(self._journal.entries)


def _origin(line: Any) -> Origin:
    """Return a record's origin without the commit and the time, which differ between records of one folder."""
    return Origin(line.env_id, line.device_name, line.torch_version, commit="", started_at="")


def _description(origin: Origin) -> str:
    return f"{origin.env_id} (torch {origin.torch_version} on {origin.device_name or 'an unnamed device'})"
