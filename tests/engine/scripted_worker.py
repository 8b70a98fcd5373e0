"""A worker that does as it is told, to test the parent with: it speaks the protocol by itself, without torch."""

import contextlib
import ctypes
import json
import os
import random
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

from bench.measure.channel import Channel, serve


def do(request: dict[str, Any], channel: Channel) -> dict[str, Any]:
    """Do what the request says, as the implementation `culprit` in its warm-up."""
    channel.announce("culprit", "warm-up")
    match request["what"]:
        case "print":
            print(json.dumps({"event": "do", "fake": True}), flush=True)
        case "work":
            for _ in range(request["parts"]):
                time.sleep(request["part_s"])
                channel.announce("culprit", "warm-up")
        case "hang":
            time.sleep(60)
        case "exit":
            print("last words", file=sys.stderr, flush=True)
            os._exit(3)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case what:
            misbehave(what, request, channel)
    return {"pid": os.getpid()}


def misbehave(what: str, request: dict[str, Any], channel: Channel) -> None:
    """Do what only code does that is wrong, or wants to deceive."""
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
    """Return the pipe, as only code that looks for it gets hold of it."""
    return channel._pipe


VISIT_S = float(os.environ.get("TEST_VISIT_S", "0"))

TORCH = os.environ.get("TEST_TORCH", "2.0")


def check(request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
    """Find every implementation but `nosuch`."""
    mistake = "implementation 'nosuch:kernel' can't be imported"
    mistakes = [mistake] if "nosuch:kernel" in request["implementations"] else []
    return {"mistakes": mistakes, "facts": {"torch": TORCH, "gpus": {}}}


def warm(_request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
    """Compile nothing."""
    return {}


def visit(request: dict[str, Any], channel: Channel) -> dict[str, Any]:
    """Report slots of made-up times, or end as the implementation's name says."""
    outcomes: dict[str, dict[str, Any]] = {}
    end_before_anyone(request, channel)
    looked = {"kernels": ["thoroughly"]} if request["thorough"] else {}
    time.sleep(VISIT_S)
    for name in request["implementations"]:
        channel.announce(name, "first call")
        end_at(name, request)
        outcomes[name] = {
            "status": "ok",
            "detail": "",
            "metrics": {"slots": SLOTS, "settled": True, "calls_per_timing": 2, **looked},
        }
        if name == "test:raises":
            outcomes[name] = {"status": "error", "detail": "no", "metrics": {}}
        if request["point"]["device"] != "cpu":
            outcomes[name] = {"status": "unsupported", "detail": "no CUDA device", "metrics": {}}
        if name.startswith("test:half"):
            slots = {**SLOTS, "timings_s": [[jittered(0.5e-3), 1e-3]] * 3}
            outcomes[name]["metrics"] |= {"slots": slots}
    known = request["ceiling"] or {"flops_per_s": 0.0, "bytes_per_s": 0.0}
    seen = {name: rate + 1.0 for name, rate in known.items()}
    return {"outcomes": outcomes, "busy_s": 0.0, "ceiling": seen}


def end_before_anyone(request: dict[str, Any], channel: Channel) -> None:
    """End as the name of one of the implementations says, while none of them, or another one, is at work."""
    if "test:takes_the_reference_down" in request["implementations"]:
        channel.announce("", "reference")
        os._exit(1)
    if is_first("test:reference_killed_once", request):
        channel.announce("", "reference")
        os.kill(os.getpid(), signal.SIGKILL)
    if "test:alarm" in request["implementations"]:
        channel.announce("eager", "rounds")
        os.kill(os.getpid(), signal.SIGALRM)


def end_at(name: str, request: dict[str, Any]) -> None:
    """End as the name of the implementation says that is at work."""
    if "TEST_MERCY" in os.environ:
        return
    match name:
        case "test:exits":
            os._exit(1)
        case "test:sleeps":
            time.sleep(60)
        case "test:killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "test:killed_once" if is_first(name, request):
            os.kill(os.getpid(), signal.SIGKILL)


def memory(request: dict[str, Any], channel: Channel) -> dict[str, Any]:
    """Say how much memory a case took by its allocator's settings, or end as the implementation's name says."""
    channel.announce(request["implementation"], "memory")
    if request["implementation"] == "test:exits_in_memory":
        os._exit(1)
    return {"peak_bytes": int(os.environ["MALLOC_TRIM_THRESHOLD_"])}


def prepare(request: dict[str, Any], channel: Channel) -> dict[str, Any]:
    """Pass the correctness check, or end as the name of the implementation says; `test:fails_in_b` only in side B."""
    (name,) = request["implementations"]
    channel.announce(name, "preparation")
    PREPARED.update(name=name, slot_s=jittered(float(os.environ.get("TEST_SLOT_S", "1e-3"))), slots=0)
    if name == "test:exits_in_b" and in_b():
        os._exit(1)
    if in_b() and is_first(name, request):
        os.kill(os.getpid(), signal.SIGKILL)
    looked = {"kernels": ["thoroughly"]} if request["thorough"] else {}
    metrics = {"settled": True, "calls_per_timing": 2, "error": 0.0, **looked}
    failed = name == "test:raises" or (name == "test:raises_in_b" and in_b())
    outcome = {"status": "incorrect", "detail": "wrong", "metrics": {}} if failed else {"status": "ok", "detail": ""}
    return {"metrics": metrics, **outcome}


def sample(_request: dict[str, Any], channel: Channel) -> dict[str, Any]:
    """Take one turn of a made-up time, or end in the third one as the implementation's name says."""
    channel.announce(PREPARED["name"], "rounds")
    PREPARED["slots"] += 1
    if PREPARED["slots"] == 3 and in_b():
        match PREPARED["name"]:
            case "test:exits_in_its_turn":
                os._exit(1)
            case "test:raises_in_its_turn":
                return {"status": "error", "detail": "tired", "metrics": {}}
    slot_s = PREPARED["slot_s"]
    sample = {"timings_s": [slot_s, 2 * slot_s], "switches": 0, "faults": 1, "others": 0.0}
    return {"status": "ok", "sample": sample}


def finish(_request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
    """End the turns, with a time that is impossible where the implementation's name says so."""
    name, impossible = PREPARED["name"], PREPARED["name"] == "test:impossible"
    outcome: dict[str, Any] = {
        "status": "error" if impossible else "ok",
        "detail": "impossible" if impossible else "",
        "metrics": {},
    }
    return {"outcomes": {name: outcome}, "busy_s": 0.0}


def is_first(name: str, request: dict[str, Any]) -> bool:
    """Return whether an implementation is measured for the first time of all processes that share a folder."""
    if name not in request["implementations"] or "TEST_FOLDER" not in os.environ:
        return False
    try:
        (Path(os.environ["TEST_FOLDER"]) / name.replace(":", "-")).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def in_b() -> bool:
    """Return whether this is the side whose interpreter says that it is B."""
    return os.environ.get("TEST_SIDE") == "b"


def jittered(value_s: float) -> float:
    """Return a time that differs a little from process to process."""
    return value_s * random.Random(os.getpid()).uniform(0.999, 1.001)


PREPARED: dict[str, Any] = {}

SLOTS = {"rounds": [0, 1, 2], "timings_s": [[1e-3, 2e-3]] * 3, "switches": [0, 0, 1], "faults": [0, 4, 8]}


if __name__ == "__main__":
    serve(
        {
            "do": do,
            "check": check,
            "warm": warm,
            "visit": visit,
            "memory": memory,
            "prepare": prepare,
            "sample": sample,
            "finish": finish,
        }
    )
