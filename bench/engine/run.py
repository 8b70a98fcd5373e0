"""A run: worker processes measure every point of a sweep, one at a time, and each result is stored at once."""

import dataclasses
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self

from bench.analyse.summary import Summary
from bench.engine import admission
from bench.engine.member import Member
from bench.engine.pool import Pool
from bench.engine.race import Looked, Race
from bench.engine.replicate import Replicate, now
from bench.engine.run_folder import RunFolder
from bench.engine.worker import Died, unheard
from bench.machine import facts, quiet
from bench.plan.case import CONTROL, Case, Point
from bench.plan.errors import WrongRequest
from bench.plan.names import libraries_of, may_have_own_memory
from bench.plan.sweep import Sweep, load_sweep
from bench.sampling.rounds import Length
from bench.store import environment
from bench.store import plan as stored
from bench.store.environment import Environment
from bench.store.record import Record

MOST_DEATHS = 2
"""The deaths of a case's process after which it is not tried again: one may have come from outside."""

LEAST_RACE_S = 30.0
"""A race with fewer seconds left, about the start of its servers and a replicate, does not go on in a new session."""

SECOND_DEATH = "second death, in a fresh process"
NOT_ITS_OWN = ", not known to be its own fault, so a resumed run tries it again"

Heard = Callable[[Point, int, str, str], None]
"""`heard(point, process, implementation, stage)` is called for every event from a worker."""


