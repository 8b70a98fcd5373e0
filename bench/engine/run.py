"""A run: a folder in which a sweep is measured, its records so far, and the missing ones."""

import dataclasses
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, Self

from bench.analyse.analysed_run import AnalysedRun, in_order
from bench.analyse.rows import Row, grouped
from bench.analyse.standing import Answer
from bench.analyse.summary import Summary
from bench.engine import admission
from bench.engine.member import Member
from bench.engine.pool import Pool
from bench.engine.race import Answered, Race, work
from bench.engine.replicate import Replicate, now
from bench.engine.schedule import equal_shares
from bench.engine.worker import unheard
from bench.machine import facts, git, monotonic, nvml, quiet
from bench.plan.case import CONTROL, Case, Point
from bench.plan.device import HOST
from bench.plan.errors import CannotWrite, WrongRequest, refusing
from bench.plan.grid import is_like
from bench.plan.sweep import Sweep, load_sweep
from bench.sampling.rounds import Length
from bench.store import environment, files, journal, table
from bench.store import plan as stored
from bench.store.environment import Environment
from bench.store.files import Lock
from bench.store.journal import latest
from bench.store.record import Origin, Record

LEAST_RACE_S = 30.0
"""A race with fewer seconds left isn't resumed: starting its servers and one replicate take about as long."""

PAIR = 2
"""The size of a replicate in which a member that runs out of memory doesn't fit at all."""

MOST_DEATHS = 2
"""The deaths of a case's process after which it isn't tried again; a single one may have come from outside."""

Heard = Callable[[Point, int, str, str], None]
"""`heard(point, process, implementation, stage)` is called for every event from a worker."""


