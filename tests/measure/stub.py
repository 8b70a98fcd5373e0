"""A case in this process, with a stand-in for the pipe to the parent."""

import dataclasses
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from bench.measure import correctness, outputs, workload
from bench.measure.channel import Channel
from bench.measure.worker import Worker
from bench.plan.case import Point
from bench.sampling.checks import AFTERWARDS, NORMAL, PEAKED, TIMED

SEED = 7
SHIFTS = {NORMAL: 0, PEAKED: 0, TIMED: 5, AFTERWARDS: 9}


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
        reply = self.worker.sample({"timings": 3, "core": core}, self.channel)
        if reply["status"] == "ok":
            self.call_s = min(self.call_s, *reply["sample"]["timings_s"])
        return reply

    def finish(self, core: int | None = None) -> dict[str, Any]:
        """Return the reply to the request to finish on a core."""
        return self.worker.finish({"call_s": self.call_s, "core": core}, self.channel)

    def reasons(self) -> dict[str, str]:
        """Return what is incorrect in each file."""
        work, found = workload.make(self.at, SEED), {}
        like = [work.direction, *([work.x, *work.layer.parameters()] if work.with_gradients else [])]
        for path in self.folder.iterdir():
            check = correctness.expect(work, path.stem, SHIFTS[path.stem])
            found[path.stem] = correctness.compare(work, check, outputs.read(path, like)).reason
        return found


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