class Run:
    """A measurement of a sweep into a run folder; it is a context manager, inside which points are measured.

    Entering it raises WrongRequest if the sweep has more threads than there are cores, if the folder can't be written
    or another process writes into it, or if it has another sweep or results that were measured under other conditions.
    Then `run_folder` has the results so far, and `warnings` lists problems of the machine and repairs of the folder.
    With `extend` the sweep may add to the folder's own.
    `servers` is the number of servers that fork processes; by default, one for each replicate of a point.
    With `retry_failed` all cases that failed in an earlier session are tried again; without it only those that are not
    known to be the cause of their failure.
    With `needs_all` entering also raises WrongRequest if an implementation can't be imported; without it only its cases
    end. `python` is the interpreter of another environment that measures, None means this one. `machine_name` is how
    tables call the machine of a new run, if not by its processor. With `frontier` a case is skipped if the same one
    with fewer tokens ran out of memory.
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
        python: str | None = None,
        machine_name: str = "",
        frontier: bool = True,
    ) -> None:
        self.sweep = sweep
        self._machine_name = machine_name
        self._frontier = frontier
        self.folder = folder
        self.retry_failed = retry_failed
        self.heard: Heard = unheard
        is_idle = admission.nothing_fits(sweep, facts.available_bytes())  # then one server identifies the machine
        servers = 1 if is_idle else servers or sweep.effort.processes
        libraries = libraries_of(sweep.points)
        self._pool = Pool(servers, () if is_idle else sweep.implementations, python, libraries)
        self._needed = sweep.implementations if needs_all else ()
        self.run_folder = RunFolder(sweep, folder, extend=extend)
        self._deaths: Counter[Case] = Counter()
        self._alone: set[Case] = set()
        self._apart: set[Point] = set()
        self._seeds: dict[Point, int] = {}
        self._raced: set[Point] = set()
        self.warnings: list[str] = []
        self._begin_s = time.monotonic()

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
        self._pool.close()
        self.run_folder.close()

    def _open(self) -> list[str]:
        """Open the folder for what this machine is and the state in which it was seen, and return warnings.

        A run that has nothing to do starts no server.
        """
        before = environment.load(self.folder)
        if before and self._has_nothing_to_do():
            self.run_folder.open(before)
            return []
        state, python = quiet.watch(), self._pool.python
        try:
            torch_facts, runtimes = self._pool.check(self.sweep.points, self._needed)
        except WrongRequest as error:
            raise WrongRequest(f"--python {python}: {error}" if python else str(error)) from None
        named = {"machine_name": self._machine_name} if self._machine_name else {}
        here = facts.observe(torch_facts, {"sweep": self.sweep.name, **named}, dataclasses.asdict(state))
        self.run_folder.open(dataclasses.replace(here, runtimes=runtimes))
        threads = max(point.threads for point in self.sweep.points)
        missing = admission.huge_pages_missing(self.sweep.points)
        return [
            *([f"{missing}; its cases will be unsupported"] if missing else []),
            *quiet.warnings(state, threads, facts.physical_cores()),
        ]

    def _has_nothing_to_do(self) -> bool:
        points = self.sweep.points
        if any(self.missing_in_base(point) for point in points):
            return False
        is_over = self.end_s(len(points)) - time.monotonic() < LEAST_RACE_S
        bound = self.sweep.effort.bound
        return (
            is_over or not self.sweep.effort.race or all(self.summary.look(each, bound).is_answered for each in points)
        )

    def renew(self) -> None:
        """End all servers, so that the next replicate of a point comes from a fresh one."""
        self._pool.renew()

    def finished(self) -> list[Point]:
        """Return the points that are completely measured; in a race, those that have an answer."""
        return [point for point in self.sweep.points if not self.missing_in_base(point)]

    def measured_cases(self) -> int:
        """Return the number of cases that have a record of at least one process."""
        names = {*self.sweep.implementations}
        return sum(
            len({entry.case.implementation for entry in self.run_folder.known(point)} & names)
            for point in self.sweep.points
        )

    def leave_out(self, point: Point, processes: int) -> None:
        """Write a record for each case that can't be measured here.

        Its status is `unsupported` if the system lacks huge pages that the point needs, and `skipped` if the case is
        new and can't fit into the free memory, or if it ran out of memory with fewer tokens.
        """
        missing = self._missing(point, processes)
        self._pool.dismiss(keep=self.together(point))
        reason, status = admission.huge_pages_missing([point]), "unsupported"
        reasons = dict.fromkeys(missing, reason)
        if not reason:
            new = {name: self.sweep.computed_by(name) for name in missing if self.run_folder.is_new(point, [name])}
            too_large = admission.too_large(point, [*new.values()], facts.available_bytes())
            too_large |= self._beyond_frontier(point, [*new.values()])
            reasons = {name: too_large[computed_by] for name, computed_by in new.items() if computed_by in too_large}
            status = "skipped"
        number, started = self.run_folder.next_process(point), now()
        records = [
            self.run_folder.record(Case(point, name), number, started, status, reason)
            for name, reason in reasons.items()
        ]
        if records:
            self.run_folder.keep(point, records)

    def _beyond_frontier(self, point: Point, names: Sequence[str]) -> dict[str, str]:
        """Return the implementations that ran out of memory at the same point with fewer tokens, each with a reason."""
        if not self._frontier:
            return {}
        smaller = [each for each in self._shapes.get(_without_tokens(point), ()) if each.num_tokens < point.num_tokens]
        reached = {
            entry.case.implementation: each.num_tokens
            for each in reversed(smaller)
            for entry in self.run_folder.known(each)
            if entry.status == "oom" and entry.head.own_cause
        }
        return {
            name: f"out of memory at N = {reached[name]}; --no-frontier tries it" for name in names if name in reached
        }

    @cached_property
    def _shapes(self) -> dict[Point, list[Point]]:
        """The points of the sweep that differ in the number of tokens alone, fewest first, by the point without it."""
        shapes: dict[Point, list[Point]] = {}
        for point in sorted(self.sweep.points, key=lambda point: point.num_tokens):
            shapes.setdefault(_without_tokens(point), []).append(point)
        return shapes

    @property
    def environment(self) -> Environment:
        """The environment in which the run measures."""
        return self.run_folder.here

    def measure(self, point: Point, processes: int | None = None) -> list[Record]:
        """Measure the missing processes of a point, and return all of its valid records.

        Points of the sweep that differ from it in the dtype alone are measured in the same rounds.
        Each process's records are in the journal, and the point's rows in results.csv, before this returns.
        `processes` is the number to reach now, if not the sweep's.
        """
        processes = processes or self.sweep.effort.processes
        if processes == self.sweep.effort.processes:
            if self.sweep.effort.race:
                self.race([point])
                return self.run_folder.of(point)
            self.end_unneeded(point)  # else earlier points follow
        points = self.together(point)
        for each in points:
            self.leave_out(each, processes)
        while missing := {each: names for each in points if (names := self._missing(each, processes))}:
            self.replicate(missing, dataclasses.replace(self.length, budget_s=self.length.budget_s * len(missing)))
        self.tabulate()
        return self.run_folder.of(point)

    def end_s(self, points: int) -> float:
        """Return the time of the monotonic clock at which a race over so many points ends.

        What was measured in earlier sessions counts.
        """
        return self._begin_s + self.sweep.effort.seconds(points)

    def race(self, points: Sequence[Point], looked: Looked = unheard) -> None:
        """Measure points in a race, unless this session has done so; `looked` is called after each look at one."""
        new = [point for point in points if point not in self._raced]
        self._raced.update(new)
        if new:
            Race(self, new, self.end_s(len(points)), looked).go()

    @property
    def summary(self) -> Summary:
        """What the samples of all points say so far."""
        return self.run_folder.summary

    def tabulate(self) -> None:
        """Write results.csv if it is due; raises CannotWrite if it can't be written."""
        self.run_folder.tabulate()

    def missing_in_base(self, point: Point) -> list[str]:
        """Return what needs more processes at a point; in a race, without what is far behind in the first of them."""
        missing = self._missing(point, self.sweep.effort.processes)
        if not (missing and self.sweep.effort.race):
            return missing
        kept = {self.sweep.baseline, CONTROL}
        behind = self.summary.behind(point) - kept
        return [name for name in missing if name not in behind]

    def together(self, point: Point) -> list[Point]:
        """Return the points of the sweep that differ from a point in the dtype alone, itself among them."""
        return self._alike.get(dataclasses.replace(point, dtype=""), [point])

    @cached_property
    def _alike(self) -> dict[Point, list[Point]]:
        """The points of the sweep that differ in the dtype alone, by the point without one."""
        alike: dict[Point, list[Point]] = {}
        for point in self.sweep.points:
            alike.setdefault(dataclasses.replace(point, dtype=""), []).append(point)
        return alike

    def spread(self, wait: Callable[[float], None] = time.sleep) -> None:
        """Measure the missing replicates of all points in turns, evenly over the effort's `spread_s`.

        A machine is faster in some minutes than in others. Then a point's replicates don't all come from the same ones.
        """
        effort = self.sweep.effort
        turns = [(number + 1, point) for number in range(effort.processes) for point in self.sweep.points]
        turns = [(number, point) for number, point in turns if self._missing(point, number)]
        begin_s = time.monotonic()
        for index, (number, point) in enumerate(turns):
            wait(max(0.0, begin_s + (effort.spread_s or 0.0) * index / len(turns) - time.monotonic()))
            self.measure(point, number)

    def end_unneeded(self, point: Point) -> None:
        """End the servers of settings that neither this point of the sweep has nor a later one."""
        place = self._places[point]
        self._pool.keep(each for last, each in self._last_uses.values() if last >= place)

    @cached_property
    def _places(self) -> dict[Point, int]:
        """The place of each point in the sweep."""
        return {point: place for place, point in enumerate(self.sweep.points)}

    @cached_property
    def _last_uses(self) -> dict[tuple[str, int], tuple[int, Point]]:
        """The last point of the sweep with each setting of a server, and its place."""
        return {(point.allocator, point.threads): (place, point) for place, point in enumerate(self.sweep.points)}

    def records(self, point: Point, implementation: str) -> list[Record]:
        """Return the records of one case."""
        return [record for record in self.run_folder.of(point) if record.case.implementation == implementation]

    def _missing(self, point: Point, processes: int) -> list[str]:
        return self.run_folder.missing(point, processes, retry_failed=self.retry_failed)

    def replicate(self, missing: Mapping[Point, Sequence[str]], length: Length, *, is_look: bool = False) -> Replicate:
        """Measure points in one more replicate; those that belong to no look of a race beside their baselines.

        A point at which something had no memory beside others is measured by itself, and a baseline that failed is not
        measured again.
        """
        groups = {point: self._group(point, names, is_look=is_look) for point, names in missing.items()}
        apart = [point for point in groups if point in self._apart]
        groups = {apart[0]: groups[apart[0]]} if apart else groups
        first, number = next(iter(groups)), max(map(self.run_folder.next_process, groups))
        self._pool.dismiss(keep=self.together(first))  # the judges of others have memory that this may need
        cases = {_key(point, name): (point, name) for point, names in groups.items() for name in names}
        members = {key: self.member(*case) for key, case in cases.items()}
        baselines = {key: _key(point, self.sweep.baseline) for key, (point, _) in cases.items()}
        heard = partial(self.heard, first, number)
        heard("", "start")
        for member in members.values():
            if member.thorough and (self.sweep.effort.check_memory or may_have_own_memory(member.implementation)):
                self._check_memory(member)
        replicate = Replicate(members, baselines, length, self.seed(first), number, heard=heard)
        replicate.measure(self.sweep.effort.timeout_s)
        self._alone.update(member.case for member in members.values() if member.is_left and member.status == "oom")
        self.count_deaths(members.values())
        if any(member.is_left or member.case in self._alone for member in members.values()):
            self._apart.update(groups)
        for point in groups:
            baseline = members.get(_key(point, self.sweep.baseline))
            if baseline is None or not (baseline.is_left or self.is_tried_again(baseline)):  # else nothing has a ratio
                self.keep([member for member in members.values() if member.case.point == point], number, replicate)
        return replicate

    def _group(self, point: Point, missing: Sequence[str], *, is_look: bool) -> list[str]:
        """Return the implementations of the next replicate: what had no memory beside others is measured by itself."""
        baseline = self.sweep.baseline
        alone = [name for name in missing if name != baseline and Case(point, name) in self._alone]
        is_tight = Case(point, baseline) in self._alone
        group = alone[:1] or ([name for name in missing if name != baseline][:1] if is_tight else []) or missing
        has_failed = baseline in self.run_folder.failed(point) - {*missing}
        is_beside = baseline in self.sweep.implementations and baseline not in group and not (has_failed or is_look)
        return [baseline, *group] if is_beside else [*group]

    def member(self, point: Point, name: str) -> Member:
        """Return a case to be measured in a replicate."""
        thorough = self.run_folder.is_new(point, [name])
        return Member(Case(point, name), self._pool, self.environment.env_id, thorough, self.sweep.computed_by(name))

    def seed(self, point: Point) -> int:
        """Return the seed of the point's weights and inputs in this session, the same for all its precisions."""
        return self._seeds.setdefault(dataclasses.replace(point, dtype=""), random.SystemRandom().randrange(1 << 32))

    @property
    def length(self) -> Length:
        """How long a replicate takes rounds if all have equal shares."""
        effort = self.sweep.effort
        return Length(effort.budget_s / effort.processes)

    def count_deaths(self, members: Iterable[Member]) -> None:
        """Count the deaths of the members' processes, which decide who is tried again.

        A process that was killed from outside may have lacked memory, so its case is measured by itself next.
        """
        for member in members:
            if member.is_ok:
                del self._deaths[member.case]
            elif member.death is not None:
                self._deaths[member.case] += 1
                if member.death.is_outside and member.pid is not None:  # not that of a judge or of a server
                    self._alone.add(member.case)

    def is_tried_again(self, member: Member) -> bool:
        """Return whether a member whose process died is measured again in another replicate."""
        return member.death is not None and self._deaths[member.case] < MOST_DEATHS

    def keep(self, members: Iterable[Member], number: int, replicate: Replicate) -> None:
        """Write a record of each member that is measured, or that failed and is not tried again."""
        ended = [member for member in members if not member.is_left and not self.is_tried_again(member)]
        records = [self._record(member, number, replicate) for member in ended]
        if records:
            self.run_folder.keep(records[0].case.point, records)

    def _record(self, member: Member, number: int, replicate: Replicate) -> Record:
        session: dict[str, Any] = {"seed": replicate.seed, "pid": member.pid}
        detail = member.detail
        if member.death is not None:
            session["own_cause"] = not member.death.is_outside
            detail += f" ({SECOND_DEATH}{NOT_ITS_OWN if member.death.is_outside else ''})"
        metrics = {**session, **member.metrics}
        record = self.run_folder.record(member.case, number, replicate.started, member.status, detail, metrics)
        return dataclasses.replace(record, samples=member.samples) if record.status == "ok" else record

    def _check_memory(self, member: Member) -> None:
        """Add the operating system's peak memory to the metrics of a case on a CPU."""
        point = member.case.point
        if point.device != "cpu":
            return
        request = {"request": "memory", "point": dataclasses.asdict(point), "implementation": member.implementation}
        with suppress(Died), self._pool.memory_worker(point.threads) as worker:
            reply = worker.ask(request, self.sweep.effort.timeout_s)
            member.metrics["system_peak_bytes"] = reply.get("peak_bytes")


def _without_tokens(point: Point) -> Point:
    """Return a point without its number of tokens, and without the size of the image from which that follows."""
    return dataclasses.replace(point, num_tokens=0, image_size=None)


def _key(point: Point, name: str) -> str:
    """Return the name of a case in a replicate, whose points differ in their dtype alone."""
    return f"{name} {point.dtype}"


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
        if sweep.effort.race:
            opened.race(sweep.points)
        for point in sweep.points:
            yield opened.measure(point)
