"""The judge of a point in a replicate: requests to it, and its replies on outputs, work and the device."""

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
"""The least turns, and the least seconds, for measuring a device's rates."""


@dataclass(frozen=True)
class Draws:
    """The random draws of a replicate for all its processes.

    `seed` is the seed of weights and inputs, `shifts` has the offset of the inputs of each check. `core` is the core
    on which samples are taken, None if the system chooses it.
    """

    seed: int
    shifts: dict[str, int]
    core: int | None

    def checks(self, *, thorough: bool) -> dict[str, int]:
        """Return the offsets of the inputs to check; a normal input only in a thorough measurement."""
        return {check: shift for check, shift in self.shifts.items() if check != NORMAL or thorough}


class PointJudge:
    """The judge of members at one point, in one pool.

    `work` is the work of a call, None before there are expected outputs. `peak` is the factor of the peaked input.
    `remark` says what is odd about the expected outputs, if anything.
    `best` has the best known rates of the device, None without memory to measure them. `given` is a file with the
    weights and values of the point, for members that take them from there.
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
        """Make the expected outputs; if that fails, all members end."""
        try:
            reply = self.expect()
            if isinstance(reply, Expected):  # before the members start, because they need the memory
                self.best = self._known_roof()
                self.work, self.peak, self.remark = reply.work, reply.peak, reply.remark
                return
        except Died as death:
            for member in self._members:
                member.end(death.status, death.detail, death)
            return
        for member in self._members:
            member.end(reply.status, reply.detail)
            member.own_cause = reply.own_cause and reply.status != "oom"  # not the case's fault

    def expect(self) -> Expected | Outcome:
        """Have the judge compute and keep the expected outputs, and return its reply; raises Died."""
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
        """Return the values of a member's inputs in the checks outside of rounds."""
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

        The judge replays the calls that the member names. Raises Ended also if they aren't from its samples or are too
        few, and Died if the judge couldn't compute what to expect.
        """
        reply = self._compared(member, TIMED, CompareTimed(member.file(TIMED)))
        assert member.kept is not None
        if objection := judged.objection(member.kept, member.keys, reply.calls):
            raise Ended("incorrect", f"{objection} ({TIMED})")

    def _compared(self, member: Member, check: str, request: Request[Compared | Outcome]) -> Compared:
        """Return the comparison of handed-over outputs, and remove them; raises Ended if they are incorrect."""
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
            raise Ended("incorrect", "; ".join(filter(None, [reply.reason, self.remark])))
        return reply

    def check_rate(self, member: Member) -> None:
        """Record the device's highest known rates and any doubts about the member's time.

        Raises Ended if the time is impossible for its work, unless other processes were busy meanwhile.
        """
        assert self.work is not None
        member.detail = "; ".join(filter(None, [self.remark, member.doubt, member.waiting.doubt]))
        member.metrics |= {"flops": self.work.flops, "least_bytes": self.work.least_bytes}
        if self.best is None:
            return
        held = rates.counted(self.point, self.work)
        objection = rates.objection(held, member.latency_s, self.best)
        if objection and (now := self._rates()):  # the best rates may come from a slower moment
            self.best = self.pool.roofs[rates.setting(self.point)] = self.best.raised(now)
            objection = rates.objection(held, member.latency_s, self.best)
        member.metrics |= {CEILING_FLOPS: self.best.flops_per_s, CEILING_BYTES: self.best.bytes_per_s}
        if objection and statistics.median(member.samples.others) <= rates.BUSY_SHARE:
            raise Ended("error", objection)
        doubt = f"perhaps an {objection}, but the machine was busy" if objection else ""
        member.detail = "; ".join(filter(None, [member.detail, doubt]))

    def _known_roof(self) -> Roof | None:
        """Return the device's best rates in this run, None without memory to measure them."""
        setting = rates.setting(self.point)
        if setting not in self.pool.roofs and (now := self._rates()):
            self.pool.roofs[setting] = now
        return self.pool.roofs.get(setting)

    def _rates(self) -> Roof | None:
        """Return the device's current rates, None without memory to measure them; raises Died."""
        best = self._ask(Rates(RATES_TURNS, RATES_S, self._draws.core))
        return best if best.flops_per_s else None

    def _ask(self, request: Request[R]) -> R:
        """Return the reply of the judge; raises Died, which isn't blamed on a member, and replaces the judge."""
        try:
            return self.pool.judge(self.point).ask(request, self._timeout_s, self._heard, stage="reference")
        except Died as death:
            self.pool.replace(self.point)
            death.is_outside = True
            raise