class Run:
    """A measurement of a sweep into a run folder, as a context manager inside which points are measured.

    Inside it only this process may write into the folder. Entering it raises WrongRequest if the sweep has more threads
    than there are cores, if another process writes into the folder, or if the folder has another sweep or was measured
    under other conditions; CannotWrite if the folder can't be written. `warnings` lists problems of the machine and
    faults of the folder.
    With `extend` the sweep may add to the folder's own. With `retry_failed` all cases that failed in an earlier session
    are tried again; without it only those that may not be the cause of their failure.
    With `needs_all` entering also raises WrongRequest if an implementation can't be imported; without it only its cases
    fail. `pools` have its processes, the baseline's first; without them it makes its own.
    `heard` is called for every event from a worker; its implementation is "" if none is running.
    """

    needs_both = False
    """Whether a replicate counts only with all of its members."""

    def __init__(
        self,
        sweep: Sweep,
        folder: Path,
        *,
        extend: bool = False,
        retry_failed: bool = False,
        needs_all: bool = False,
        pools: Sequence[Pool] = (),
    ) -> None:
        self.sweep = sweep
        self.folder = folder
        self.retry_failed = retry_failed
        self.heard: Heard = unheard
        self.warnings: list[str] = []
        self.contents = journal.Contents(folder / journal.JOURNAL)
        self.summary = Summary(sweep.baseline)
        self.retries = Retries()
        self._extend = extend
        self._needed = sweep.implementations if needs_all else ()
        self._pools = pools or [Pool.of(sweep)]
        self._pool = self._pools[0]
        self._lock = Lock(folder)
        self._stack = ExitStack()  # holds the lock
        self._by_point: dict[Point, list[Record]] = {}
        self._fresh: set[tuple[Case, int]] = set()  # of this session
        self._saved: AnalysedRun | None = None
        self._tabulated: int | None = None  # the number of records in results.csv, None until the folder is open
        self._seeds: dict[Point, int] = {}
        self._begin_s = monotonic.now_s()

    def __enter__(self) -> Self:
        try:
            admission.check_threads(self.sweep)
            if self._pool.python is None:
                admission.check_devices(self.sweep)
            planned = self._read()
            if self.sweep.effort.race:
                self._begin_s -= self.summary.measured_s()
            self.environment, warnings = self.observe()
            self._open(planned)
            self.warnings = [*self.contents.notices(), *warnings]
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all workers, bring results.csv up to date, and unlock the folder."""
        for pool in self._pools:
            pool.close()
        with self._stack, suppress(WrongRequest):  # the journal has everything anyway
            self.tabulate()

    def _read(self) -> Sweep:
        """Lock the folder, read its journal, and return its new plan; this needs no worker."""
        self._stack.enter_context(self._lock)
        path = self.contents.path
        if path.exists():
            with refusing(f"the run folder {self.folder} can't be written", CannotWrite):
                os.close(os.open(path, os.O_RDWR | os.O_APPEND))
        self.contents = journal.scan(self.folder)
        planned = stored.continued(self.sweep, stored.of(self.contents), self.folder, extend=self._extend)
        self._by_point = grouped(self.contents.records, lambda record: record.case.point)
        for records in self._by_point.values():
            self.summary.put(in_order(records, self.sweep))
        return planned

    def observe(self) -> tuple[Environment, list[str]]:
        """Return this machine's environment with its current state, and warnings.

        A run without anything left to do, or without time for it, starts no server and measures nothing, but it must
        come from this machine.
        """
        before = environment.load(self.folder)
        if before and self._has_nothing_to_do():
            self._begin_s = monotonic.now_s() - self.sweep.effort.seconds(len(self.sweep.points))
            return dataclasses.replace(before, identity={**before.identity, **facts.of_machine()}), []
        self._pool.settle()
        state = quiet.watch()
        here = self._observed(dataclasses.asdict(state))
        threads = max(point.threads for point in self.sweep.points)
        times_the_host = any(point.timing == HOST for point in self.sweep.points)
        return here, [
            *(quiet.warnings(state, threads, facts.physical_cores()) if times_the_host else ()),
            *nvml.warnings(self._gpus),
        ]

    def _open(self, planned: Sweep) -> None:
        """Write the plan and the environment; raises WrongRequest for records from another environment."""
        self._check_origin()
        with refusing(f"the run folder {self.folder} can't be written", CannotWrite):
            environment.save(self.environment, self.folder)
            stored.keep(planned, self.contents)
        if self.folder in self._lock.made:
            files.hide(self.folder)
        self._tabulated = 0

    def _check_origin(self) -> None:
        """Raise WrongRequest if the folder's records come from another environment than this one."""
        here, before = self.environment, environment.load(self.folder)
        if before and (differing := "; ".join(environment.differences(before, here))):
            raise WrongRequest(f"{self.folder} was measured in different conditions ({differing}); use another folder")
        elsewhere = Counter(record.origin.env_id for record in self.contents.records)
        del elsewhere[here.env_id]
        if elsewhere:
            counts = ", ".join(f"{count} of {env_id}" for env_id, count in elsewhere.items())
            raise WrongRequest(
                f"{self.folder} has records of another environment ({counts}), but this is {here.env_id}; "
                "use another folder"
            )

    @property
    def _gpus(self) -> list[str]:
        return [*dict.fromkeys(point.device for point in self.sweep.points if not point.kind.has_cores)]

    def late_warnings(self) -> list[str]:
        """Return warnings at the end of the run about other processes on its GPUs."""
        return nvml.late_warnings(self._gpus)

    def _observed(self, state: dict[str, Any]) -> Environment:
        """Return this machine's environment with a state; raises WrongRequest if nothing can be measured here."""
        checked = self._pool.check(self.sweep.points, self._needed)
        named: dict[str, Any] = {}
        if checked.modules:
            named["modules"] = {name: git.described(*module) for name, module in checked.modules.items()}
        here = facts.observe(checked.facts, {"sweep": self.sweep.name, **named}, state)
        return dataclasses.replace(here, runtimes=checked.runtimes)

    def _has_nothing_to_do(self) -> bool:
        points, effort = self.sweep.points, self.sweep.effort
        if len(self.finished()) < len(points):
            return False
        is_over = not effort.race or self.end_s(len(points)) - monotonic.now_s() < LEAST_RACE_S
        return is_over or all(self.answer(point, effort.bound).is_good for point in points)

    def answer(self, point: Point, bound: float) -> Answer:
        """Return the answer at a point so far, with the candidates until its bound is at most `bound`."""
        return self.summary.answer(point, bound)

    def finished(self) -> list[Point]:
        """Return the completely measured points; in a race, those that have an answer."""
        return [point for point in self.sweep.points if not self.missing(point)]

    def measured_cases(self) -> int:
        """Return the number of cases that have a record of at least one process."""
        names = {*self.sweep.implementations}
        return sum(
            len({record.case.implementation for record in self.records(point)} & names) for point in self.sweep.points
        )

    def leave_out(self, point: Point, processes: int) -> None:
        """Write a record for each new case that can't fit into the free memory or ran out of it with fewer tokens."""
        missing = self.missing(point, processes)
        self._dismiss(point)
        new = {name: self.sweep.computed_by(name) for name in missing if self.is_new(Case(point, name))}
        too_large = admission.too_large(point, [*new.values()], facts.available_bytes()) | self._ran_out(point)
        reasons = {name: too_large[computed_by] for name, computed_by in new.items() if computed_by in too_large}
        number, origin = self.next_process(point), Origin.of(self.environment, point.device, now())
        self.write([Record(Case(point, name), number, "skipped", origin, why) for name, why in reasons.items()])

    def _ran_out(self, point: Point) -> dict[str, str]:
        """Return the implementations that ran out of memory at the same point with fewer tokens, with reasons."""
        short = [at for at, records in self._by_point.items() if any(each.status == "oom" for each in records)]
        fewer = [at for at in short if at.num_tokens < point.num_tokens and is_like(at, point)]
        return {
            record.case.implementation: f"out of memory at N = {at.num_tokens}"
            for at in sorted(fewer, key=attrgetter("num_tokens"), reverse=True)
            for record in self.records(at)
            if record.status == "oom" and record.own_cause
        }

    def measured(self, points: Sequence[Point] = (), answered: Answered = unheard) -> Iterator[Point]:
        """Measure points (by default the whole sweep), and yield each when it is done.

        The sweep's effort determines the schedule. `answered` is called after each answer in a race. Records are in the
        journal after each process, and results.csv is written at the end. Raises CannotWrite if that fails.
        """
        points, effort = points or self.sweep.points, self.sweep.effort
        if effort.race:
            yield from Race(self, points, self.end_s(len(points)), answered).measured()
        else:
            yield from equal_shares(self, points)
        self.tabulate()

    def end_s(self, points: int) -> float:
        """Return the end of a race over this many points on the monotonic clock.

        Earlier sessions count.
        """
        return self._begin_s + self.sweep.effort.seconds(points)

    def longer_s(self) -> float:
        """Return the seconds of a race, earlier sessions included, that can reach each point or double the time.

        A point that waits is expected to take as long as the measured ones for its work.
        """
        share = sum(map(work, self._by_point)) / sum(map(work, {*self.sweep.points, *self._by_point}))
        return LEAST_RACE_S + max(2.0, 1 / share) * self.summary.measured_s()

    def records(self, point: Point) -> list[Record]:
        """Return the valid records of a point in the order of their measurement."""
        return latest(self._by_point.get(point, []))

    def next_process(self, point: Point) -> int:
        """Return the number of the point's next process."""
        return 1 + max((record.process for record in self._by_point.get(point, [])), default=-1)

    def is_new(self, case: Case) -> bool:
        """Return whether a case has no successful record yet."""
        return not any(record.case == case and record.status == "ok" for record in self.records(case.point))

    def failed(self, point: Point) -> set[str]:
        """Return the implementations that failed at a point and are not tried again."""
        return {
            record.case.implementation
            for record in self.records(point)
            if record.status != "ok"
            and ((record.case, record.process) in self._fresh or (record.own_cause and not self.retry_failed))
        }

    def missing(self, point: Point, processes: int | None = None) -> list[str]:
        """Return the names that need more processes at a point; in a race, without those far behind in the first.

        `processes` is the number to reach, the sweep's by default. A process without a result of the baseline gives no
        ratio, so it doesn't count unless the baseline failed.
        """
        sweep, failed = self.sweep, self.failed(point)
        good: dict[str, set[int]] = {}
        for record in self.records(point):
            if record.status == "ok":
                good.setdefault(record.case.implementation, set()).add(record.process)
        if sweep.baseline in sweep.implementations and sweep.baseline not in failed:
            good = {name: measured & good.get(sweep.baseline, set()) for name, measured in good.items()}
        wanted = processes or sweep.effort.processes
        missing = [name for name in sweep.measured if name not in failed and len(good.get(name, ())) < wanted]
        behind = self.summary.behind(point) if missing and sweep.effort.race else ()
        return [name for name in missing if name not in behind]

    def rows(self, point: Point) -> list[Row]:
        """Return the rows of a measured point's implementations, with errors from all points so far."""
        return [row for row in self.summary.rows(point) if row["implementation"] != CONTROL]

    @property
    def has_new(self) -> bool:
        """Whether this session has added records."""
        return bool(self._fresh)

    @property
    def saved(self) -> AnalysedRun:
        """The run for pages and tables, without reading its records a second time."""
        if self._saved is None:
            self._saved = AnalysedRun(self.folder, contents=self.contents, summary=self.summary)
        return self._saved

    def tabulate(self) -> None:
        """Write results.csv unless it is up to date; raises CannotWrite if it can't be written."""
        count = len(self.contents.records)
        if self._tabulated is None or self._tabulated >= count:
            return
        kept = f"; all results are kept in {journal.JOURNAL}"
        with refusing(f"{self.folder / table.RESULTS} can't be written", CannotWrite, kept):
            table.save(self.saved.results, self.folder)
        self._tabulated = count

    def write(self, records: Sequence[Record]) -> None:
        """Add the records of a replicate at one point; they are in the journal when this returns.

        Raises CannotWrite if they can't be written.
        """
        if not records:
            return
        point = records[0].case.point
        records = [
            dataclasses.replace(record, samples=record.samples.rounded()) for record in in_order(records, self.sweep)
        ]
        try:
            self.contents.append(records)
        except CannotWrite as error:
            message = f"{error}; process {records[0].process} of {point.name} is lost"
            has_journal = self.contents.path.exists()
            raise CannotWrite(f"{message}, but earlier results are kept" if has_journal else message) from None
        self._fresh.update((record.case, record.process) for record in records)
        own = self._by_point.setdefault(point, [])
        own += records
        self.summary.put(in_order(own, self.sweep))
        self._saved = None  # each point's errors depend on all records

    def end_unneeded(self, point: Point) -> None:
        """End the servers whose settings neither this point nor a later one of the sweep has."""
        points = self.sweep.points
        for pool in self._pools:
            pool.keep(points[points.index(point) :])

    def replicate(self, point: Point, names: Sequence[str], length: Length, *, with_baseline: bool = True) -> Replicate:
        """Measure implementations at a point in one more replicate, with or without the baseline.

        A baseline that failed is not measured again.
        """
        number = self.next_process(point)
        self._dismiss(point)
        members = [self.member(Case(point, name)) for name in self._group(point, names, with_baseline)]
        baseline = next((each for each in members if each.case.implementation == self.sweep.baseline), None)
        heard = partial(self.heard, point, number)
        heard("", "start")
        replicate = Replicate(members, baseline, length, self.seed(point), number, heard=heard)
        replicate.measure(self.sweep.effort.timeout_s, together=self.needs_both)
        again = self.retries.take(members)
        # without the baseline (in a duel, either side) there are no ratios, so all members are measured again
        if baseline not in again and not (self.needs_both and again):
            ended = [each for each in members if each not in again]
            self.write([each.record(number, replicate.started, replicate.seed, self.environment) for each in ended])
        return replicate

    def _dismiss(self, point: Point) -> None:
        """End the judges of other points, because this one may need their memory."""
        for pool in self._pools:
            pool.dismiss(keep=point)

    def _group(self, point: Point, missing: Sequence[str], with_baseline: bool) -> list[str]:
        """Return the implementations of the next replicate: the baseline with all others, or one if memory is short.

        Memory is short for one that ran out of it beside others, or for all if the baseline did or if they may not fit
        together. Without the baseline a replicate is then any two.
        """
        baseline, alone = self.sweep.baseline, self.retries.alone
        others = [name for name in missing if name != baseline]
        computed = [self.sweep.computed_by(name) for name in (baseline, *others)]
        is_tight = Case(point, baseline) in alone or not admission.fit(point, computed, facts.available_bytes())
        short = [name for name in others if is_tight or Case(point, name) in alone]
        if short and not with_baseline:
            return random.sample(missing, min(PAIR, len(missing)))  # else one of them would never get its turn
        group = short[:1] or missing
        has_failed = baseline in self.failed(point) - {*missing}
        is_beside = with_baseline and baseline in self.sweep.implementations and baseline not in group
        return [baseline, *group] if is_beside and not has_failed else [*group]

    def member(self, case: Case) -> Member:
        """Return a case to be measured in a replicate."""
        thorough, implementation = self.is_new(case), self.sweep.computed_by(case.implementation)
        return Member(case, self._pool, thorough, implementation)

    def seed(self, point: Point) -> int:
        """Return the seed of the point's weights and inputs in this session."""
        return self._seeds.setdefault(point, random.SystemRandom().randrange(1 << 32))


