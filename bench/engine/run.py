"""A run: worker processes measure every point of a sweep, one at a time, and each result is stored at once."""

import dataclasses
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

from bench.analyse.forecast import LEAST_RACE_S
from bench.analyse.rows import grouped
from bench.analyse.standing import Answer
from bench.analyse.summary import Summary
from bench.engine import admission
from bench.engine.member import Member
from bench.engine.pool import Pool
from bench.engine.race import Answered, Race
from bench.engine.records import Records
from bench.engine.replicate import Replicate, now
from bench.engine.run_folder import RunFolder
from bench.engine.schedule import equal_shares
from bench.engine.worker import unheard
from bench.machine import facts, git, monotonic, nvml, quiet
from bench.plan.case import Case, Point
from bench.plan.device import HOST
from bench.plan.grid import without_columns
from bench.plan.sweep import Sweep, load_sweep
from bench.sampling.rounds import Length
from bench.store import environment
from bench.store import plan as stored
from bench.store.environment import Environment
from bench.store.record import Origin, Record

MOST_DEATHS = 2
"""The deaths of a case's process after which it is not tried again: one may have come from outside."""

_without_tokens = partial(without_columns, columns=("num_tokens", "image_size"))
"""What points share that differ in the tokens alone, and the image from which tokens follow."""

Heard = Callable[[Point, int, str, str], None]
"""`heard(point, process, implementation, stage)` is called for every event from a worker."""


