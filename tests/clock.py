"""A clock that is set by hand, in place of the module `time`."""


class Clock:
    """A clock that moves only when a test moves it."""

    now_s = 0.0

    def monotonic(self) -> float:
        """Return its time."""
        return self.now_s

    perf_counter = monotonic
