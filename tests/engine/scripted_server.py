"""A server without torch, to test the engine with: what its workers and judges answer is made up.

A worker does what the name of its implementation says. It leaves its name where an output belongs, so that the judge
can do what the name says too.
"""

import contextlib
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

from bench.machine import monotonic
from bench.measure.forking import Channel, ForkServer, methods, serve
from bench.sampling.inputs import PEAKED, TIMED

OUTGROWN = 7
"""The tokens at which `test:outgrows` has no memory."""

GIB = 1 << 30

PIPE_S = 1e-6
"""The seconds that a request and its reply take beside what is timed."""

WORK = {"flops": 1000, "least_bytes": 8}

end = os._exit
"""How a worker ends itself."""


def kill(number: int) -> None:
    """Have a signal end the worker."""
    os.kill(os.getpid(), number)


UNDESCRIBED = {"test:undescribed": "no module", "nosuch:kernel": "implementation 'nosuch:kernel' can't be imported"}
"""The implementations beside which no layer can be described, and why."""


class Worker:
    """The process of one implementation, or one that does as a request of the name `do` says."""

    def __init__(self) -> None:
        self._name = ""
        self._samples = 0
        self._calls: list[list[Any]] = []
        self._factor = 1.0

    def check(self, request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
        """Find every implementation but `nosuch:kernel`, and every GPU but `cuda:1`; torch can't use `cuda:2`."""
        mistakes = [UNDESCRIBED["nosuch:kernel"]] if "nosuch:kernel" in request["needed"] else []
        mistakes += [device for device in request["devices"] if device == "cuda:1"]
        facts = {"torch": os.environ.get("TEST_TORCH", "2.0"), "gpus": {}}
        return {
            "mistakes": mistakes,
            "obstacles": {"cuda:2": "no CUDA device: too old"},
            "facts": facts,
            "runtimes": {},
            "modules": {},
        }

    def variable(self, request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
        """Reply with an environment variable."""
        return {"value": os.environ.get(request["name"])}

    def describe(self, request: dict[str, Any], channel: Channel) -> dict[str, Any]:
        """Describe a layer of one weight that brings in no code."""
        channel.announce("model")
        if request["implementation"] in UNDESCRIBED:
            return {"status": "error", "detail": UNDESCRIBED[request["implementation"]], "raised": "", "seen": {}}
        shape = [request["point"][name] for name in ("batch", "num_tokens", "channels")]
        seen = {"input": shape, "output": shape, "weights": [["weight", shape[1:]]], "modules": {}}
        return {"status": "ok", "detail": "", "raised": "", "seen": seen}

    def arrive(self, _request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
        """Need no time for that."""
        return {}

    def prepare(self, request: dict[str, Any], channel: Channel) -> dict[str, Any]:
        """Leave outputs for the judge, or end as the name says."""
        case = request["case"]
        self._name, self._items = case["implementation"], case["point"]["batch"]
        if self._name == "test:wavers":
            self._factor = 1.2 if case["thorough"] else 1 / 1.2
        LIVING.add(self)
        channel.announce("preparation")
        time.sleep(float(os.environ.get("TEST_PREPARE_S", "0")))
        channel.announce("first call")
        self._end()
        self._hand_over(request)
        metrics: dict[str, Any] = {"settled": True, "calls_per_timing": 1}
        if case["thorough"]:
            metrics["kernels"] = ["thorough"]
        outcome = self._outcome(metrics)
        has_outgrown = self._name == "test:outgrows" and case["point"]["num_tokens"] >= OUTGROWN
        if has_outgrown or (self._name.startswith("test:large") and len(LIVING) > 2):
            outcome |= {"status": "oom", "detail": "MemoryError"}
        free_bytes = 10 * GIB if case["point"]["device"] != "cpu" else None
        return {**outcome, "free_bytes": free_bytes, "call_s": _timing_s()}

    def sample(self, request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
        """Wait as long as the sample takes, or end in the second one as the name says."""
        self._samples += 1
        if self._samples == 2:
            match self._name:
                case "test:raises_in_rounds_of_b" if _is_b():
                    return {**self._outcome({}), "status": "error", "detail": "tired"}
                case "test:alarm":
                    kill(signal.SIGALRM)
        first_s = self._factor * _jittered(_timing_s())
        first_s /= 1 + self._name.startswith("test:half")
        timings = len(request["keys"])
        monotonic.sleep(PIPE_S + (timings * first_s if self._name != "test:impossible" else 0.0))
        self._calls += [[key, 0, item] for key in request["keys"] for item in range(self._items)]
        return self._claims(first_s, timings)

    def _claims(self, first_s: float, timings: int) -> dict[str, Any]:
        """Return what a sample claims; it is true unless the name says another thing."""
        used_s = timings * first_s
        match self._name:
            case "test:fast_clock":
                first_s *= 100
            case "test:impossible":
                first_s, used_s = 1e-9, timings * 1e-9
            case "test:two_cores":
                used_s *= 2
        sample = {"timings_s": [first_s] * timings, "switches": 0}
        return {"status": "ok", "sample": sample, "used_s": used_s}

    def finish(self, request: dict[str, Any], channel: Channel) -> dict[str, Any]:
        """End the rounds."""
        channel.announce("last calls")
        self._hand_over(request)
        return self._outcome({})

    def _hand_over(self, request: dict[str, Any]) -> None:
        """Give its name as each of the outputs, with the timed calls that it keeps: all, unless the name says less."""
        kept = self._calls[: 1 if self._name == "test:keeps_one" else None]
        kept += [[1, 0, 0]] * (self._name == "test:keeps_others")
        for path in request["files"].values():
            Path(path).write_text(json.dumps([self._name, kept]))

    def do(self, request: dict[str, Any], channel: Channel) -> dict[str, Any]:
        """Do as the request says."""
        channel.announce("warm-up")
        match request["what"]:
            case "print":
                print(json.dumps({"event": "do", "fake": True}), flush=True)
            case "tell":
                return {"warmed": WARMED, "variables": {**os.environ}}
            case "work":
                for _ in range(request["parts"]):
                    time.sleep(request["part_s"])
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
        return {"pid": os.getpid()}

    def _end(self) -> None:
        """End as the name says, unless TEST_MERCY is set."""
        if "TEST_MERCY" in os.environ:
            return
        match self._name:
            case "test:exits":
                end(1)
            case "test:exits_in_b" if _is_b():
                end(1)
            case "test:sleeps":
                time.sleep(60)
            case "test:killed":
                kill(signal.SIGKILL)
            case "test:killed_once" if _is_first(self._name):
                kill(signal.SIGKILL)
            case "test:killed_once_in_b" if _is_b() and _is_first(self._name):
                kill(signal.SIGKILL)

    def _outcome(self, metrics: dict[str, Any]) -> dict[str, Any]:
        status, detail = "ok", ""
        if self._name == "test:raises":
            status, detail = "error", "no"
        elif self._name == "test:raises_in_b" and _is_b():
            status, detail = "incorrect", "wrong"
        return {"status": status, "detail": detail, "metrics": metrics}


def misbehave(what: str, request: dict[str, Any], channel: Channel) -> None:
    """Do as only code does that is wrong, or wants to deceive."""
    match what:
        case "send":
            pipe(channel).sendall(request["line"].replace("ID", channel._id).encode() + b"\n")
        case "answer and exit":
            channel.reply("do", {"pid": os.getpid()})
            os._exit(3)
        case "close pipe":
            os.close(pipe(channel).fileno())
            time.sleep(60)
        case "spoil descriptors":
            for descriptor in range(51):
                with contextlib.suppress(OSError):
                    os.write(descriptor, b'{"event": "do"}\n')
            os.closerange(0, 51)
        case "fork and go on":
            os.fork()
        case "fork in C and go on":
            ctypes.CDLL(None).fork()
        case "leave a child":
            child = ctypes.CDLL(None).fork()
            if not child:
                os.setsid()
                time.sleep(60)
            Path(request["path"]).write_text(str(child))
            ctypes.string_at(0)


def pipe(channel: Channel) -> socket.socket:
    """Return the pipe, as code that looks for it gets it."""
    return channel._pipe


COARSE, COARSE_ERROR = ("sageattention", "test:coarse"), 0.03
"""Implementations of another accuracy, the first of which declares it, and their error."""


class Judge:
    """The process that computes what is expected, and compares outputs with it."""

    def __init__(self) -> None:
        self._expected: set[str] = set()

    def expect(self, request: dict[str, Any], channel: Channel) -> dict[str, Any]:
        """Reply with the work of a call, or end as TEST_REFERENCE says."""
        channel.announce("reference")
        match os.environ.get("TEST_REFERENCE"):
            case "exits":
                end(1)
            case "killed once" if _is_first("reference"):
                kill(signal.SIGKILL)
            case "oom":
                return {"status": "oom", "detail": "MemoryError", "own_cause": True}
        if request["point"]["device"] != "cpu" and "TEST_GPU" not in os.environ:
            return {"status": "unsupported", "detail": "no CUDA device", "own_cause": True}
        self._expected |= {*request["shifts"]}
        return {"status": "ok", "detail": "", "own_cause": True, "work": WORK, "peak": 4.0, "remark": ""}

    def compare(self, request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
        """Find an output right or wrong, or end, as the name says that is in the file."""
        if request["check"] not in self._expected:
            raise KeyError(request["check"])
        name, _ = json.loads(Path(request["outputs"]).read_text())
        return self._compared(name, request["check"], request["allowed"])

    def compare_timed(self, request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
        """Find the outputs of timed calls right or wrong, as the name says that is in the file, and name the calls."""
        name, calls = json.loads(Path(request["outputs"]).read_text())
        compared = self._compared(name, TIMED, request["allowed"])
        return {"status": "ok", "detail": "", **compared, "calls": calls}

    def _compared(self, name: str, check: str, allowed: float) -> dict[str, Any]:
        if name == "test:ends_the_judge":
            end(1)
        if name == "test:wrong" or (name == "test:wrong_when_timed" and check == TIMED):
            return {"error": 1.0, "tolerance": 1e-5, "reason": f"wrong numbers ({check})"}
        if name in COARSE:
            reason = "" if allowed >= COARSE_ERROR else f"is off ({check})"
            return {"error": COARSE_ERROR, "tolerance": max(1e-5, allowed), "reason": reason}
        return {"error": 1e-7 if check == PEAKED else 1e-8, "tolerance": 1e-5, "reason": ""}

    def rates(self, _request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
        """Take a millisecond, and reply with made-up rates."""
        monotonic.sleep(1e-3)
        return {"flops_per_s": 1e9, "bytes_per_s": 1e9}


def _timing_s() -> float:
    """Return the length of a timing."""
    return float(os.environ.get("TEST_TIMING_S", "1e-3"))


def _is_first(name: str) -> bool:
    """Return whether this is the first process that asks for a name, of all that share TEST_FOLDER."""
    if "TEST_FOLDER" not in os.environ:
        return False
    try:
        (Path(os.environ["TEST_FOLDER"]) / name.replace(":", "-")).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _is_b() -> bool:
    """Return whether the interpreter is that of side B."""
    return os.environ.get("TEST_SIDE") == "b"


def _jittered(value_s: float) -> float:
    """Return a time that differs a little from process to process."""
    return value_s * random.Random(threading.get_native_id()).uniform(0.999, 1.001)


WARMED: list[str] = []
"""For what the server was warmed: tracing, gradients, and the implementations and libraries that it was told."""

LIVING: set[Worker] = set()
"""The workers that are prepared and have not ended, if all are threads of this process."""


def work(channel: Channel) -> None:
    """Serve the requests of a worker."""
    worker = Worker()
    try:
        serve(methods(worker), channel)
    finally:
        LIVING.discard(worker)


def judge(channel: Channel) -> None:
    """Serve the requests of a judge."""
    serve(methods(Judge()), channel)


def warm(request: dict[str, Any]) -> None:
    """Compile nothing, and keep for what it was asked."""
    used = [name for name in ("traces", "gradients") if request[name]]
    WARMED.extend([*used, *request["implementations"], *request["libraries"]])


if __name__ == "__main__":
    ForkServer({"worker": work, "judge": judge}, warm).serve()
