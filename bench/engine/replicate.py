"""One replicate of a point: a process for each implementation, which take samples in rounds when they are asked.

The way is the same for all: expected outputs, preparation, comparison, rounds, last checks, comparison. The engine only
asks and waits, so that nothing runs beside a sample.
"""

import dataclasses
import os
import random
import signal
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from bench.engine import member as replies
from bench.engine.member import Ended, Member
from bench.engine.pool import Pool
from bench.engine.worker import Died, Worker, first_done, unheard
from bench.machine import facts, rates
from bench.machine.quiet import Interference, Speed, is_stopped, queued_s
from bench.plan.case import Point
from bench.plan.layers.layer import Work
from bench.plan.roofline import CEILING_BYTES, CEILING_FLOPS, Roof
from bench.sampling.inputs import AFTERWARDS, KEY_BITS, NORMAL, PEAKED, SHIFTS, TIMED, JudgedCalls
from bench.sampling.rounds import Length, Sample, sample, timings

WARM_UP_SHARE = 1 / 3
"""The largest part of the rounds' time for the warm-up: each implementation was called before, for its check."""

RATES_TURNS, RATES_S = 3, 0.2
"""The least number of turns, and the least seconds, in which a device's rates are measured."""

TIMED_AGAIN_S = 1.0
"""The seconds in which a case takes samples in turns with the measurement of rates."""

SPARE_BYTES, GROWTH = 1 << 29, 1.2
"""Another process starts if SPARE_BYTES and GROWTH times the memory of the largest process so far are free."""

FEWEST = 2
"""The number of processes that start whatever memory is free: with fewer there is no ratio."""

Heard = Callable[[str, str], None]
"""`heard(implementation, stage)` is called for every event; the implementation is "" for the reference."""


