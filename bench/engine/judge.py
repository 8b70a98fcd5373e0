"""The judge of a point in a replicate: what it is asked, and what it says of the point's work and of the device."""

import dataclasses
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.engine.member import APART, APART_S, Ended, Member
from bench.engine.worker import Died, Heard
from bench.machine import rates
from bench.machine.rates import Judgement
from bench.plan.layers import inputs_bytes
from bench.plan.work import Roof, Work
from bench.sampling.inputs import NORMAL, PEAKED, TIMED, InputValues, sets
from bench.store.roofline import CEILING_BYTES, CEILING_FLOPS

RATES_TURNS, RATES_S = 3, 0.2
"""The least number of turns, and the least seconds, in which a device's rates are measured."""


@dataclass(frozen=True)
class Draws:
    """What a replicate has drawn for all of its processes.

    `seed` is that of weights and inputs, `shifts` are the places of the inputs of each check. `numbers` is the key of
    the numbers of timed inputs. `core` is the core on which samples are taken, None if the system chooses it.
    """

    seed: int
    shifts: dict[str, int]
    numbers: int
    core: int | None

    def checks(self, *, thorough: bool) -> dict[str, int]:
        """Return the places of the inputs that are checked; a normal input only in a thorough measurement."""
        return {check: shift for check, shift in self.shifts.items() if check != NORMAL or thorough}


class Judge:
    """The judge of members at one point, in one pool.

    `work` is the work of a call, None while there are no expected outputs. `peak` is the factor of the peaked input.
    `best` are the best rates that are known of the device, None without memory to measure them. `cpu_s` are the
    processor's seconds that its process has used.
    """

    def __init__(self, members: Sequence[Member], draws: Draws, timeout_s: float, heard: Heard) -> None:
        self.pool, self.point = members[0].judged_by
        self.env_id = next((each.env_id for each in members if each.pool is self.pool), members[0].env_id)
        self.work: Work | None = None
        self.peak = 1.0
        self.best: Roof | None = None
        self.cpu_s = 0.0
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
                self.work, self.peak = Work(**reply["work"]), reply["peak"]
        except Died as death:
            for member in self._members:
                member.end(death.status, death.detail, death)
            return
        for member in self._members:
            member.end(reply["status"], reply["detail"])
            if member.status == "oom":  # the reference had no memory, which is no fault of the case
                member.metrics["own_cause"] = False

    def expect(self) -> dict[str, Any]:
        """Return the reply to the request for the expected outputs; raises Died."""
        shifts = self._draws.checks(thorough=any(member.thorough for member in self._members))
        point, seed = dataclasses.asdict(self.point), self._draws.seed
        saved = {"save": str(self.saved)} if any(member.weights for member in self._members) else {}
        return self._ask({"request": "expect", "point": point, "seed": seed, "shifts": shifts, **saved})

    @property
    def saved(self) -> Path:
        """The file with the weights and values of the point, for members that take them from there."""
        return self.pool.folder / f"{self.point.short_name(('layer',))}-{self._draws.seed}.pt"

    def inputs(self, member: Member) -> dict[str, InputValues]:
        """Return the values of the inputs that a member is checked with outside of the rounds."""
        shifts = self._draws.checks(thorough=member.thorough)
        return {name: InputValues(shift, self.peak if name == PEAKED else 1.0) for name, shift in shifts.items()}

    def compare(self, member: Member, check: str) -> dict[str, float]:
        """Return error and tolerance of a member's output; raises Ended if it is incorrect."""
        return self._compare(member, check, {"request": "compare", "check": check})

    def compare_timed(self, member: Member) -> None:
        """Compare the outputs of a member's timed calls; raises Ended if one is incorrect."""
        assert member.judged is not None
        kept = {"wholes": member.judged.wholes.kept, "parts": member.judged.parts.kept}
        self._compare(member, TIMED, {"request": "compare_timed", "numbers": self._draws.numbers, **kept})

    def _compare(self, member: Member, check: str, request: dict[str, Any]) -> dict[str, float]:
        path = member.file(check)
        reply = self._ask({**request, "path": str(path)})
        path.unlink(missing_ok=True)
        figures = {name: reply[name] for name in ("error", "tolerance")}
        if reply["reason"]:
            member.metrics |= figures
            raise Ended("incorrect", "; ".join(filter(None, [reply["reason"], member.remark])))
        return figures

    def check_rate(self, member: Member, call_s: float, time_again: Callable[[Work, Roof], Judgement]) -> None:
        """Record the device's highest known rates; raises Ended if the member's time is impossible for its work."""
        assert self.work is not None
        member.detail = member.doubt
        member.metrics |= {"flops": self.work.flops, "least_bytes": self.work.least_bytes}
        if self.best is None:
            return
        held = rates.counted(self.point, self.work)
        is_possible = rates.is_possible(held, call_s, self.best)
        judgement = Judgement(self.best) if is_possible else time_again(held, self.best)
        self.best = judgement.best
        rates.remember(self.env_id, self.point, dataclasses.asdict(self.best))
        member.metrics |= {CEILING_FLOPS: self.best.flops_per_s, CEILING_BYTES: self.best.bytes_per_s}
        member.detail = "; ".join(filter(None, [member.detail, judgement.doubt]))
        if judgement.objection:
            raise Ended("error", judgement.objection)

    def apart_s(self, member: Member, timings: int, claimed_s: float) -> float:
        """Return the most seconds of a sample that a member may say it made inputs; backward, also forward passes."""
        size = inputs_bytes(member.point)
        each_s = APART_S + (APART * size / self.best.bytes_per_s if self.best else 0.0)
        return timings * sets(member.calls, size) * each_s + (claimed_s if member.point.mode == "backward" else 0.0)

    def _known_roof(self) -> Roof | None:
        """Return the best rates that are known of the device, None without memory to measure them.

        Once in a run they are measured: what is kept lies in a file that anybody may write, and must be possible.
        """
        at, setting = (self.env_id, self.point), (self.env_id, rates.setting(self.point))
        recalled = rates.recall(*at)
        stored = Roof(**recalled) if recalled else None
        if stored and setting in self.pool.rated:
            return stored
        self.pool.rated.add(setting)
        now = self.rates(RATES_TURNS, RATES_S)
        if stored and now and not rates.is_believable(stored, now):
            rates.replace(*at, dataclasses.asdict(now))
            return now
        return stored or now

    def rates(self, turns: int = 1, least_s: float = 0.0) -> Roof | None:
        """Return the rates of the device now, None if there is no memory to measure them; raises Died."""
        reply = self._ask({"request": "rates", "turns": turns, "least_s": least_s, "core": self._draws.core})
        self.cpu_s = reply["cpu_s"]
        return Roof(reply["flops_per_s"], reply["bytes_per_s"]) if reply["flops_per_s"] else None

    def probe(self) -> tuple[float, float] | None:
        """Return the seconds of the speed probe's product and copy; None if the judge died or had no memory for it."""
        try:
            reply = self._ask({"request": "probe", "core": self._draws.core})
        except Died:
            with suppress(Died):
                self.expect()
            return None
        self.cpu_s = reply["cpu_s"]
        return (reply["product_s"], reply["copy_s"]) if reply["product_s"] else None

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the judge's reply; raises Died, which is no known fault of a member; then another one is forked."""
        try:
            return self.pool.judge(self.point).ask(request, self._timeout_s, self._heard, stage="reference")
        except Died as death:
            self.pool.replace_judge(self.point)
            death.is_outside = True
            raise
