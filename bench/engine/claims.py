"""Checks of a process's claims about its samples, and of its work between them, against outside observations."""

from dataclasses import dataclass, field

from bench.machine import monotonic

CORES_SPARE, CORES_SPARE_S = 0.1, 2e-4
"""The cores that an implementation may use beyond its threads, and the extra CPU seconds per sample: reading CPU time
around the timings took 0.09 ms where a timing was one call of 0.05 ms."""

MOST_IDLE, IDLE_S = 0.05, 0.05
"""The share of a core, and the seconds, that a process may use while it waits; the system counts in hundredths of a
second. Threads that spin between calls made the time of others 1.9 times as long."""


@dataclass
class Claims:
    """The samples of a process so far; each method returns an objection, empty if there is none."""

    work: list[tuple[float, float]] = field(default_factory=list)
    """For each sample the seconds of its timings, and the CPU seconds in them."""

    def add(self, claimed_s: float, waited_s: float, used_s: float) -> str:
        """Add a sample, given its claimed seconds, the seconds that the engine waited, and the CPU seconds."""
        self.work.append((claimed_s, used_s))
        if claimed_s > waited_s:
            return f"reported {claimed_s:.3g} s for a sample that took {waited_s:.3g} s, so its clock is wrong"
        return ""

    def of_all(self, threads: int) -> str:
        """Judge all samples of a process on a CPU by the middle half, which determines its time."""
        quarter = len(self.work) // 4
        middle = sorted(self.work)[quarter : len(self.work) - quarter]
        claimed_s, used_s = (sum(seconds) for seconds in zip(*middle, strict=True))
        cores, spare = used_s / claimed_s, CORES_SPARE + CORES_SPARE_S * len(middle) / claimed_s
        return f"used {cores:.1f} cores, but threads is {threads}" if cores > threads + spare else ""


@dataclass
class Waiting:
    """The seconds that a process has waited while others were sampled, and its CPU seconds meanwhile."""

    waited_s: float = 0.0
    used_s: float = 0.0
    _since: tuple[float, float] | None = None

    def begin(self, cpu_s: float) -> None:
        """Begin to wait, given the CPU seconds of the process so far."""
        self._since = monotonic.now_s(), cpu_s

    def end(self, cpu_s: float) -> None:
        """End the wait, if there is one, given the CPU seconds of the process so far."""
        if self._since is not None:
            self.waited_s += monotonic.now_s() - self._since[0]
            self.used_s += cpu_s - self._since[1]
        self._since = None

    @property
    def doubt(self) -> str:
        """A remark if the process used much of a core while it waited, else empty."""
        if self.used_s <= max(IDLE_S, MOST_IDLE * self.waited_s):
            return ""
        return f"used {self.used_s / self.waited_s:.0%} of a core while others were timed, which may have slowed them"
