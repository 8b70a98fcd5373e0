"""The judge of a point in a replicate: what it is asked, and what it says of the point's work and of the device."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from bench.engine.member import Ended, Member
from bench.engine.worker import Died, Heard
from bench.machine import rates
from bench.plan.work import Roof, Work
from bench.sampling import judged
from bench.sampling.inputs import GIVEN, NORMAL, PEAKED, TIMED, InputValues
from bench.sampling.requests import Compare, Compared, CompareTimed, Expect, Expected, Outcome, Rates, Request
from bench.store.roofline import CEILING_BYTES, CEILING_FLOPS

R = TypeVar("R")

RATES_TURNS, RATES_S = 3, 0.2
"""The least number of turns, and the least seconds, in which a device's rates are measured."""


@dataclass(frozen=True)
class Draws:
    """What a replicate has drawn for all of its processes.

    `seed` is that of weights and inputs, `shifts` are the places of the inputs of each check. `core` is the core on
    which samples are taken, None if the system chooses it.
    """

    seed: int
    shifts: dict[str, int]
    core: int | None

    def checks(self, *, thorough: bool) -> dict[str, int]:
        """Return the places of the inputs that are checked; a normal input only in a thorough measurement."""
        return {check: shift for check, shift in self.shifts.items() if check != NORMAL or thorough}


class PointJudge:
    """The judge of members at one point, in one pool.

    `work` is the work of a call, None while there are no expected outputs. `peak` is the factor of the peaked input.
    `remark` says what is odd about what is expected, empty if nothing is.
    `best` are the best rates that are known of the device, None without memory to measure them. `given` is a
    file with the weights and values of the point, for members that take them from there.
    """

    def __init__(self, members: Sequence[Member], draws: Draws, timeout_s: float, heard: Heard) -> None:
        self.pool, self.point = members[0].judged_by
        self.work: Work | None = None
        self.peak = 1.0
        self.remark = ""
        self.best: Roof | None = None
        self.given: str | None = None
        self._members = members
        self._draws = draws
        self._timeout_s = timeout_s
        self._heard = heard

    def begin(self) -> None:
        """Make the expected outputs; if that can't be done, all members end."""
        try:
            reply = self.expect()
            if isinstance(reply, Expected):  # before the members are there, because they need the memory
                self.best = self._known_roof()
                self.work, self.peak, self.remark = reply.work, reply.peak, reply.remark
                return
        except Died as death:
            for member in self._members:
                member.end(death.status, death.detail, death)
            return
        for member in self._members:
            member.end(reply.status, reply.detail)
            member.own_cause = reply.own_cause and reply.status != "oom"  # which is no fault of the case

    def expect(self) -> Expected | Outcome:
        """Have the judge hold the expected outputs; return its reply. Raises Died."""
        shifts = self._draws.checks(thorough=any(member.thorough for member in self._members))
        if self.given is None and any(member.takes_weights for member in self._members):
            self.given = str(self.pool.folder / f"{GIVEN}-{id(self)}.pt")
        return self._ask(Expect(self.point, self._draws.seed, shifts, self.given))

    def close(self) -> None:
        """Remove the file with the weights and values of the point."""
        if self.given is not None:
            Path(self.given).unlink(missing_ok=True)
            self.given = None

    def inputs(self, member: Member) -> dict[str, InputValues]:
        """Return the values of the inputs that a member is checked with outside of the rounds."""
        shifts = self._draws.checks(thorough=member.thorough)
        return {name: InputValues(shift, self.peak if name == PEAKED else 1.0) for name, shift in shifts.items()}

    def compare(self, member: Member, check: str) -> dict[str, float]:
        """Return error and tolerance of a member's output; raises Ended if it is incorrect."""
        reply = self._compared(member, check, Compare(check, member.file(check)))
        assert reply.error is not None
        assert reply.tolerance is not None
        return {"error": reply.error, "tolerance": reply.tolerance}

    def compare_timed(self, member: Member) -> None:
        """Have the outputs of a member's timed calls compared; raises Ended if one is incorrect.

        The judge replays the calls that the member names. Raises Ended too if they are not of its samples, or fewer
        than it must keep, and Died if nothing could be expected of them.
        """
        reply = self._compared(member, TIMED, CompareTimed(member.file(TIMED)))
        assert member.kept is not None
        if objection := judged.objection(member.kept, member.keys, reply.calls):
            raise Ended("incorrect", f"{objection} ({TIMED})")

    def _compared(self, member: Member, check: str, request: Request[Compared | Outcome]) -> Compared:
        """Return how outputs compare that are handed over, once; raises Ended if they are incorrect."""
        if not member.has_handed_over(check):
            raise Ended("incorrect", f"output was not handed over ({check})")
        reply = self._ask(request)
        member.drop(check)
        if isinstance(reply, Outcome) and reply.status == "unsupported":
            raise Ended(reply.status, reply.detail)
        if isinstance(reply, Outcome):
            raise Died("error", reply.detail, is_outside=True)
        if reply.reason:
            member.metrics |= {"error": reply.error, "tolerance": reply.tolerance}
            raise Ended("incorrect", "; ".join(filter(None, [reply.reason, self.remark, member.remark])))
        return reply

    def check_rate(self, member: Member) -> None:
        """Record the device's highest known rates, and what is in doubt of the member's time.

        Raises Ended if the time is impossible for its work, unless other processes were busy meanwhile.
        """
        assert self.work is not None
        member.detail = "; ".join(filter(None, [self.remark, member.doubt, member.waiting.doubt]))
        member.metrics |= {"flops": self.work.flops, "least_bytes": self.work.least_bytes}
        if self.best is None:
            return
        held = rates.counted(self.point, self.work)
        objection = rates.objection(held, member.latency_s, self.best)
        if objection and (now := self._rates()):  # the best may be from a slower moment
            self.best = self.pool.roofs[rates.setting(self.point)] = self.best.raised(now)
            objection = rates.objection(held, member.latency_s, self.best)
        member.metrics |= {CEILING_FLOPS: self.best.flops_per_s, CEILING_BYTES: self.best.bytes_per_s}
        if objection and statistics.median(member.samples.others) <= rates.BUSY_SHARE:
            raise Ended("error", objection)
        doubt = f"perhaps an {objection}, but the machine was busy" if objection else ""
        member.detail = "; ".join(filter(None, [member.detail, doubt]))

    def _known_roof(self) -> Roof | None:
        """Return the best rates that this run knows of the device, None without memory to measure them."""
        setting = rates.setting(self.point)
        if setting not in self.pool.roofs and (now := self._rates()):
            self.pool.roofs[setting] = now
        return self.pool.roofs.get(setting)

    def _rates(self) -> Roof | None:
        """Return the rates of the device now, None if there is no memory to measure them; raises Died."""
        best = self._ask(Rates(RATES_TURNS, RATES_S, self._draws.core))
        return best if best.flops_per_s else None

    def _ask(self, request: Request[R]) -> R:
        """Return the reply of the judge; raises Died, which is no known fault of a member. Then another is forked."""
        try:
            return self.pool.judge(self.point).ask(request, self._timeout_s, self._heard, stage="reference")
        except Died as death:
            self.pool.replace(self.point)
            death.is_outside = True
            raise
