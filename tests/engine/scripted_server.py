"""A server without torch, for tests of the engine; the answers of its workers and judges are made up.

A worker does what the name of its implementation says. It leaves its name where an output belongs, so that the judge
can do what the name says too.
"""

import ctypes
import json
import os
import random
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

from msgspec import Struct

from bench.machine import monotonic
from bench.measure.forking import Channel, ForkServer, Serve, serve
from bench.plan.work import Roof, Work
from bench.sampling.inputs import PEAKED, TIMED, TimedCall
from bench.sampling.requests import (
    Arrive,
    Check,
    Checked,
    Compare,
    Compared,
    CompareTimed,
    Describe,
    Expect,
    Expected,
    Finish,
    Looked,
    Outcome,
    Prepare,
    Prepared,
    Rates,
    Request,
    Sample,
    Sampled,
    Warm,
)  # fmt: skip

OUTGROWN = 7
"""The tokens at which `test:outgrows` has no memory."""

PIPE_S = 1e-6
"""The seconds that a request and its reply take besides the timed work."""

WORK = Work(1000, 8)

end = os._exit
"""How a worker ends itself."""


def kill(number: int) -> None:
    """Have a signal end the worker."""
    os.kill(os.getpid(), number)


NO_SUCH = "implementation 'nosuch:kernel' can't be imported"


class Told(Struct):
    """A process's claims about itself."""

    pid: int
    warmed: list[str] = []
    variables: dict[str, str] = {}


class Do(Request[Told], frozen=True):
    """Do the requested work: a number of parts, each with a number of seconds."""

    what: str
    parts: int = 0
    part_s: float = 0.0
    line: str = ""
    path: str = ""


def checked(request: Check, _channel: Channel) -> Checked:
    """Find every implementation but `nosuch:kernel`, and every GPU but `cuda:1`; torch can't use `cuda:2`."""
    mistakes = [NO_SUCH] if "nosuch:kernel" in request.needed else []
    mistakes += [device for device in request.devices if device == "cuda:1"]
    facts = {"torch": os.environ.get("TEST_TORCH", "2.0"), "gpus": {}}
    return Checked(mistakes, {"cuda:2": "no CUDA device: too old"}, facts, {}, {})


def described(request: Describe, channel: Channel) -> Looked:
    """Describe a layer of one weight that brings in no code."""
    channel.announce("model")
    shape = [request.point.batch, request.point.num_tokens, request.point.channels]
    seen = {"input": shape, "output": shape, "weights": [["weight", shape[1:]]], "modules": {}}
    return Looked("ok", seen=seen)


class Worker:
    """The process of one implementation."""

    def __init__(self) -> None:
        self._name = ""
        self._samples = 0
        self._calls: list[TimedCall] = []

    def prepare(self, request: Prepare, channel: Channel) -> Prepared | Outcome:
        """Leave outputs for the judge, or end as the name says."""
        self._name, self._items = request.implementation, request.point.batch
        LIVING.add(self)
        channel.announce("preparation")
        channel.announce("first call")
        self._end()
        self._hand_over(request.files)
        has_outgrown = self._name == "test:outgrows" and request.point.num_tokens >= OUTGROWN
        if has_outgrown or (self._name.startswith("test:large") and len(LIVING) > 2):
            return Outcome("oom", "MemoryError")
        outcome = self._outcome()
        metrics: dict[str, Any] = {"settled": True, "calls_per_timing": 1}
        if request.thorough:
            metrics["kernels"] = ["thorough"]
        return Prepared(metrics, _timing_s(), 1) if outcome.status == "ok" else outcome

    def sample(self, request: Sample, _channel: Channel) -> Sampled | Outcome:
        """Wait as long as the sample takes, or end in the second one as the name says."""
        self._samples += 1
        if self._samples == 2 and self._name == "test:alarm":
            kill(signal.SIGALRM)
        first_s = _jittered(_timing_s()) / (1 + self._name.startswith("test:half"))
        timings = len(request.keys)
        monotonic.sleep(PIPE_S + (timings * first_s if self._name != "test:impossible" else 0.0))
        self._calls += [TimedCall(key, 0, item) for key in request.keys for item in range(self._items)]
        return self._claims(first_s, timings)

    def _claims(self, first_s: float, timings: int) -> Sampled:
        """Return the claims of a sample, which are true unless the name says otherwise."""
        used_s = timings * first_s
        match self._name:
            case "test:fast_clock":
                first_s *= 100
            case "test:impossible":
                first_s, used_s = 1e-9, timings * 1e-9
            case "test:two_cores":
                used_s *= 2
        return Sampled([first_s] * (timings - (self._name == "test:loses_a_timing")), 0, used_s)

    def finish(self, request: Finish, channel: Channel) -> Outcome:
        """End the rounds."""
        channel.announce("last calls")
        self._hand_over(request.files)
        return self._outcome()

    def _hand_over(self, files: dict[str, str]) -> None:
        """Give its name as each of the outputs, with the timed calls that it keeps: all, unless the name says less."""
        kept = self._calls[: 1 if self._name == "test:keeps_one" else None]
        kept += [TimedCall(1, 0, 0)] * (self._name == "test:keeps_others")
        for path in files.values():
            Path(path).write_text(json.dumps([self._name, kept]))

    def _end(self) -> None:
        """End as the name says, unless TEST_MERCY is set."""
        if "TEST_MERCY" in os.environ:
            return
        match self._name:
            case "test:exits":
                end(1)
            case "test:sleeps":
                time.sleep(60)
            case "test:killed":
                kill(signal.SIGKILL)
            case "test:killed_once" if _is_first(self._name):
                kill(signal.SIGKILL)

    def _outcome(self) -> Outcome:
        return Outcome("error", "no") if self._name == "test:raises" else Outcome()