class Replicate:
    """The measurement of the members in one replicate; the members hold the results.

    `baselines` names for each member that of its baseline, which stays in the rounds until the others are done.
    The points of members may differ in their dtype: then rounds hold all of them, so that precisions can be compared.
    `seed` is that of weights and inputs; `number` is that of the replicate at its points. `rounds` are the rounds
    that it took, in `rounds_s` seconds.
    """

    def __init__(
        self,
        members: Mapping[str, Member],
        baselines: Mapping[str, str],
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
        self._baselines = baselines
        self._length = length
        self._number = number
        self._heard = heard
        self._rng = random.Random(f"{seed} {number}")  # noqa: S311 - an order, not a secret
        self._shifts = {NORMAL: 0, PEAKED: 0, AFTERWARDS: self._rng.randrange(1, SHIFTS)}
        self._numbers, self._whole_key = (self._rng.getrandbits(KEY_BITS) for _ in range(2))
        self._point = next(iter(members.values())).case.point
        self._cores = _cores(self._point)
        self._core = self._rng.choice(self._cores) if self._cores else None
        self._work: dict[tuple[str, Point], Work] = {}
        self._best: dict[tuple[str, Point], Roof | None] = {}
        self._judge_cpu_s: dict[tuple[Pool, Point], float] = {}
        self._speed = Speed(self._probed)
        self._timings = timings(0.0)

    def measure(self, timeout_s: float, *, together: bool = False) -> None:
        """Measure all members; a process that is silent for `timeout_s` ends.

        If they are measured `together` and one can't be prepared, the others are skipped.
        """
        self._timeout_s = timeout_s
        try:
            for pool, point in {(member.pool, member.case.point): None for member in self._members.values()}:
                self._begin(pool, point)
            self._prepare_all(together=together)
            active = {name: member for name, member in self._members.items() if member.is_ok}
            if together and len(active) < len(self._members):
                for member in active.values():
                    member.end("skipped", "the other side could not be measured")
                    member.metrics["own_cause"] = False
                return
            self._take_rounds(active)
            self._finish_all([member for member in active.values() if member.is_ok])
        finally:
            for member in self._members.values():
                member.close()

    def _begin(self, pool: Pool, point: Point) -> None:
        """Let the judge make the expected outputs; if it can't, all members of the pool at this point end."""
        members = self._judged_by(pool, point)
        at = members[0].env_id, point
        try:
            reply = self._expect(pool, point)
            if reply["status"] == "ok":  # before the members are there, because they need the memory
                self._best[at] = self._roof(pool, *at)
        except Died as death:
            for member in members:
                member.end(death.status, death.detail, death)
            return
        for member in members:
            member.end(reply["status"], reply["detail"])
            if member.status == "oom":  # the reference had no memory, which is no fault of the case
                member.metrics["own_cause"] = False
            if member.is_ok:
                self._work[at] = Work(**reply["work"])

    def _roof(self, pool: Pool, env_id: str, point: Point) -> Roof | None:
        """Return the best rates that are known of the device, None without memory to measure them.

        Once in a run they are measured: what is kept lies in a file that anybody may write, and must be possible.
        """
        known, setting = rates.recall(env_id, point), (env_id, rates.setting(point))
        if known and setting in pool.rated:
            return Roof(**known)
        pool.rated.add(setting)
        now = self._rates(pool, point, RATES_TURNS, RATES_S)
        if known and now and not rates.is_believable(Roof(**known), now):
            rates.replace(env_id, point, dataclasses.asdict(now))
            return now
        return Roof(**known) if known else now

    def _judged_by(self, pool: Pool, point: Point) -> list[Member]:
        return [member for member in self._members.values() if member.pool is pool and member.case.point == point]

    def _expect(self, pool: Pool, point: Point) -> dict[str, Any]:
        """Return the judge's reply to the request for the expected outputs; raises Died."""
        is_thorough = any(member.thorough for member in self._judged_by(pool, point))
        shifts: dict[str, Any] = {name: at for name, at in self._shifts.items() if name != NORMAL or is_thorough}
        shifts[TIMED] = [self._numbers, self._whole_key, 0]
        request = {"request": "expect", "point": dataclasses.asdict(point), "seed": self.seed, "shifts": shifts}
        return self._ask_judge(pool, point, request)

    def _prepare_all(self, *, together: bool) -> None:
        """Prepare the members, one on each core of a CPU, as long as there is memory for another one.

        The order is random, because a member that was prepared later was seen to be faster: the last by 1.3 % ± 0.5 %
        than the first, in 1,264 measurements of `quick`. The baseline comes first while it is unknown what fits, and
        next if there may be no room for it later. The first one is prepared alone, so that its memory is known.
        """
        order = self._rng.sample([*self._members], len(self._members))
        if self._point.device != "cpu" or any(member.thorough for member in self._members.values()):
            order.sort(key=lambda name: name != self._baselines[name])
        idle: list[int | None] = [*self._cores] or [None]
        busy: dict[Worker, tuple[Member, int | None]] = {}
        crowded: list[Member] = []  # beside one that ended meanwhile
        largest_bytes = prepared = 0
        # a GPU's free memory is known after the first preparation
        free_bytes = facts.available_bytes() if self._point.device == "cpu" else 0
        while order or busy:
            # for how many more beside those that are being prepared
            room = (free_bytes - SPARE_BYTES) / max(1, GROWTH * largest_bytes) - len(busy)
            if not (order and idle and (not busy or (prepared and room >= 1))):
                member, core = self._first_done(busy)
                idle.append(core)
                with self._ending(member):
                    after_bytes = self._prepared(member)
                    largest_bytes, free_bytes = max(largest_bytes, free_bytes - after_bytes), after_bytes
                    prepared += 1
                if not member.is_ok and together:
                    return
                if not member.is_ok:
                    member.is_left |= member.status == "oom" and any(each is member for each in crowded)
                    crowded += [other for other, _ in busy.values()]
                    member.close()
                continue
            first = [name for name in order if name == self._baselines[name]] if room < 2 else []
            name = (first or order)[0]
            order.remove(name)
            member = self._members[name]
            if not member.is_ok:
                continue
            if prepared >= FEWEST and room < 1 and name != self._baselines[name]:
                member.is_left = True
                continue
            with self._ending(member):
                busy[self._preparing(member, idle[-1])] = member, idle[-1]
                idle.pop()

    def _preparing(self, member: Member, core: int | None) -> Worker:
        """Return the process of a member after the request to prepare it on a core."""
        member.worker = self._forked(member)
        member.pid = member.worker.pid
        member.folder = _new_folder(member.pool.folder)
        request = {
            "request": "prepare",
            "case": {
                "point": dataclasses.asdict(member.case.point),
                "implementation": member.implementation,
                "seed": self.seed,
                "order_seed": self._rng.randrange(1 << 32),
                "shifts": self._shifts_of(member),
                "thorough": member.thorough,
                "warm_up_s": WARM_UP_SHARE * self._length.budget_s / len(self._members),
                "core": core,
                "folder": str(member.folder),
            },
        }
        member.worker.post(request)
        return member.worker

    def _prepared(self, member: Member) -> int:
        """Compare the first outputs of a member that is prepared; return the free memory of its device."""
        assert member.worker is not None
        reply = member.worker.receive(self._timeout_s, self._hears(member))
        self._take(member, reply)
        prepared = replies.read(reply, replies.Prepared)
        member.calls, member.call_s = replies.calls_per_timing(member.metrics), prepared.call_s
        member.remark, member.doubt = prepared.remark, prepared.doubts
        results = [self._compared(member, check) for check in (NORMAL, PEAKED) if check in self._shifts_of(member)]
        worst = max(results, key=lambda result: result["error"] / result["tolerance"])
        member.metrics |= {name: worst[name] for name in ("error", "tolerance")}
        return facts.available_bytes() if prepared.free_bytes is None else prepared.free_bytes

    def _shifts_of(self, member: Member) -> dict[str, int]:
        """Return the inputs that are checked at a member."""
        return {check: shift for check, shift in self._shifts.items() if check != NORMAL or member.thorough}

    def _hears(self, member: Member) -> Callable[[str], None]:
        return partial(self._heard, member.case.implementation)

    def _take_rounds(self, active: dict[str, Member]) -> None:
        """Take samples until every ratio is known or the budget is spent; one that fails leaves the rounds."""
        if not active:
            return
        self._speed.read()  # so that the judge's seconds are known before those of others are counted
        self._interference = Interference(self._point.threads, self._own_s)
        first = active.get(next(iter(self._baselines.values())), next(iter(active.values())))
        self._timings = timings(first.call_s)
        for member in active.values():
            with self._ending(member):
                self._begin_rounds(member)
        active = {name: member for name, member in active.items() if member.is_ok}

        def failed(name: str, error: Exception) -> None:
            with self._ending(active[name]):
                raise error
            active[name].close()  # it may have work or threads that slow the others

        readings: dict[str, list[int]] = {name: [] for name in active}

        def turn(name: str, member: Member) -> Sample:
            reading = self._speed.reading()
            taken = self._sample(member)
            readings[name].append(reading)
            return taken

        turns = {name: partial(turn, name, member) for name, member in active.items()}
        begin = time.perf_counter()
        for name, samples in sample(turns, self._length, self._rng, failed).items():
            active[name].samples = samples
            self.rounds = max(self.rounds, len(samples.rounds))
        self.rounds_s = time.perf_counter() - begin
        self._keep_speed({name: member for name, member in active.items() if member.is_ok}, readings)

    def _begin_rounds(self, member: Member) -> None:
        """Draw what is judged of a member's calls, and let it make memory for that; raises Ended."""
        point, rounds = member.case.point, self._length.least
        member.judged = judged = JudgedCalls(
            self._rng, self._whole_key, batch=point.batch, timings=self._timings, rounds=rounds, mode=point.mode
        )
        request = {"request": "begin", "numbers": self._numbers, "timings": self._timings, "parts": judged.most}
        reply = self._ask(member, request, stage="rounds")
        if reply.get("status") != "ok":
            self._take(member, reply)

    def _keep_speed(self, measured: dict[str, Member], readings: dict[str, list[int]]) -> None:
        """Give each sample the speed of the machine around it, and each case the highest that is known."""
        self._speed.read()
        for name, member in measured.items():
            product_s, copy_s = (tuple(values) for values in self._speed.around(readings[name]))
            member.samples = dataclasses.replace(member.samples, product_s=product_s, copy_s=copy_s)
        best = self._speed.best()
        if best is None:
            return
        highest = {name: 1 / seconds for name, seconds in zip(rates.PROBE, best, strict=True)}
        point = self._probed_at[1]
        for env_id in {member.env_id for member in measured.values()}:
            rates.remember(env_id, point, highest)
        for member in measured.values():
            member.metrics |= rates.recall(member.env_id, point, rates.PROBE) or highest

    def _probed(self) -> tuple[float, float] | None:
        """Return the seconds of the speed probe's product and copy; None if the judge died or had no memory for it."""
        pool, point = self._probed_at
        try:
            reply = self._ask_judge(pool, point, {"request": "probe", "core": self._core})
        except Died:
            with suppress(Died):
                self._expect(pool, point)
            return None
        self._judge_cpu_s[pool, point] = reply["cpu_s"]
        return (reply["product_s"], reply["copy_s"]) if reply["product_s"] else None

    @property
    def _probed_at(self) -> tuple[Pool, Point]:
        """The pool and the point whose judge runs the speed probe: the first that has expected outputs."""
        places = ((member.pool, member.case.point, member.env_id) for member in self._members.values())
        return next((pool, point) for pool, point, env_id in places if (env_id, point) in self._work)

    def _sample(self, member: Member) -> Sample:
        """Return one sample of a member; raises Ended."""
        self._heard(member.case.implementation, "rounds")
        queue_s = queued_s() + queued_s(member.pid or 0)
        begin = time.perf_counter()
        assert member.judged is not None
        request = {"request": "sample", "keys": member.judged.next_keys(), "core": self._core}
        reply = self._ask(member, request, stage="rounds")
        waited_s = time.perf_counter() - begin
        queue_s = queued_s() + queued_s(member.pid or 0) - queue_s
        if reply.get("status") != "ok":
            self._take(member, reply)
        sampled = replies.sampled(reply, self._timings)
        values, member.cpu_s = sampled.sample, sampled.cpu_s
        taken = Sample(tuple(values.timings_s), values.switches, values.faults, self._interference.share())
        self._check_stopped()
        objection = member.claims.add(sum(taken.timings_s) * member.calls, waited_s, queue_s)
        if self._point.device == "cpu":  # else the host's work is not what is timed
            objection = objection or member.claims.add_work(sampled.used_s, sampled.idle_s)
        if objection:
            raise Ended("error", objection)
        if kept := member.judged.draw(sampled.held):
            reply = self._ask(member, {"request": "keep", **kept}, stage="rounds")
            if reply.get("status") != "ok":
                self._take(member, reply)
        return taken

    def _check_stopped(self) -> None:
        """Raise Ended if the member that has just taken a sample stopped other processes; they go on."""
        members = self._members.values()
        judges = [pool.judge(point) for pool, point in {(each.pool, each.case.point) for each in members}]
        workers = [*(each.worker for each in members), *judges]
        stopped = [worker.pid for worker in workers if worker is not None and is_stopped(worker.pid)]
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
        if stopped:
            raise Ended("error", f"stopped other processes of this run: {len(stopped)}")

    def _finish_all(self, members: Sequence[Member]) -> None:
        """End the rounds of members, one on each core of a CPU whose energy isn't measured: check all of their work."""
        waiting = [*members]
        idle: list[int | None] = [*self._cores] if self._cores and not facts.has_energy_counter() else [self._core]
        busy: dict[Worker, tuple[Member, int | None]] = {}
        while waiting or busy:
            if waiting and idle:
                member = waiting.pop()
                with self._ending(member):
                    busy[self._finishing(member, idle[-1])] = member, idle[-1]
                    idle.pop()
                continue
            member, core = self._first_done(busy)
            idle.append(core)
            with self._ending(member):
                self._finish(member)
        for member in members:  # after all others, because it may take more samples
            with self._ending(member):
                self._check_rate(member, min(member.samples.values_s))

    def _finishing(self, member: Member, core: int | None) -> Worker:
        """Return the process of a member after the request for its last calls on a core; raises Ended."""
        if self._point.device == "cpu" and (objection := member.claims.of_all(self._point.threads)):
            raise Ended("error", objection)
        assert member.worker is not None
        request = {"request": "finish", "call_s": min(member.samples.values_s), "core": core}
        member.worker.post(request, stage="last calls")
        return member.worker

    def _finish(self, member: Member) -> None:
        """Check the outputs of a member's last calls; raises Ended."""
        assert member.worker is not None
        assert member.folder is not None
        reply = member.worker.receive(self._timeout_s, self._hears(member))
        is_ok = reply.get("status") == "ok"  # outputs first, because a wrong one says more than another objection
        if is_ok or (member.folder / f"{TIMED}.bin").exists():
            self._compared_timed(member)
        if is_ok or (member.folder / f"{AFTERWARDS}.bin").exists():
            self._compared(member, AFTERWARDS)
        self._take(member, reply)

    def _first_done(self, busy: dict[Worker, tuple[Member, int | None]]) -> tuple[Member, int | None]:
        """Wait for the first of the members that work, and remove it; return it with its core."""
        worker = first_done({worker: self._hears(member) for worker, (member, _) in busy.items()}, self._timeout_s)
        return busy.pop(worker)

    def _check_rate(self, member: Member, call_s: float) -> None:
        """Record the device's highest known rates; raises Ended if the member's time is impossible for its work."""
        if not member.is_ok:
            return
        point, member.detail = member.case.point, member.doubt
        at = member.env_id, point
        work, best = self._work[at], self._best[at]
        member.metrics |= {"flops": work.flops, "least_bytes": work.least_bytes}
        if best is None:
            return
        held = rates.counted(point, work)
        judgement = rates.Judgement(best)
        if not rates.is_possible(held, call_s, best):
            judgement = self._timed_again(member, held, best)
        best = self._best[at] = judgement.best
        rates.remember(*at, dataclasses.asdict(best))
        member.metrics |= {CEILING_FLOPS: best.flops_per_s, CEILING_BYTES: best.bytes_per_s}
        member.detail = "; ".join(filter(None, [member.detail, judgement.doubt]))
        if judgement.objection:
            raise Ended("error", judgement.objection)

    def _timed_again(self, member: Member, work: Work, best: Roof) -> rates.Judgement:
        """Time a member again in turns with matrix products and a copy, and judge it by these times."""
        here = member.pool, member.case.point
        now = self._rates(*here, 1, 0.0) or best
        self._interference = Interference(self._point.threads, self._own_s)
        again_s, end = float("inf"), time.perf_counter() + TIMED_AGAIN_S
        while time.perf_counter() < end:
            again_s = min(again_s, *self._sample(member).timings_s)
            now = now.raised(self._rates(*here, 1, 0.0) or now)
        return rates.judge(work, again_s, best, now, self._interference.share())

    def _rates(self, pool: Pool, point: Point, turns: int, least_s: float) -> Roof | None:
        """Return the rates of the device at a point, None if there is no memory to measure them."""
        request = {"request": "rates", "turns": turns, "least_s": least_s, "core": self._core}
        reply = self._ask_judge(pool, point, request)
        self._judge_cpu_s[pool, point] = reply["cpu_s"]
        return Roof(reply["flops_per_s"], reply["bytes_per_s"]) if reply["flops_per_s"] else None

    def _compared(self, member: Member, check: str) -> dict[str, float]:
        """Return error and tolerance of a member's output; raises Ended if it is incorrect."""
        return self._judgement(member, check, {"request": "compare", "check": check, "shift": self._shifts[check]})

    def _compared_timed(self, member: Member) -> dict[str, float]:
        """Return error and tolerance of the outputs of a member's timed calls; raises Ended if one is incorrect."""
        judged = member.judged
        assert judged is not None
        whole = [self._numbers, self._whole_key, judged.whole]
        request = {"request": "compare_timed", "whole": whole, "numbers": self._numbers, "parts": judged.parts}
        return self._judgement(member, TIMED, request)

    def _judgement(self, member: Member, check: str, request: dict[str, Any]) -> dict[str, float]:
        assert member.folder is not None
        path = member.folder / f"{check}.bin"
        reply = self._ask_judge(member.pool, member.case.point, {**request, "path": str(path)})
        path.unlink(missing_ok=True)
        if reply["reason"]:
            member.metrics |= {name: reply[name] for name in ("error", "tolerance")}
            raise Ended("incorrect", "; ".join(filter(None, [reply["reason"], member.remark])))
        return {name: reply[name] for name in ("error", "tolerance")}

    def _forked(self, member: Member) -> Worker:
        """Return a new process; raises Died, which is no known fault of the member."""
        try:
            return member.pool.worker(member.case.point, self._number)
        except Died as death:
            raise Died(death.status, death.detail, is_outside=True) from None

    def _ask(self, member: Member, request: dict[str, Any], stage: str = "start") -> dict[str, Any]:
        """Return a member's reply; raises Died if its process ends."""
        assert member.worker is not None
        return member.worker.ask(request, self._timeout_s, self._hears(member), stage=stage)

    def _ask_judge(self, pool: Pool, point: Point, request: dict[str, Any]) -> dict[str, Any]:
        """Return the judge's reply; raises Died, which is no known fault of a member; then another one is forked."""
        try:
            heard = partial(self._heard, "")
            return pool.judge(point).ask(request, self._timeout_s, heard, stage="reference")
        except Died as death:
            pool.replace_judge(point)
            raise Died(death.status, death.detail, is_outside=True) from None

    def _take(self, member: Member, reply: dict[str, Any]) -> None:
        """Take over a reply's metrics; raises Ended if the case has ended."""
        outcome = replies.read(reply, replies.Outcome)
        member.metrics |= outcome.metrics
        member.cpu_s = outcome.cpu_s
        if outcome.status != "ok":
            raise Ended(outcome.status, outcome.detail)

    @contextmanager
    def _ending(self, member: Member) -> Any:
        """End the member with an Ended that is raised inside; the death of a judge is one of the member."""
        try:
            yield
        except Ended as end:
            member.end(end.status, end.detail)
            beside = sum(other.worker is not None for other in self._members.values() if other is not member)
            member.is_left = end.status == "oom" and beside >= FEWEST  # it may fit beside fewer
        except Died as death:
            member.end(death.status, death.detail, death)
            with suppress(Died):  # the next judge needs the expected outputs for the other members
                self._expect(member.pool, member.case.point)

    def _own_s(self) -> float:
        """Return the processor's seconds that this run's processes have used."""
        return (
            time.process_time()
            + sum(self._judge_cpu_s.values())
            + sum(member.cpu_s for member in self._members.values())
        )


def now() -> str:
    """Return the current time (UTC) in the format of records."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _new_folder(parent: Path) -> Path:
    """Return a new temporary folder; raises Died, which is no fault of a case."""
    try:
        return Path(tempfile.mkdtemp(dir=parent))
    except OSError as error:
        raise Died("error", f"no temporary folder could be made: {error.strerror}", is_outside=True) from None


def _cores(point: Point) -> list[int]:
    """Return the cores of which members of a point need one each; none if they may use any core.

    All take samples on the same one, random for each replicate: a busy process on one of two cores would slow only some
    of them, and an A/A ratio was seen to be wrong by a third. With several threads they use most cores anyway.
    """
    if point.device != "cpu" or point.threads > 1 or not hasattr(os, "sched_getaffinity"):
        return []
    return sorted(os.sched_getaffinity(0))
