"""Impossible rates on a busy machine: `python -m tests.drills.ceiling [SECONDS]`.

Measures honest implementations, and one that doesn't work while it is timed, beside 0, 4 and 13 busy processes, as if
nothing were known of the device. Prints how many honest rows were called impossible or doubted, and whether the other
was found out each time. Takes so many seconds for each load at most, a minute if nobody says how many, and what the
last visit takes beyond.
"""

import os
import subprocess
import sys
import time
from collections import Counter
from contextlib import ExitStack

import torch

from bench.analyse.rounds import Limits
from bench.measure import ceiling, visit
from tests.points import point

LOADS = (0, 4, 13)
TOKENS = (197, 577)
HONEST = ("eager", "sdpa", "compiled_sdpa")
PLANTED = "tests.mutants:works_if_looked_at"
BUSY = "import sys, time\nend = time.time() + float(sys.argv[1])\nwhile time.time() < end: pass"


def measured(tokens: int, seed: int) -> visit.Visit:
    """Return a visit of a point by a process that knows nothing of the device."""
    ceiling._seen.clear()
    at = point(batch=8, num_tokens=tokens, channels=384, num_heads=6)
    limits = Limits(target=0.001, budget_s=2.0, processes=3)
    return visit.make(
        visit.Request(at, (*HONEST, PLANTED), "eager", limits, seed, thorough=False), lambda _name, _stage: None
    )


def counted(seconds: float) -> Counter[str]:
    """Return how the rows of visits ended that were made in so many seconds, one of each shape at least."""
    ends: Counter[str] = Counter()
    began, seed = time.monotonic(), 0
    while seed < len(TOKENS) or time.monotonic() - began < seconds:
        made = measured(TOKENS[seed % len(TOKENS)], seed)
        for name in HONEST:
            outcome = made.outcomes[name]
            ends["honest"] += 1
            ends["impossible"] += "impossible rate" in outcome.detail and outcome.status == "error"
            ends["doubted"] += "perhaps" in outcome.detail and outcome.status == "ok"
            ends["otherwise"] += outcome.status != "ok" and "impossible rate" not in outcome.detail
        ends["planted"] += 1
        ends["caught"] += (
            "impossible rate" in made.outcomes[PLANTED].detail and made.outcomes[PLANTED].status == "error"
        )
        seed += 1
    return ends


def main(seconds: float = 60.0) -> None:
    """Print the counts for each load."""
    torch.set_num_threads(1)
    for load in LOADS:
        with ExitStack() as stack:
            for _ in range(load):
                busy = stack.enter_context(subprocess.Popen([sys.executable, "-c", BUSY, str(seconds)]))
                stack.callback(busy.kill)
            ends = counted(seconds)
            print(
                f"load {load}: {ends['impossible']} of {ends['honest']} honest rows called impossible, "
                f"{ends['doubted']} doubted, {ends['otherwise']} ended otherwise; "
                f"{ends['caught']} of {ends['planted']} planted caught; load average {os.getloadavg()[0]:.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main(*(float(word) for word in sys.argv[1:]))