def do(request: Do, channel: Channel) -> Told:
    """Do as the request says."""
    channel.announce("warm-up")
    match request.what:
        case "print":
            print(json.dumps({"type": "Replied", "id": channel._id, "reply": {"pid": 0}}), flush=True)
        case "tell":
            return Told(os.getpid(), WARMED, {**os.environ})
        case "work":
            for _ in range(request.parts):
                time.sleep(request.part_s)
                channel.announce("warm-up")
        case "hang":
            time.sleep(60)
        case "exit":
            print("last words", file=sys.stderr, flush=True)
            end(3)
        case "kill":
            kill(signal.SIGKILL)
        case what:
            misbehave(what, request, channel)
    return Told(os.getpid())


def misbehave(what: str, request: Do, channel: Channel) -> None:
    """Do as only code does that is wrong, or wants to deceive."""
    match what:
        case "send":
            pipe(channel).sendall(request.line.replace("ID", channel._id).encode() + b"\n")
        case "close pipe":
            os.close(pipe(channel).fileno())
            time.sleep(60)
        case "leave a child":
            reader, writer = os.pipe()
            child = ctypes.CDLL(None).fork()
            if not child:
                os.setsid()
                os.write(writer, b"!")
                time.sleep(60)
            os.read(reader, 1)  # before, the child would end with the worker's group
            Path(request.path).write_text(str(child))
            ctypes.string_at(0)


def pipe(channel: Channel) -> socket.socket:
    """Return the pipe, as code that looks for it gets it."""
    return channel._pipe


class Judge:
    """The process that computes the expected outputs, and compares outputs with them."""

    def __init__(self) -> None:
        self._expected: set[str] = set()

    def expect(self, request: Expect, channel: Channel) -> Expected | Outcome:
        """Reply with the work of a call, or end as TEST_REFERENCE says."""
        channel.announce("reference")
        match os.environ.get("TEST_REFERENCE"):
            case "exits":
                end(1)
            case "killed once" if _is_first("reference"):
                kill(signal.SIGKILL)
            case "unsupported":
                return Outcome("unsupported", "fails in float64")
        if request.point.device != "cpu" and "TEST_GPU" not in os.environ:
            return Outcome("unsupported", "no CUDA device")
        self._expected |= {*request.shifts}
        return Expected(WORK, 4.0, "")

    def compare(self, request: Compare, _channel: Channel) -> Compared:
        """Find an output right or wrong, or end, as the name says that is in the file."""
        if request.check not in self._expected:
            raise KeyError(request.check)
        name, _ = json.loads(Path(request.outputs).read_text())
        return self._compared(name, request.check)

    def compare_timed(self, request: CompareTimed, _channel: Channel) -> Compared:
        """Find the outputs of timed calls right or wrong, as the name says that is in the file, and name the calls."""
        name, calls = json.loads(Path(request.outputs).read_text())
        compared = self._compared(name, TIMED)
        compared.calls = [TimedCall(*call) for call in calls]
        return compared

    def _compared(self, name: str, check: str) -> Compared:
        if name == "test:ends_the_judge":
            end(1)
        if name == "test:wrong" or (name == "test:wrong_when_timed" and check == TIMED):
            return Compared(1.0, 1e-5, f"wrong numbers ({check})")
        return Compared(1e-7 if check == PEAKED else 1e-8, 1e-5, "")

    def rates(self, _request: Rates, _channel: Channel) -> Roof:
        """Take a millisecond, and reply with made-up rates."""
        monotonic.sleep(1e-3)
        return Roof(1e9, 1e9)


def _timing_s() -> float:
    """Return the length of a timing."""
    return float(os.environ.get("TEST_TIMING_S", "1e-3"))


def _is_first(name: str) -> bool:
    """Return whether this is the first process with TEST_FOLDER that asks for a name."""
    if "TEST_FOLDER" not in os.environ:
        return False
    try:
        (Path(os.environ["TEST_FOLDER"]) / name.replace(":", "-")).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _jittered(value_s: float) -> float:
    """Return a time that differs a little from process to process."""
    return value_s * random.Random(threading.get_native_id()).uniform(0.999, 1.001)


WARMED: list[str] = []
"""The warm-up of the server: tracing, gradients, and the given implementations and libraries."""

LIVING: set[Worker] = set()
"""The workers that are prepared and have not ended, if all are threads of this process."""


def work(channel: Channel) -> None:
    """Serve the requests of a worker, or do as a request says."""
    worker = Worker()
    served: dict[type, Serve] = {Check: checked, Describe: described, Arrive: lambda *_: None, Do: do}
    served |= {Prepare: worker.prepare, Sample: worker.sample, Finish: worker.finish}
    try:
        serve(served, channel)
    finally:
        LIVING.discard(worker)


def judge(channel: Channel) -> None:
    """Serve the requests of a judge."""
    own = Judge()
    served: dict[type, Serve] = {Expect: own.expect, Compare: own.compare}
    serve(served | {CompareTimed: own.compare_timed, Rates: own.rates}, channel)


def warm(request: Warm) -> None:
    """Compile nothing, and keep the request."""
    used = [name for name in ("traces", "gradients") if getattr(request, name)]
    WARMED.extend([*used, *request.implementations, *request.libraries])


if __name__ == "__main__":
    ForkServer({"worker": work, "judge": judge}, warm).serve()
