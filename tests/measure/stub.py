"""A case in this process, with a stand-in for the pipe to the parent; and a stand-in for NVML."""

import atexit
import gc
import itertools
import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
from msgspec import Struct

from bench.measure import forking
from bench.measure.forking import Channel
from bench.measure.judge import Judge
from bench.measure.server import CaseWork
from bench.plan.case import Point
from bench.sampling.inputs import AFTERWARDS, KEY_BITS, NORMAL, PEAKED, TIMED, InputValues
from bench.sampling.requests import Compare, CompareTimed, Expect, Finish, Prepare, Sample

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
    """Keeps the announced stages; there is no pipe."""

    def __init__(self) -> None:
        self.stages: list[str] = []

    def announce(self, stage: str) -> None:
        """Keep a stage."""
        self.stages.append(stage)


class Judging:
    """The judge of one point in this process, with the files for it."""

    def __init__(self) -> None:
        self.judge = Judge()

    def expect(self, at: Point, seed: int = SEED, given: str | None = None) -> dict[str, Any]:
        """Return the reply of the judge to a request to expect outputs."""
        return plain(self.judge.expect(Expect(at, seed, SHIFTS, given), Announcements()))

    def compare(self, check: str, file: str) -> dict[str, Any]:
        """Return the judge's reply on the output of a check."""
        return plain(self.judge.compare(Compare(check, file), Announcements()))

    def compare_timed(self, file: str) -> dict[str, Any]:
        """Return the judge's reply on the outputs of timed calls."""
        return plain(self.judge.compare_timed(CompareTimed(file), Announcements()))


def plain(reply: Struct) -> dict[str, Any]:
    """Return a reply as a dictionary: with the status ok, if it isn't an outcome that says another one."""
    return {"status": "ok", "detail": "", **msgspec.to_builtins(reply)}


class Case:
    """A case that a worker serves in this process; with a `first` point it has the weights of that one's layer."""

    def __init__(
        self,
        at: Point,
        implementation: str,
        *,
        thorough: bool = False,
        order_seed: int = 3,
        first: Point | None = None,
    ) -> None:
        self.at = at
        self.channel = Announcements()
        self.worker = CaseWork()
        self.judging = Judging()
        self.call_s = float("inf")
        self._rng = random.Random(order_seed)
        saved = path() if first else None
        expected = self.judging.expect(first or at, given=saved)
        inputs = {check: InputValues(shift) for check, shift in SHIFTS.items() if check != NORMAL or thorough}
        inputs[PEAKED] = InputValues(SHIFTS[PEAKED], expected.get("peak", 1.0))
        self.files = {check: path() for check in [*inputs, TIMED]}
        seed = SEED + 1 if first else SEED  # which then changes nothing
        self.request = Prepare(
            at, implementation, seed, order_seed, inputs, thorough, warm_up_s=0.02, core=None, cache="", given=saved,
            files={check: file for check, file in self.files.items() if check not in (TIMED, AFTERWARDS)},
        )  # fmt: skip

    def prepare(self) -> dict[str, Any]:
        """Return the reply to the request to prepare."""
        return plain(self.worker.prepare(self.request, self.channel))

    def sample(self, core: int | None = None) -> dict[str, Any]:
        """Return the reply to the request for a sample on a core."""
        keys = [self._rng.getrandbits(KEY_BITS) for _ in range(TIMINGS)]
        reply = plain(self.worker.sample(Sample(keys, core), self.channel))
        if reply["status"] == "ok":
            self.call_s = min(self.call_s, *reply["timings_s"])
        return reply

    def finish(self, core: int | None = None) -> dict[str, Any]:
        """Return the reply to the request to finish on a core."""
        files = {check: self.files[check] for check in (TIMED, AFTERWARDS)}
        return plain(self.worker.finish(Finish(self.call_s, core, files), self.channel))

    def measure(self, samples: int) -> dict[str, Any]:
        """Return the last reply of a case that is prepared, takes some samples and ends, or the first not ok."""
        reply = self.prepare()
        return self.rounds(samples) if reply["status"] == "ok" else reply

    def rounds(self, samples: int) -> dict[str, Any]:
        """Return the last reply of a prepared case that takes some samples and ends, or the first not ok."""
        for step in (*[self.sample] * samples, self.finish):
            reply = step()
            if reply["status"] != "ok":
                break
        return reply

    def reasons(self) -> dict[str, str]:
        """Return the mistake in each file that was handed over."""
        reasons = {}
        for check, file in self.files.items():
            if not Path(file).exists():
                continue
            reply = self.judging.compare_timed(file) if check == TIMED else self.judging.compare(check, file)
            reasons[check] = reply["reason"]
        return reasons


@contextmanager
def case(at: Point, implementation: str, **options: Any) -> Iterator[Case]:
    """Return a case with options of its own, and put back at the end what a process for one case leaves as it is."""
    process = Case(at, implementation, **options)
    gc.freeze()  # as in a process for one case: collecting garbage skips what torch's import and other tests have left
    try:
        with patch.object(forking, "has_children", return_value=False):  # of other tests
            yield process
    finally:
        if process.worker._case is not None:
            process.worker._case._sampling.close()
        gc.enable()
