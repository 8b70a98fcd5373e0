"""Six planted faults: `python -m tests.drills.faults [POINTS]`.

A run measures eager, sdpa and six implementations with a fault each at some points. Prints how often each fault ended
with its status, how long the slowest took to end, how many other cases were lost, and what was left behind.
"""

import re
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

import psutil

from bench.engine.run import Run
from bench.plan.case import Point
from bench.plan.sweep import Effort, Sweep
from tests.points import point

POINTS = 20
TIMEOUT_S = 3.0
LATE_S = 6.0
"""A case that is silent must have ended so many seconds after the time-out."""

FAULTS = {
    "raises": ("error", "this kernel is not for today"),
    "hungry": ("oom", "."),
    "sleeps": ("timeout", "no sign of life for 3 s during first call"),
    "stops": ("timeout", "no sign of life for 3 s during first call"),
    "segfaults": ("crashed", "SIGSEGV.*during first call"),
    "exits": ("crashed", "exit status 1 during first call"),
}
"""The status and the words with which each fault must end."""

HONEST = ("eager", "sdpa")


def main(points: int = POINTS) -> None:
    """Print a line for each fault, and one on everything else."""
    names = {name: f"tests.foreign:{name}" for name in FAULTS}
    shapes = tuple(point(num_tokens=5 + number) for number in range(points))
    effort = Effort(processes=1, budget_s=0.2, timeout_s=TIMEOUT_S)
    longest_s: dict[str, float] = defaultdict(float)
    last, since_s = "", time.monotonic()

    def heard(_at: Point, _process: int, implementation: str, _stage: str) -> None:
        nonlocal last, since_s
        if implementation != last:
            longest_s[last] = max(longest_s[last], time.monotonic() - since_s)
            last, since_s = implementation, time.monotonic()

    with tempfile.TemporaryDirectory() as folder:
        begin = time.monotonic()
        with Run(
            Sweep("faults", shapes, (*HONEST, *names.values()), effort=effort), Path(folder), frontier=False
        ) as run:
            run.heard = heard
            for at in shapes:
                run.measure(at)
            table = run.run_folder.results()
        took_s = time.monotonic() - begin
    for fault, (status, words) in FAULTS.items():
        rows = table[table["implementation"] == names[fault]]
        right = sum(
            row["status"] == status and re.search(words, str(row["detail"])) is not None for _, row in rows.iterrows()
        )
        print(f"{fault:<10} {right} of {len(rows)} are {status}; the longest took {longest_s[names[fault]]:.1f} s")
        if right < len(rows):
            print(Counter(zip(rows["status"], rows["detail"], strict=True)).most_common(3))
    late = max(longest_s[names[fault]] for fault, (status, _) in FAULTS.items() if status == "timeout")
    others = table[table["implementation"].isin(HONEST)]
    left = [child.pid for child in psutil.Process().children(recursive=True)]
    print(
        f"time-outs end within the limit and {late - TIMEOUT_S:.1f} s (must be under {LATE_S:g}); "
        f"of the others {int((others['status'] == 'ok').sum())} of {len(others)} are ok; "
        f"{len(table)} of {points * (len(FAULTS) + len(HONEST))} cases have a row; {len(left)} processes are left; "
        f"{took_s:.0f} s in all"
    )


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
