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
from bench.measure.turns import PreparedPoint
from bench.sampling.rounds import StoppingRule
from tests.points import point

LOADS = (0, 4, 13)
TOKENS = (197, 577)
TURNS = 3
HONEST = ("eager", "sdpa", "compiled_sdpa")
PLANTED = "tests.mutants:works_if_looked_at"
BUSY = "import sys, time\nend = time.time() + float(sys.argv[1])\nwhile time.time() < end: pass"


def prepare(tokens: int) -> PreparedPoint:
    """Return the implementations, ready for their samples."""
    at = point(batch=8, num_tokens=tokens, channels=384, num_heads=6)
    request = visit.Request(at, (*HONEST, PLANTED), "eager", StoppingRule(0.001, 1.0, 3), seed=7, thorough=False)
    found = visit.Visit({name: visit.Outcome() for name in request.implementations})
    prepared = visit.prepare(request, found, lambda _name, _stage: None)
    assert prepared is not None
    assert {*prepared.implementations} == {*request.implementations}, found.outcomes
    return prepared


def judged(prepared: PreparedPoint, fastest_s: dict[str, float]) -> Counter[str]:
    """Return how the implementations are judged after some turns, by the least times, which are brought up to date."""
    with prepared.quiet():
        for _ in range(TURNS):
            for name in prepared.implementations:
                fastest_s[name] = min(fastest_s.get(name, 1e9), *prepared.take_sample(name).timings_s)
    ends: Counter[str] = Counter()
    for name, call_s in fastest_s.items():
        ceiling._seen.clear()
        prepared.context.visit.ceiling = None
        outcome = prepared.context.visit.outcomes[name] = visit.Outcome()
        prepared.check_rate(name, call_s)
        kind = "planted" if name == PLANTED else "honest"
        ends += Counter({kind: 1, f"{kind} {outcome.status}": 1, f"{kind} doubted": bool(outcome.detail)})
    return ends


def main(seconds: float = 30.0) -> None:
    """Print the counts for each number of tokens and each load."""
    torch.set_num_threads(1)
    for tokens in TOKENS:
        prepared, fastest_s = prepare(tokens), dict[str, float]()
        for load in LOADS:
            with ExitStack() as stack:
                for _ in range(load):
                    busy = stack.enter_context(subprocess.Popen([sys.executable, "-c", BUSY, str(seconds)]))
                    stack.callback(busy.kill)
                ends, end = Counter[str](), time.monotonic() + seconds
                while time.monotonic() < end:
                    ends += judged(prepared, fastest_s)
                print(
                    f"N={tokens}, load {load}: {ends['honest error']} of {ends['honest']} honest called impossible, "
                    f"{ends['honest doubted'] - ends['honest error']} doubted; "
                    f"{ends['planted error']} of {ends['planted']} planted found out; "
                    f"load average {os.getloadavg()[0]:.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main(*(float(word) for word in sys.argv[1:]))
