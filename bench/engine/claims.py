"""What a process says of its own times and work, beside what the engine and the system have seen."""

import statistics
from dataclasses import dataclass, field

CORES_SPARE = 0.3
"""The cores that an implementation may use beyond its threads: its process does a little more than calls."""

IDLE_SHARE, IDLE_S, FIRST_IDLE_S = 0.25, 0.001, 0.03
"""The most work of a process between its samples is the sum of: a share of its work in samples, seconds for each
sample, and seconds once, because a forked process copies pages when it first writes to them."""

CLAIMED_SHARE, OVERHEAD_S = 0.4, 0.002
"""In half of the samples the timings must fill this share of the time that the engine waited for it, less OVERHEAD_S.
Honest ones were seen to fill 98 % and more, and 65 % in the lowest twentieth of samples."""


@dataclass
class Claims:
    """The sums of a process's samples so far; each method returns an objection, empty if there is none."""

    timed_s: float = 0.0
    """The seconds of all timings."""
    used_s: float = 0.0
    """The processor's seconds in timings."""
    idle_s: float = 0.0
    """The processor's seconds between samples."""
    shares: list[float] = field(default_factory=list)
    """Of each sample the share of its timings in the time that the engine waited for it."""

    def add(self, claimed_s: float, waited_s: float, queued_s: float = 0.0) -> str:
        """Add a sample whose timings claim so many seconds and for which the engine waited so many.

        For `queued_s` of these the process or the engine waited for a core, by the system's own count. Beside busy
        processes that is most of the time of a short sample, and no lie of the process.
        """
        if claimed_s > waited_s:
            return f"its clock disagrees: a sample of {claimed_s:.3g} s came after {waited_s:.3g} s"
        self.timed_s += claimed_s
        self.shares.append(claimed_s / max(claimed_s, waited_s - queued_s - OVERHEAD_S))
        return ""

    def add_work(self, used_s: float, idle_s: float) -> str:
        """Add the work of a process on a CPU, in the timings of a sample and before them."""
        self.used_s += used_s
        self.idle_s += idle_s
        if self.idle_s > IDLE_SHARE * self.used_s + IDLE_S * len(self.shares) + FIRST_IDLE_S:
            return f"worked between its samples: {self.idle_s:.2g} s, and {self.used_s:.2g} s in samples"
        return ""

    def of_all(self, threads: int) -> str:
        """Judge the samples of a process on a CPU, all together."""
        cores, share = self.used_s / self.timed_s, statistics.median(self.shares)
        if cores > threads + CORES_SPARE:
            return f"worked on {cores:.1f} cores, and threads is {threads}"
        if share < CLAIMED_SHARE:
            told = f"{share:.0%} of the time that the engine waited for it"
            return f"its clock disagrees: half of its samples account for at most {told}"
        return ""
