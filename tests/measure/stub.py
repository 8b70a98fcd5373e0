"""A case in this process, with a stand-in for the pipe to the parent."""

import dataclasses
import gc
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from bench.measure.channel import Channel
from bench.measure.judge import Judge
from bench.measure.worker import Worker
from bench.plan.case import Point
from bench.sampling.inputs import AFTERWARDS, NORMAL, PEAKED, TIMED, JudgedCalls

SEED = 7
SHIFTS = {NORMAL: 0, PEAKED: 0, AFTERWARDS: 9}
NUMBERS, WHOLE, TIMINGS = 17, 18, 3
"""The keys of the numbers of timed inputs and of the timing whose whole output is judged, and a sample's timings."""


class Announcements(Channel):
    """Keeps the stages that are announced; there is no pipe."""

    def __init__(self) -> None:
        self.stages: list[str] = []

    def announce(self, stage: str) -> None:
        """Keep a stage."""
        self.stages.append(stage)


class Case:
    """A case that a worker serves in this process."""

    def __init__(self, at: Point, implementation: str, folder: Path, *, thorough: bool, order_seed: int) -> None:
        self.at = at
        self.folder = folder
        self.channel = Announcements()
        self.worker = Worker()
        self.call_s = float("inf")
        rng = random.Random(order_seed)
        self.judged = JudgedCalls(rng, WHOLE, batch=at.batch, timings=TIMINGS, rounds=1, mode=at.mode)
        self._has_begun = False
        shifts = {check: shift for check, shift in SHIFTS.items() if check != NORMAL or thorough}
        self.request = {
            "point": dataclasses.asdict(at),
            "implementation": implementation,
            "seed": SEED,
            "order_seed": order_seed,
            "shifts": shifts,
            "thorough": thorough,
            "warm_up_s": 0.02,
            "core": None,
            "folder": str(folder),
        }

    def prepare(self) -> dict[str, Any]:
        """Return the reply to the request to prepare."""
        return self.worker.prepare({"case": self.request}, self.channel)

    def sample(self, core: int | None = None) -> dict[str, Any]:
        """Return the reply to the request for a sample on a core."""
        self.begin()
        reply = self.worker.sample({"keys": self.judged.next_keys(), "core": core}, self.channel)
        if reply["status"] != "ok":
            return reply
        self.call_s = min(self.call_s, *reply["sample"]["timings_s"])
        kept = self.judged.draw(reply["held"])
        outcome = self.worker.keep(kept, self.channel) if kept else reply
        return reply if outcome["status"] == "ok" else outcome

    def begin(self) -> None:
        """Begin the rounds, unless they have begun."""
        if not self._has_begun:
            request = {"numbers": NUMBERS, "timings": TIMINGS, "parts": self.judged.most}
            assert self.worker.begin(request, self.channel)["status"] == "ok"
            self._has_begun = True

    def finish(self, core: int | None = None) -> dict[str, Any]:
        """Return the reply to the request to finish on a core."""
        self.begin()
        return self.worker.finish({"call_s": self.call_s, "core": core}, self.channel)

    def reasons(self) -> dict[str, str]:
        """Return what is incorrect in each file."""
        judge, reasons = Judge(), {}
        judge.expect({"point": dataclasses.asdict(self.at), "seed": SEED, "shifts": SHIFTS}, self.channel)
        for path in self.folder.iterdir():
            if path.stem == TIMED:
                whole = [NUMBERS, WHOLE, self.judged.whole]
                request = {"whole": whole, "numbers": NUMBERS, "parts": self.judged.parts, "path": str(path)}
                reply = judge.compare_timed(request, self.channel)
            else:
                request = {"check": path.stem, "shift": SHIFTS[path.stem], "path": str(path)}
                reply = judge.compare(request, self.channel)
            reasons[path.stem] = reply["reason"]
        return reasons


@contextmanager
def case(at: Point, implementation: str, folder: Path, *, thorough: bool = True, order_seed: int = 3) -> Iterator[Case]:
    """Return a case, and put back at the end what a process for one case leaves as it is."""
    threads, made = torch.get_num_threads(), Case(at, implementation, folder, thorough=thorough, order_seed=order_seed)
    try:
        yield made
    finally:
        if made.worker._case is not None:
            made.worker._case._sampling.close()
        gc.enable()
        torch.set_num_threads(threads)
