"""One replicate of a point: a process for each implementation, which takes samples in rounds on request.

The steps are expected outputs, preparation, comparison, rounds, last checks, comparison. The engine only sends requests
and waits, so that nothing runs beside a sample.
"""

import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial

from bench.engine.judge import Draws, PointJudge
from bench.engine.member import Ended, Member
from bench.engine.pool import Pool
from bench.engine.worker import Died, Worker, first_done, unheard
from bench.machine import monotonic
from bench.machine.quiet import Interference
from bench.plan.case import Point
from bench.sampling.inputs import AFTERWARDS, KEY_BITS, NORMAL, PEAKED, SHIFTS, TIMED
from bench.sampling.judged import kept_of
from bench.sampling.requests import Arrive, Finish, Prepare, Prepared, Sample, Sampled
from bench.sampling.rounds import Length, sample, timings
from bench.store.record import Samples
from impls.catalogue import name_of

WARM_UP_SHARE = 1 / 3
"""The largest share of the rounds' time for the warm-up; each implementation was called before, for its check."""

REUSES = "returns the same memory for every output, so each call overwrites the output of the one before"

NOT_ALONE = "the other side could not be measured"
"""The reason why a side of a duel is skipped."""

Heard = Callable[[str, str], None]
"""`heard(implementation, stage)` is called for every event; the implementation is "" for the reference."""

CpuCore = int | None
"""The core of a process, None if the system chooses it."""

Begin = Callable[[Member, CpuCore], Worker]
"""A function that requests a step on a core from a member's process, and returns the process."""


