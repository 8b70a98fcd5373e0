"""A worker that does as it is told, to test the parent with: it speaks the protocol by itself, without torch."""

import json
import os
import random
import signal
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
            print(json.dumps({"event": "done", "fake": True}), flush=True)
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
    return {"event": "done", "pid": os.getpid()}


TORCH = os.environ.get("TEST_TORCH", "2.0")


def check(request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
    """Find every implementation but `nosuch`."""
    found = "nosuch:kernel" not in request["implementations"]
    objection = "implementation 'nosuch:kernel' can't be imported"
    return {"event": "checked", "objection": "" if found else objection, "facts": {"torch": TORCH, "gpus": {}}}


def warm(_request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
    """Compile nothing."""
    return {"event": "warm"}


def visit(request: dict[str, Any], channel: Channel) -> dict[str, Any]:
    """Report slots of made-up times, or end as the implementation's name says."""
    outcomes: dict[str, dict[str, Any]] = {}
    if "test:takes_the_reference_down" in request["implementations"]:
        channel.announce("", "reference")
        os._exit(1)
    looked = {"kernels": ["thoroughly"]} if request["thorough"] else {}
    for name in request["implementations"]:
        channel.announce(name, "first call")
        match name:
            case "test:exits":
                os._exit(1)
            case "test:sleeps":
                time.sleep(60)
        outcomes[name] = {
            "status": "ok",
            "detail": "",
            "found": {"slots": SLOTS, "settled": True, "calls_per_timing": 2, **looked},
        }
        if name == "test:raises":
            outcomes[name] = {"status": "error", "detail": "no", "found": {}}
        if name.startswith("test:half"):
            slots = {**SLOTS, "timings_s": [[jittered(0.5e-3), 1e-3]] * 3}
            outcomes[name]["found"] |= {"slots": slots}
    known = request["ceiling"] or {"flops_per_s": 0.0, "bytes_per_s": 0.0}
    seen = {name: rate + 1.0 for name, rate in known.items()}
    return {"event": "visited", "outcomes": outcomes, "busy_s": 0.0, "ceiling": seen}


def memory(request: dict[str, Any], channel: Channel) -> dict[str, Any]:
    """Say how much memory a case took by its allocator's settings, or end as the implementation's name says."""
    channel.announce(request["implementation"], "memory")
    if request["implementation"] == "test:exits_in_memory":
        os._exit(1)
    return {"event": "seen", "peak_bytes": int(os.environ["MALLOC_TRIM_THRESHOLD_"])}


def prepare(request: dict[str, Any], channel: Channel) -> dict[str, Any]:
    """Come through the gate, or end as the implementation's name says; `test:fails_in_b` does so in side B alone."""
    (name,) = request["implementations"]
    channel.announce(name, "preparation")
    PREPARED.update(name=name, slot_s=jittered(float(os.environ.get("TEST_SLOT_S", "1e-3"))), slots=0)
    if name == "test:exits_in_b" and in_b():
        os._exit(1)
    looked = {"kernels": ["thoroughly"]} if request["thorough"] else {}
    found = {"settled": True, "calls_per_timing": 2, "error": 0.0, **looked}
    failed = name == "test:raises" or (name == "test:raises_in_b" and in_b())
    outcome = {"status": "incorrect", "detail": "wrong", "found": {}} if failed else {"status": "ok", "detail": ""}
    return {"event": "prepared", "found": found, **outcome}


def slot(_request: dict[str, Any], channel: Channel) -> dict[str, Any]:
    """Take one turn of a made-up time, or end in the third one as the implementation's name says."""
    channel.announce(PREPARED["name"], "rounds")
    PREPARED["slots"] += 1
    if PREPARED["slots"] == 3 and in_b():
        match PREPARED["name"]:
            case "test:exits_in_its_turn":
                os._exit(1)
            case "test:raises_in_its_turn":
                return {"event": "slot", "status": "error", "detail": "tired", "found": {}}
    slot_s = PREPARED["slot_s"]
    reading = {"timings_s": [slot_s, 2 * slot_s], "switches": 0, "faults": 1, "others": 0.0}
    return {"event": "slot", "status": "ok", "reading": reading}


def finish(_request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
    """End the turns, with a time that is impossible where the implementation's name says so."""
    name, impossible = PREPARED["name"], PREPARED["name"] == "test:impossible"
    outcome: dict[str, Any] = {
        "status": "error" if impossible else "ok",
        "detail": "impossible" if impossible else "",
        "found": {},
    }
    return {"event": "visited", "outcomes": {name: outcome}, "busy_s": 0.0}


def in_b() -> bool:
    """Return whether this is the side whose interpreter says that it is B."""
    return os.environ.get("TEST_SIDE") == "b"


def jittered(value_s: float) -> float:
    """Return a time that differs a little from process to process."""
    return value_s * random.Random(os.getpid()).uniform(0.999, 1.001)


PREPARED: dict[str, Any] = {}

SLOTS = {"rounds": [0, 1, 2], "timings_s": [[1e-3, 2e-3]] * 3, "switches": [0, 0, 1], "faults": [0, 4, 8]}


if __name__ == "__main__":
    assert Path(sys.argv[1]).exists()
    serve(
        {
            "do": do,
            "check": check,
            "warm": warm,
            "visit": visit,
            "memory": memory,
            "prepare": prepare,
            "slot": slot,
            "finish": finish,
        }
    )
