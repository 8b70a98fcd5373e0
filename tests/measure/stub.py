"""A case in this process, with a stand-in for the pipe to the parent; and a stand-in for NVML."""

import atexit
import dataclasses
import gc
import itertools
import random
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bench.measure import forking
from bench.measure.forking import Channel
from bench.measure.judge import Judge
from bench.measure.server import CaseWork
from bench.plan.case import Point
from bench.sampling.inputs import AFTERWARDS, KEY_BITS, NORMAL, PEAKED, TIMED, InputValues

SEED = 7
SHIFTS = {NORMAL: 0, PEAKED: 0, AFTERWARDS: 9}
TIMINGS = 3
"""A sample's timings."""

_folder, _numbers = tempfile.TemporaryDirectory(), itertools.count()
atexit.register(_folder.cleanup)


def path() -> str:
    """Return the path of a new file for outputs."""
    return str(Path(_folder.name) / f"{next(_numbers)}.pt")


class Announcements(Channel):
    """Keeps the stages that are announced; there is no pipe."""

    def __init__(self) -> None:
        self.stages: list[str] = []

    def announce(self, stage: str) -> None:
        """Keep a stage."""
        self.stages.append(stage)


class Judging:
    """The judge of one point in this process, with the files for it."""

    def __init__(self) -> None:
        self.judge = Judge()

    def _asked(self, name: str, **request: Any) -> dict[str, Any]:
        reply: dict[str, Any] = getattr(self.judge, name)({"request": name, **request}, Announcements())
        return reply

    def expect(self, at: Point, seed: int, shifts: Mapping[str, int], given: str | None = None) -> dict[str, Any]:
        """Return the reply of the judge to a request to expect outputs."""
        return self._asked("expect", point=dataclasses.asdict(at), seed=seed, shifts=dict(shifts), given=given)

    def compare(self, check: str, file: str, allowed: float = 0.0) -> dict[str, Any]:
        """Return what the judge says of the output of a check."""
        return self._asked("compare", check=check, outputs=file, allowed=allowed)

    def compare_timed(self, file: str, allowed: float = 0.0) -> dict[str, Any]:
        """Return what the judge says of the outputs of timed calls."""
        return self._asked("compare_timed", outputs=file, allowed=allowed)


class Case:
    """A case that a worker serves in this process; with a `first` point it has the weights of that one's layer."""

    def __init__(
        self,
        at: Point,
        implementation: str,
        folder: Path,
        *,
        thorough: bool = False,
        order_seed: int = 3,
        first: Point | None = None,
    ) -> None:
        self.at = at
        self.folder = folder
        self.channel = Announcements()
        self.worker = CaseWork()
        self.judging = Judging()
        self.call_s = float("inf")
        self._rng = random.Random(order_seed)
        saved = path() if first else None
        expected = self.judging.expect(first or at, SEED, SHIFTS, saved)
        inputs = {check: InputValues(shift) for check, shift in SHIFTS.items() if check != NORMAL or thorough}
        inputs[PEAKED] = InputValues(SHIFTS[PEAKED], expected.get("peak", 1.0))
        self.request = {
            "point": dataclasses.asdict(at),
            "implementation": implementation,
            "seed": SEED,
            "order_seed": order_seed,
            "inputs": inputs,
            "thorough": thorough,
            "warm_up_s": 0.02,
            "core": None,
            "cache": "",
            "given": saved,
        }
        self.files = {check: path() for check in [*inputs, TIMED]}

    def prepare(self) -> dict[str, Any]:
        """Return the reply to the request to prepare."""
        early = {check: file for check, file in self.files.items() if check not in (TIMED, AFTERWARDS)}
        return self.worker.prepare({"case": self.request, "files": early}, self.channel)

    def sample(self, core: int | None = None) -> dict[str, Any]:
        """Return the reply to the request for a sample on a core."""
        keys = [self._rng.getrandbits(KEY_BITS) for _ in range(TIMINGS)]
        reply = self.step("sample", keys=keys, core=core)
        if reply["status"] == "ok":
            self.call_s = min(self.call_s, *reply["sample"]["timings_s"])
        return reply

    def finish(self, core: int | None = None) -> dict[str, Any]:
        """Return the reply to the request to finish on a core."""
        files = {check: self.files[check] for check in (TIMED, AFTERWARDS)}
        return self.step("finish", call_s=self.call_s, core=core, files=files)

    def step(self, name: str, **request: Any) -> dict[str, Any]:
        """Return the reply to the request for a step."""
        return self.worker.step({"request": name, **request}, self.channel)

    def measure(self, samples: int) -> dict[str, Any]:
        """Return the last reply of a case that is prepared, takes so many samples and ends, or the first one not ok."""
        reply = self.prepare()
        return self.rounds(samples) if reply["status"] == "ok" else reply

    def rounds(self, samples: int) -> dict[str, Any]:
        """Return the last reply of a prepared case that takes so many samples and ends, or the first one not ok."""
        for step in (*[self.sample] * samples, self.finish):
            reply = step()
            if reply["status"] != "ok":
                break
        return reply

    def reasons(self) -> dict[str, str]:
        """Return what is incorrect in each file that was handed over."""
        reasons = {}
        for check, file in self.files.items():
            if not Path(file).exists():
                continue
            reply = self.judging.compare_timed(file) if check == TIMED else self.judging.compare(check, file)
            reasons[check] = reply["reason"]
        return reasons


@contextmanager
def case(at: Point, implementation: str, folder: Path, **options: Any) -> Iterator[Case]:
    """Return a case with options of its own, and put back at the end what a process for one case leaves as it is."""
    process = Case(at, implementation, folder, **options)
    try:
        with patch.object(forking, "has_children", return_value=False):  # those of other tests
            yield process
    finally:
        if process.worker._case is not None:
            process.worker._case._sampling.close()
        gc.enable()