class Replicate:
    """The measurement of the members in one replicate; the members hold the results.

    `baseline` is the member that the others are compared with, None without one.
    `seed` is the seed of weights and inputs; `number` numbers the replicate at its point. It took `rounds` rounds in
    `rounds_s` seconds.
    """

    def __init__(
        self,
        members: Sequence[Member],
        baseline: Member | None,
        length: Length,
        seed: int,
        number: int,
        heard: Heard = unheard,
    ) -> None:
        self.seed = seed
        self.started = now()
        self.rounds_s = 0.0
        self.rounds = 0
        self._members = members
        self._baseline = baseline
        self._length = length
        self._number = number
        self._heard = heard
        # the processes know the seed, and must not know these draws
        self._rng = random.Random(random.SystemRandom().getrandbits(64))  # noqa: S311
        self._point = members[0].case.point
        self._cores: list[CpuCore] = [*_cores(self._point)]
        self._draws = Draws(
            seed,
            shifts={NORMAL: 0, PEAKED: 0, AFTERWARDS: self._rng.randrange(1, SHIFTS)},
            core=self._rng.choice(self._cores) if self._cores else None,
        )
        if self._cores and any(name_of(member.implementation).entry.keeps_core for member in members):
            self._cores = [self._draws.core]
        self._judges: dict[tuple[Pool, Point], PointJudge] = {}

    def measure(self, timeout_s: float, *, together: bool = False) -> None:
        """Measure all members; a process that is silent for `timeout_s` ends.

        If they are measured `together` and one can't be prepared, the others are skipped.
        """
        self._timeout_s = timeout_s
        judged: dict[tuple[Pool, Point], list[Member]] = {}
        for member in self._members:
            member.timeout_s, member.heard = timeout_s, partial(self._heard, member.case.implementation)
            judged.setdefault(member.judged_by, []).append(member)
        for at, members in judged.items():
            self._judges[at] = PointJudge(members, self._draws, timeout_s, partial(self._heard, ""))
        try:
            self._measure(together=together)
        finally:
            for member in self._members:
                member.close()
            for judge in self._judges.values():
                judge.close()

    def _measure(self, *, together: bool) -> None:
        if not self._point.kind.is_forked_warm:
            self._start_all()  # they start while judges compute the expected outputs
        for judge in self._judges.values():
            judge.begin()
        for member in self._members:
            if member.worker is not None and member.is_ok:
                with self._ending(member):
                    member.reply()
        # the order is random because members that were prepared later were faster, the last by 1.3 % than the first
        everyone = self._rng.sample(self._members, len(self._members))
        self._on_cores(everyone, self._preparing, self._prepared)
        active = [member for member in self._members if member.is_ok]
        if together and len(active) < len(self._members):
            for member in active:
                member.end("skipped", NOT_ALONE)
                member.own_cause = False
            return
        self._take_rounds(active)
        lasting = [member for member in active if member.is_ok]
        self._on_cores(lasting, self._finishing, self._finish)
        for member in lasting:
            if member.is_ok:
                with self._ending(member):
                    self._judge(member).check_rate(member)

    def _judge(self, member: Member) -> PointJudge:
        return self._judges[member.judged_by]

    def _start_all(self) -> None:
        """Start all members together, because each needs seconds until it can use its device and the compiler."""
        for member in self._members:
            with self._ending(member):
                member.start(self._number)
                member.post(Arrive(member.point, member.implementation, str(member.pool.cache)))

    def _on_cores(self, members: Sequence[Member], begin: Begin, end: Callable[[Member], None]) -> None:
        """Take members through a step, one on each core at a time; a member that ends in it is closed."""
        waiting, idle = [each for each in members if each.is_ok], [*self._cores] or [None]
        busy: dict[Worker, tuple[Member, CpuCore]] = {}
        while waiting or busy:
            if waiting and idle:
                member = waiting.pop()
                with self._ending(member):
                    busy[begin(member, idle[-1])] = member, idle[-1]
                    idle.pop()
            else:
                done = first_done({worker: each.heard for worker, (each, _) in busy.items()}, self._timeout_s)
                member, core = busy.pop(done)
                idle.append(core)
                with self._ending(member):
                    end(member)
            if not member.is_ok:
                member.close()

    def _preparing(self, member: Member, core: CpuCore) -> Worker:
        """Request a member's preparation on a core, and return its process; raises Died."""
        if member.worker is None:
            member.start(self._number)
        judge, inputs = self._judge(member), self._judge(member).inputs(member)
        request = Prepare(
            member.point,
            member.implementation,
            self.seed,
            order_seed=self._rng.randrange(1 << 32),
            inputs=inputs,
            thorough=member.thorough,
            warm_up_s=WARM_UP_SHARE * self._length.budget_s / len(self._members),
            core=core,
            files=member.new_files(each for each in inputs if each != AFTERWARDS),
            cache=str(member.pool.cache),
            given=judge.given if member.takes_weights else None,
        )
        return member.post(request)

    def _prepared(self, member: Member) -> None:
        """Compare the first outputs of a prepared member; raises Ended."""
        prepared: Prepared = member.reply()
        member.calls, member.call_s = prepared.calls, prepared.call_s
        member.doubt = REUSES if prepared.reuses else ""
        checks = (NORMAL, PEAKED) if member.thorough else (PEAKED,)
        results = [self._judge(member).compare(member, check) for check in checks]
        member.metrics |= max(results, key=lambda result: result["error"] / result["tolerance"])

    def _take_rounds(self, active: Sequence[Member]) -> None:
        """Take samples in rounds for the replicate's time; a member that fails leaves the rounds."""
        if not active:
            return
        self._interference = Interference(self._point.threads, partial(_own_s, [*map(_process, active)]))
        first = next((member for member in active if member is self._baseline), active[0])
        self._timings = timings(first.call_s)
        for member in active:
            member.kept = kept_of(member.point, self._timings, member.call_s)

        def failed(member: Member, error: Exception) -> None:
            with self._ending(member):
                raise error
            member.close()  # its work or threads may slow the others

        turns = {member: partial(self._sample, member) for member in active}
        begin = monotonic.now_s()
        for member, by_round in sample(turns, self._length, self._rng, failed).items():
            member.samples = _samples(by_round)
            self.rounds = max(self.rounds, len(by_round))
        self.rounds_s = monotonic.now_s() - begin

    def _sample(self, member: Member) -> tuple[Sampled, float]:
        """Return one sample of a member, and the other processes' share of cores; raises Ended."""
        member.heard("rounds")
        keys = [self._rng.getrandbits(KEY_BITS) for _ in range(self._timings)]
        member.keys += keys
        process = _process(member)
        member.waiting.end(process.cpu_s)
        begin = monotonic.now_s()
        member.post(Sample(keys, self._draws.core), stage="rounds")
        sampled: Sampled = member.reply()
        waited_s = monotonic.now_s() - begin
        if len(sampled.timings_s) != self._timings:
            raise Ended("crashed", f"sent a sample of {len(sampled.timings_s)} timings, expected {self._timings}")
        others = self._interference.share()
        if objection := member.claims.add(sum(sampled.timings_s) * member.calls, waited_s, sampled.used_s):
            raise Ended("error", objection)
        member.waiting.begin(process.cpu_s)
        return sampled, others

    def _finishing(self, member: Member, core: CpuCore) -> Worker:
        """Request a member's last calls on a core, and return its process; raises Ended."""
        if self._point.kind.is_timed_by_host and (objection := member.claims.of_all(self._point.threads)):
            raise Ended("error", objection)
        return member.post(Finish(member.latency_s, core, member.new_files([TIMED, AFTERWARDS])), stage="last calls")

    def _finish(self, member: Member) -> None:
        """Check the outputs of a member's last calls; raises Ended."""
        judge = self._judge(member)
        try:
            member.reply()
        except Ended:
            if member.has_handed_over(TIMED):  # a wrong output matters more than another objection
                judge.compare_timed(member)
            if member.has_handed_over(AFTERWARDS):
                judge.compare(member, AFTERWARDS)
            raise
        judge.compare_timed(member)
        judge.compare(member, AFTERWARDS)

    @contextmanager
    def _ending(self, member: Member) -> Iterator[None]:
        """End the member if Ended or Died is raised inside; a judge's death also ends the member."""
        try:
            yield
        except Ended as end:
            member.end(end.status, end.detail)
        except Died as death:
            member.end(death.status, death.detail, death)
            with suppress(Died):  # a new judge needs the expected outputs for the other members
                self._judge(member).expect()


def _process(member: Member) -> Worker:
    assert member.worker is not None
    return member.worker


def _own_s(processes: Sequence[Worker]) -> float:
    """Return the CPU seconds that this process and these have used."""
    return time.process_time() + sum(each.cpu_s for each in processes)


def now() -> str:
    """Return the current time (UTC) in the format of records."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _samples(by_round: Mapping[int, tuple[Sampled, float]]) -> Samples:
    every, others = zip(*by_round.values(), strict=True)
    return Samples(
        tuple(by_round),
        tuple(tuple(each.timings_s) for each in every),
        tuple(each.switches for each in every),
        tuple(round(share, 2) for share in others),
        tuple(each.host_s for each in every if each.host_s is not None),
    )


def _cores(point: Point) -> list[int]:
    """Return the cores that members of a point are pinned to, one each; empty if they may use any core.

    All take samples on the same core, random for each replicate. Otherwise a busy process on one of two cores slows
    only some of them, and an A/A ratio was wrong by a third. With several threads they use most cores anyway.
    """
    if not point.kind.has_cores or point.threads > 1 or not hasattr(os, "sched_getaffinity"):
        return []
    return sorted(os.sched_getaffinity(0))