class Run:
    """A measurement of a sweep into a run folder; it is a context manager, inside which points are measured.

    Entering it raises WrongRequest if the sweep has more threads than there are cores, if the folder can't be written
    or another process writes into it, or if it has another sweep or results that were measured under other conditions.
    Then `records` has the results so far, and `warnings` lists problems of the machine and repairs of the folder.
    With `extend` the sweep may add to the folder's own.
    `servers` is the number of servers that fork processes; by default, one for each replicate of a point.
    With `retry_failed` all cases that failed in an earlier session are tried again; without it only those that are not
    known to be the cause of their failure.
    With `needs_all` entering also raises WrongRequest if an implementation can't be imported; without it only its cases
    end. `pools` are those of its processes, the baseline's first; without them it makes its own. With `frontier` a case
    is skipped if the same one with fewer tokens ran out of memory.
    `heard` is called for every event from a worker; its implementation is "" if none is running.
    """

    def __init__(
        self,
        sweep: Sweep,
        folder: Path,
        servers: int | None = None,
        *,
        extend: bool = False,
        retry_failed: bool = False,
        needs_all: bool = False,
        pools: Sequence[Pool] = (),
        frontier: bool = True,
    ) -> None:
        self.sweep = sweep
        self._has_frontier = frontier
        self.folder = folder
        self.retry_failed = retry_failed
        self.heard: Heard = unheard
        self._pools = pools or [Pool.of(sweep, servers)]
        self._pool = self._pools[0]
        self._needed = sweep.implementations if needs_all else ()
        self.run_folder = RunFolder(sweep, folder, extend=extend)
        self.deaths = Deaths()
        self.needs_both = False
        self._seeds: dict[Point, int] = {}
        self._places = {point: place for place, point in enumerate(sweep.points)}
        self._last_uses = {(point.allocator, point.threads): point for point in sweep.points}  # of settings of a server
        self._shapes = grouped(sweep.points, _without_tokens)
        self.warnings: list[str] = []
        self._begin_s = monotonic.now_s()

    def __enter__(self) -> Self:
        try:
            admission.check_threads(self.sweep)
            if self._pool.python is None:
                admission.check_devices(self.sweep)
            self.run_folder.prepare()
            if self.sweep.effort.race:
                self._begin_s -= self.summary.measured_s()
            self.warnings = [*self.run_folder.notices, *self._open()]
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all workers and unlock the folder."""
        for pool in self._pools:
            pool.close()
        self.run_folder.close()

    def _open(self) -> list[str]:
        """Open the folder for what this machine is and the state in which it was seen, and return warnings.

        A run that has nothing to do, or too little time left for it, starts no server and measures nothing; it must be
        of this machine all the same.
        """
        before = environment.load(self.folder)
        if before and self._has_nothing_to_do():
            self._begin_s = monotonic.now_s() - self.sweep.effort.seconds(len(self.sweep.points))
            self.run_folder.open(dataclasses.replace(before, identity={**before.identity, **facts.of_machine()}))
            return []
        self._pool.settle()
        state = quiet.watch()
        self.run_folder.open(self._observed(dataclasses.asdict(state)))
        threads = max(point.threads for point in self.sweep.points)
        times_the_host = any(point.timing == HOST for point in self.sweep.points)
        return [
            *(quiet.warnings(state, threads, facts.physical_cores()) if times_the_host else ()),
            *nvml.warnings(self._gpus),
        ]

    @property
    def _gpus(self) -> list[str]:
        return [*dict.fromkeys(point.device for point in self.sweep.points if not point.kind.has_cores)]

    def late_warnings(self) -> list[str]:
        """Return what is seen at the end of the run that disturbed it: another process on one of its GPUs."""
        return nvml.late_warnings(self._gpus)

    def _observed(self, state: dict[str, Any]) -> Environment:
        """Return the environment of this machine in a state; raises WrongRequest if nothing can be measured here."""
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
        """Return who is named at a point so far, and who is measured on until that can cost `bound` at most."""
        return self.summary.answer(point, bound)

    def renew(self) -> None:
        """End all servers, so that the next replicate of a point comes from a fresh one."""
        for pool in self._pools:
            pool.renew()

    def finished(self) -> list[Point]:
        """Return the points that are completely measured; in a race, those that have an answer."""
        return [point for point in self.sweep.points if not self.missing(point)]

    def measured_cases(self) -> int:
        """Return the number of cases that have a record of at least one process."""
        names = {*self.sweep.implementations}
        return sum(
            len({record.case.implementation for record in self.records.of(point)} & names)
            for point in self.sweep.points
        )

    def leave_out(self, point: Point, processes: int) -> None:
        """Write a record for each new case that can't fit into the free memory, or ran out of it with fewer tokens."""
        missing = self.missing(point, processes)
        self._dismiss(point)
        new = {name: self.sweep.computed_by(name) for name in missing if self.records.is_new(Case(point, name))}
        too_large = admission.too_large(point, [*new.values()], facts.available_bytes()) | self._frontier(point)
        reasons = {name: too_large[computed_by] for name, computed_by in new.items() if computed_by in too_large}
        number, origin = self.records.next_process(point), Origin.of(self.environment, point.device, now())
        cases = {Case(point, name): reason for name, reason in reasons.items()}
        self.records.keep([Record(case, number, "skipped", origin, reason) for case, reason in cases.items()])

    def _frontier(self, point: Point) -> dict[str, str]:
        """Return the implementations that ran out of memory at the same point with fewer tokens, each with a reason."""
        if not self._has_frontier:
            return {}
        shape = [each for each in self._shapes[_without_tokens(point)] if each.num_tokens < point.num_tokens]
        by_tokens = sorted(shape, key=lambda each: each.num_tokens, reverse=True)
        reached = {name: each.num_tokens for each in by_tokens for name in self.records.out_of_memory(each)}
        return {name: f"out of memory at N = {tokens}; --no-frontier tries it" for name, tokens in reached.items()}

    @property
    def environment(self) -> Environment:
        """The environment in which the run measures."""
        return self.run_folder.here

    def measured(self, points: Sequence[Point] = (), answered: Answered = unheard) -> Iterator[Point]:
        """Measure points, all of the sweep without any, and yield each when nothing more is measured at it.

        It follows the schedule of the sweep's effort. `answered` is called after each answer in a race. Each process's
        records are in the journal at once, and results.csv is written at the end. Raises CannotWrite if that fails.
        """
        points, effort = points or self.sweep.points, self.sweep.effort
        if effort.race:
            yield from Race(self, points, self.end_s(len(points)), answered).measured()
        else:
            yield from equal_shares(self, points)
        self.run_folder.tabulate()

    def end_s(self, points: int) -> float:
        """Return the time of the monotonic clock at which a race over so many points ends.

        What was measured in earlier sessions counts.
        """
        return self._begin_s + self.sweep.effort.seconds(points)

    @property
    def records(self) -> Records:
        """The records of all points so far, and the rows that follow from them."""
        return self.run_folder.records

    @property
    def summary(self) -> Summary:
        """What the samples of all points say so far."""
        return self.records.summary

    def missing(self, point: Point, processes: int | None = None) -> list[str]:
        """Return what needs more processes at a point; in a race, without what is far behind in the first of them.

        `processes` is the number to reach, if not the sweep's.
        """
        effort = self.sweep.effort
        missing = self.records.missing(point, processes or effort.processes, retry_failed=self.retry_failed)
        behind = self.summary.behind(point) if missing and effort.race else ()
        return [name for name in missing if name not in behind]

    def end_unneeded(self, point: Point) -> None:
        """End the servers of settings that neither this point of the sweep has nor a later one."""
        place = self._places[point]
        for pool in self._pools:
            pool.keep([each for each in self._last_uses.values() if self._places[each] >= place])

    def replicate(self, point: Point, names: Sequence[str], length: Length, *, with_baseline: bool = True) -> Replicate:
        """Measure implementations at a point in one more replicate, beside the baseline or without it.

        A baseline that failed is not measured again.
        """
        number = self.records.next_process(point)
        self._dismiss(point)
        members = [self.member(Case(point, name)) for name in self._group(point, names, with_baseline)]
        baseline = next((each for each in members if each.case.implementation == self.sweep.baseline), None)
        heard = partial(self.heard, point, number)
        heard("", "start")
        replicate = Replicate(members, [baseline] if baseline else [], length, self.seed(point), number, heard=heard)
        replicate.measure(self.sweep.effort.timeout_s, together=self.needs_both)
        self.deaths.count(members)
        # if the baseline is tried again, nothing has a ratio yet, and all are measured again with it
        if baseline is None or not (baseline.lacks_memory or self.deaths.allow(baseline)):
            self.keep(members, number, replicate)
        return replicate

    def _dismiss(self, point: Point) -> None:
        """End the judges of other points, which have memory that this one may need."""
        for pool in self._pools:
            pool.dismiss(keep=point)

    def _group(self, point: Point, missing: Sequence[str], with_baseline: bool) -> list[str]:
        """Return the implementations of the next replicate.

        A case that ran out of memory next to others is measured with the baseline only.
        """
        baseline, alone = self.sweep.baseline, self.deaths.alone
        others = [name for name in missing if name != baseline]
        is_tight = Case(point, baseline) in alone
        group = [name for name in others if is_tight or Case(point, name) in alone][:1] or missing
        has_failed = baseline in self.records.failed(point) - {*missing}
        is_beside = with_baseline and baseline in self.sweep.implementations and baseline not in group
        return [baseline, *group] if is_beside and not has_failed else [*group]

    def member(self, case: Case) -> Member:
        """Return a case to be measured in a replicate."""
        thorough, implementation = self.records.is_new(case), self.sweep.computed_by(case.implementation)
        allowed = self.sweep.effort.allow_error
        return Member(case, self._pool, self.environment.env_id, thorough, implementation, allow_error=allowed)

    def seed(self, point: Point) -> int:
        """Return the seed of the point's weights and inputs in this session."""
        return self._seeds.setdefault(point, random.SystemRandom().randrange(1 << 32))

    def keep(self, members: Iterable[Member], number: int, replicate: Replicate) -> None:
        """Write a record of each member that is measured, or that failed and is not tried again."""
        ended = [member for member in members if not member.lacks_memory and not self.deaths.allow(member)]
        self.records.keep([each.record(number, replicate.started, replicate.seed, self.environment) for each in ended])


class Deaths:
    """The deaths of the processes of cases in a session, which decide which cases are tried again, and how.

    `alone` are the cases that are measured without others: they had no memory beside others, or a process was killed
    from outside and may have lacked memory.
    """

    def __init__(self) -> None:
        self._counts: Counter[Case] = Counter()
        self.alone: set[Case] = set()

    def count(self, members: Iterable[Member]) -> None:
        """Count the deaths of members' processes; a result sets the count to 0."""
        for member in members:
            if member.is_ok:
                del self._counts[member.case]
            elif member.death is not None:
                self._counts[member.case] += 1
                if member.death.is_outside and member.pid is not None:  # not that of a judge or of a server
                    self.alone.add(member.case)
            if member.lacks_memory and member.status == "oom":
                self.alone.add(member.case)

    def allow(self, member: Member) -> bool:
        """Return whether a member whose process died is measured again in another replicate."""
        return member.death is not None and self._counts[member.case] < MOST_DEATHS


def run(
    sweep: Sweep | str, folder: str | Path, *, extend: bool = False, retry_failed: bool = False
) -> Iterator[list[Record]]:
    """Measure a sweep into a run folder, yielding the records of each point when it is finished, or its race is.

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
            yield opened.records.of(point)
