"""A clock that is set by hand, in place of the system's."""

import types

import pytest

from bench.engine import worker
from bench.machine import monotonic


class Clock:
    """A clock that only tests, and code that waits by it, move."""

    now_s = 0.0

    def sleep(self, seconds: float) -> None:
        """Be later by some seconds, at once."""
        self.now_s += seconds


def set_by_hand(patch: pytest.MonkeyPatch) -> Clock:
    """Return a new clock, by which this process tells the time from now on."""
    clock = Clock()
    patch.setattr(monotonic, "now_s", lambda: clock.now_s)
    patch.setattr(monotonic, "sleep", clock.sleep)
    return clock


def wait_by_hand(patch: pytest.MonkeyPatch) -> Clock:
    """Return a new clock, by which the engine tells from now on how long a process has been silent."""
    clock = Clock()
    patch.setattr(worker, "time", types.SimpleNamespace(monotonic=lambda: clock.now_s, sleep=clock.sleep))
    return clock
