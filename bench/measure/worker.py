"""The worker process: reads requests from its standard input, writes events to its standard output.

Both are lines of JSON. What implementations print goes to standard error.
"""

import ctypes
import dataclasses
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import impls
from bench.measure import facts, visit
from bench.measure.sampler import Limits
from bench.plan.case import Point

HEARTBEAT_S = 0.5
"""Between rounds the parent hears from a worker no more often than this: waking it would disturb the measurement."""

PR_SET_PDEATHSIG = 1


class Channel:
    """The way to the parent: events on a pipe, and a breadcrumb in a file for the case that dies."""

    def __init__(self, events: TextIO, breadcrumb: Path) -> None:
        self._events = events
        self._breadcrumb = os.open(breadcrumb, os.O_WRONLY)
        self._last_s = 0.0

    def send(self, event: dict[str, Any]) -> None:
        """Write one event to the parent."""
        self._events.write(json.dumps(event, allow_nan=False) + "\n")
        self._events.flush()
        self._last_s = time.monotonic()

    def announce(self, implementation: str, stage: str) -> None:
        """Leave word of what is about to run, and wake the parent if it hasn't heard for a while."""
        crumb = json.dumps([implementation, stage]).encode()
        os.pwrite(self._breadcrumb, crumb.ljust(512), 0)
        if stage != "rounds" or time.monotonic() - self._last_s > HEARTBEAT_S:
            self.send({"event": "working"})


def main() -> None:
    """Serve requests until the parent closes the pipe."""
    _die_with_parent()
    requests, events = _claim_pipes()
    channel = Channel(events, Path(sys.argv[1]))
    channel.send({"event": "ready"})
    for line in requests:
        request = json.loads(line)
        channel.send(REQUESTS[request["request"]](request, channel))


def _check(request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
    """Say whether every implementation can be found, and what torch knows of the machine."""
    for name in request["implementations"]:
        try:
            impls.resolve(name, impls.IMPLEMENTATIONS)
        except LookupError as error:
            return {"event": "checked", "objection": str(error)}
    return {"event": "checked", "objection": "", "facts": facts.torch_facts()}


def _visit(request: dict[str, Any], channel: Channel) -> dict[str, Any]:
    asked = visit.Request(
        point=Point(**request["point"]),
        implementations=tuple(request["implementations"]),
        baseline=request["baseline"],
        limits=Limits(**request["limits"]),
        seed=request["seed"],
        memory=request["memory"],
    )
    made = visit.make(asked, channel.announce)
    _give_memory_back()
    outcomes = {name: dataclasses.asdict(outcome) for name, outcome in made.outcomes.items()}
    return {"event": "visited", "outcomes": outcomes, "busy_s": made.busy_s}


REQUESTS: dict[str, Callable[[dict[str, Any], Channel], dict[str, Any]]] = {"check": _check, "visit": _visit}


def _claim_pipes() -> tuple[TextIO, TextIO]:
    """Keep the two pipes for the protocol, so that nothing an implementation prints or reads gets into it."""
    requests, events = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    with Path(os.devnull).open() as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    return requests, events


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _give_memory_back() -> None:
    """Return freed memory to the system while other workers take their turn; under glibc `retained` keeps it."""
    if sys.platform == "linux" and hasattr(ctypes.CDLL(None), "malloc_trim"):
        ctypes.CDLL(None).malloc_trim(0)


if __name__ == "__main__":
    main()