class Retries:
    """The cases that a session measures again: their process died, or they ran out of memory beside others.

    `alone` has the second kind, measured with only the baseline beside them. It includes cases whose process was
    killed from outside, because it may have lacked memory.
    """

    def __init__(self) -> None:
        self._deaths: Counter[Case] = Counter()
        self.alone: set[Case] = set()

    def take(self, members: Sequence[Member]) -> list[Member]:
        """Count the outcomes of a replicate's members, and return the members to measure again.

        A result resets the count of deaths.
        """
        again = []
        for member in members:
            if member.is_ok:
                del self._deaths[member.case]
            if member.death is not None:
                self._deaths[member.case] += 1
                if member.death.is_outside and member.pid is not None:  # unless its process never started
                    self.alone.add(member.case)
            ran_out = member.status == "oom" and len(members) > PAIR
            if ran_out:
                self.alone.add(member.case)
            if ran_out or (member.death is not None and self._deaths[member.case] < MOST_DEATHS):
                again.append(member)
        return again


def run(
    sweep: Sweep | str, folder: str | Path, *, extend: bool = False, retry_failed: bool = False
) -> Iterator[list[Record]]:
    """Measure a sweep into a run folder, and yield the records of each point when it, or the race, is finished.

    `sweep` is a shipped name, a TOML file, or a Sweep.
    An existing folder is resumed: its results are not measured again. It must have the same sweep; with `extend` the
    union of both is measured. With `retry_failed` cases that failed before are tried again.
    """
    folder = Path(folder)
    if isinstance(sweep, str):
        sweep = load_sweep(facts.here(sweep))
    sweep = stored.continued(sweep, stored.load(folder), folder, extend=extend)
    with Run(sweep, folder, extend=extend, retry_failed=retry_failed) as opened:
        for point in opened.measured():
            yield opened.records(point)
