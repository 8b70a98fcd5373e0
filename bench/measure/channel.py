"""The way between a worker and its parent: requests come in, events go out, as lines of JSON.

What implementations print goes to standard error.
This file imports no torch, so that the way can be tested without.
"""

import ctypes
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

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


Serve = Callable[[dict[str, Any], Channel], dict[str, Any]]
"""What answers a request: a dictionary with the answer's name under `event`."""


def serve(requests_served: dict[str, Serve]) -> None:
    """Answer requests by their name until the parent closes the pipe."""
    _die_with_parent()
    requests, events = _claim_pipes()
    channel = Channel(events, Path(sys.argv[1]))
    channel.send({"event": "ready"})
    for line in requests:
        request = json.loads(line)
        channel.send(requests_served[request["request"]](request, channel))


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
