"""Impossible rates on a busy machine: `python -m tests.drills.ceiling [SECONDS]`.

Honest implementations, and one that doesn't work while it is timed, take turns beside 0, 4 and 13 busy processes.
After every few turns each is judged as if nothing were known of the device, by the least time that it ever took.
Prints how many honest ones were called impossible or doubted, and whether the other was found out each time.
Takes so many seconds for each shape and load, half a minute if nobody says how many.
"""

import os
import subprocess
import sys
import time
from collections import Counter
from contextlib import ExitStack

import torch

from bench.measure import ceiling, visit
from bench.measure.turns import Standing
from bench.sampling.rounds import Limits
from tests.points import point

LOADS = (0, 4, 13)
TOKENS = (197, 577)
TURNS = 3
HONEST = ("eager", "sdpa", "compiled_sdpa")
PLANTED = "tests.mutants:works_if_looked_at"
BUSY = "import sys, time\nend = time.time() + float(sys.argv[1])\nwhile time.time() < end: pass"


def prepared(tokens: int) -> Standing:
    """Return the implementations, ready for their turns."""
    at = point(batch=8, num_tokens=tokens, channels=384, num_heads=6)
    request = visit.Request(at, (*HONEST, PLANTED), "eager", Limits(0.001, 1.0, 3), seed=7, thorough=False)
    found = visit.Visit({name: visit.Outcome() for name in request.implementations})
    standing = visit.prepare(request, found, lambda _name, _stage: None)
    assert standing is not None
    assert {*standing.ready} == {*request.implementations}, found.outcomes
    return standing


def judged(standing: Standing, fastest_s: dict[str, float]) -> Counter[str]:
    """Return how the implementations are judged after some turns, by the least times, which are brought up to date."""
    with standing.quiet():
        for _ in range(TURNS):
            for name in standing.ready:
                fastest_s[name] = min(fastest_s.get(name, 1e9), *standing.turn(name).timings_s)
    ends: Counter[str] = Counter()
    for name, call_s in fastest_s.items():
        ceiling._seen.clear()
        standing.setting.visit.ceiling = None
        outcome = standing.setting.visit.outcomes[name] = visit.Outcome()
        standing.bound(name, call_s)
        kind = "planted" if name == PLANTED else "honest"
        ends += Counter({kind: 1, f"{kind} {outcome.status}": 1, f"{kind} doubted": bool(outcome.detail)})
    return ends


def main(seconds: float = 30.0) -> None:
    """Print the counts for each number of tokens and each load."""
    torch.set_num_threads(1)
    for tokens in TOKENS:
        standing, fastest_s = prepared(tokens), dict[str, float]()
        for load in LOADS:
            with ExitStack() as stack:
                for _ in range(load):
                    busy = stack.enter_context(subprocess.Popen([sys.executable, "-c", BUSY, str(seconds)]))
                    stack.callback(busy.kill)
                ends, end = Counter[str](), time.monotonic() + seconds
                while time.monotonic() < end:
                    ends += judged(standing, fastest_s)
                print(
                    f"N={tokens}, load {load}: {ends['honest error']} of {ends['honest']} honest called impossible, "
                    f"{ends['honest doubted'] - ends['honest error']} doubted; "
                    f"{ends['planted error']} of {ends['planted']} planted found out; "
                    f"load average {os.getloadavg()[0]:.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main(*(float(word) for word in sys.argv[1:]))
