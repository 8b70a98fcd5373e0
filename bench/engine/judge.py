"""The judge of a point in a replicate: what it is asked, and what it says of the point's work and of the device."""

import dataclasses
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.engine.member import Ended, Member
from bench.engine.worker import Died, Heard
from bench.machine import rates
from bench.plan.work import Roof, Work
from bench.sampling import judged
from bench.sampling.inputs import GIVEN, NORMAL, PEAKED, TIMED, InputValues, TimedCall
from bench.store import units
from bench.store.roofline import CEILING_BYTES, CEILING_FLOPS
from impls.catalogue import name_of

ALLOWED = "5%"
"""A share for an implementation of another accuracy: int8 and FP8 of attention are off by some percent."""

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
            if reply["status"] == "ok":  # before the members are there, because they need the memory
                self.best = self._known_roof()
                self.work, self.peak, self.remark = Work(**reply["work"]), reply["peak"], reply["remark"]
        except Died as death:
            for member in self._members:
                member.end(death.status, death.detail, death)
            return
        for member in self._members:
            member.end(reply["status"], reply["detail"])
            if member.status == "oom" or not reply["own_cause"]:  # which is no fault of the case
                member.metrics["own_cause"] = False

    def expect(self) -> dict[str, Any]:
        """Have the judge hold the expected outputs; return its reply. Raises Died."""
        shifts = self._draws.checks(thorough=any(member.thorough for member in self._members))
        if self.given is None and any(member.takes_weights for member in self._members):
            self.given = str(self.pool.folder / f"{GIVEN}-{id(self)}.pt")
        named = {"point": dataclasses.asdict(self.point), "seed": self._draws.seed, "shifts": shifts}
        return self._ask({"request": "expect", **named, "given": self.given})

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
        reply = self._compare(member, check, {"request": "compare", "check": check})
        return {name: reply[name] for name in ("error", "tolerance")}

    def compare_timed(self, member: Member) -> None:
        """Have the outputs of a member's timed calls compared; raises Ended if one is incorrect.

        The judge replays the calls that the member names. Raises Ended too if they are not of its samples, or fewer
        than it must keep, and Died if nothing could be expected of them.
        """
        reply = self._compare(member, TIMED, {"request": "compare_timed"})
        assert member.kept is not None
        if objection := judged.objection(member.kept, member.keys, [TimedCall(*call) for call in reply["calls"]]):
            raise Ended("incorrect", f"{objection} ({TIMED})")

    def _compare(self, member: Member, check: str, request: dict[str, Any]) -> dict[str, Any]:
        if not member.has_handed_over(check):
            raise Ended("incorrect", f"output was not handed over ({check})")
        own = name_of(member.implementation).accuracy
        allowed = (member.allow_error or 0.0) if own else 0.0
        reply = self._ask({**request, "allowed": allowed, "outputs": member.file(check)})
        member.drop(check)
        if reply.get("status", "ok") == "unsupported":
            raise Ended(reply["status"], reply["detail"])
        if reply.get("status", "ok") != "ok":
            raise Died("error", reply["detail"], is_outside=True)
        if reply["reason"]:
            member.metrics |= {name: reply[name] for name in ("error", "tolerance")}
            is_off = own and not allowed and reply["error"] is not None
            hint = f"it computes in {own}: --allow-error {ALLOWED} accepts it up to that share" if is_off else ""
            raise Ended("incorrect", "; ".join(filter(None, [reply["reason"], hint, self.remark, member.remark])))
        return reply

    def check_rate(self, member: Member) -> None:
        """Record the device's highest known rates, and what is in doubt of the member's time.

        Raises Ended if the time is impossible for its work, unless other processes were busy meanwhile.
        """
        assert self.work is not None
        own, error = name_of(member.implementation).accuracy, member.metrics.get("error")
        off = f"computes in {own}: off by {units.percent(error)} of the largest value" if own and error else ""
        member.detail = "; ".join(filter(None, [self.remark, member.doubt, member.waiting.doubt, off]))
        member.metrics |= {"flops": self.work.flops, "least_bytes": self.work.least_bytes}
        if self.best is None:
            return
        held = rates.counted(self.point, self.work)
        objection = rates.objection(held, member.latency_s, self.best)
        if objection and (now := self.rates(RATES_TURNS, RATES_S)):  # the best may be from a slower moment
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
        if setting not in self.pool.roofs and (now := self.rates(RATES_TURNS, RATES_S)):
            self.pool.roofs[setting] = now
        return self.pool.roofs.get(setting)

    def rates(self, turns: int = 1, least_s: float = 0.0) -> Roof | None:
        """Return the rates of the device now, None if there is no memory to measure them; raises Died."""
        reply = self._ask({"request": "rates", "turns": turns, "least_s": least_s, "core": self._draws.core})
        return Roof(reply["flops_per_s"], reply["bytes_per_s"]) if reply["flops_per_s"] else None

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the reply of the judge; raises Died, which is no known fault of a member. Then another is forked."""
        try:
            return self.pool.judge(self.point).ask(request, self._timeout_s, self._heard, stage="reference")
        except Died as death:
            self.pool.replace(self.point)
            death.is_outside = True
            raise
