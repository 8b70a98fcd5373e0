"""A worker that does as it is told, to test the parent with: it speaks the protocol by itself, without torch."""

import json
import os
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


def check(request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
    """Find every implementation but `nosuch`."""
    found = "nosuch:kernel" not in request["implementations"]
    objection = "implementation 'nosuch:kernel' can't be imported"
    return {"event": "checked", "objection": "" if found else objection, "facts": {"torch": "2.0", "gpus": {}}}


def warm(_request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
    """Compile nothing."""
    return {"event": "warm"}


def visit(request: dict[str, Any], channel: Channel) -> dict[str, Any]:
    """Report slots of made-up times, or end as the implementation's name says."""
    outcomes = {}
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
    return {"event": "visited", "outcomes": outcomes, "busy_s": 0.0}


def memory(request: dict[str, Any], channel: Channel) -> dict[str, Any]:
    """Say how much memory a case took by its allocator's settings, or end as the implementation's name says."""
    channel.announce(request["implementation"], "memory")
    if request["implementation"] == "test:exits_in_memory":
        os._exit(1)
    return {"event": "seen", "peak_bytes": int(os.environ["MALLOC_TRIM_THRESHOLD_"])}


SLOTS = {"rounds": [0, 1, 2], "timings_s": [[1e-3, 2e-3]] * 3, "switches": [0, 0, 1], "faults": [0, 4, 8]}


if __name__ == "__main__":
    assert Path(sys.argv[1]).exists()
    serve({"do": do, "check": check, "warm": warm, "visit": visit, "memory": memory})
