"""Impossible rates on a busy machine: `python -m tests.drills.ceiling [SECONDS]`.

Honest implementations, and one that doesn't work while it is timed, are measured beside 0, 4 and 13 busy processes,
each time as if nothing were known of the device.
Prints how many of each kind were ok, doubted or called impossible.
Takes so many seconds for each shape and load, half a minute if nobody says how many.
"""

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.engine.member import Member
from bench.engine.pool import Pool
from bench.engine.replicate import Replicate
from bench.plan.case import Case
from bench.sampling.rounds import Length
from bench.store import ceilings
from tests.points import point

LOADS = (0, 4, 13)
TOKENS = (197, 577)
LIMITS = Length(1.0)
HONEST = ("eager", "sdpa", "compiled_sdpa")
PLANTED = "tests.mutants:works_if_looked_at"
BUSY = "import sys, time\nend = time.time() + float(sys.argv[1])\nwhile time.time() < end: pass"


@contextmanager
def busy(load: int, seconds: float) -> Iterator[None]:
    """Let so many processes be busy."""
    with ExitStack() as stack:
        for _ in range(load):
            process = stack.enter_context(subprocess.Popen([sys.executable, "-c", BUSY, str(seconds)]))
            stack.callback(process.kill)
        yield


def judged(pool: Pool, tokens: int, number: int) -> Counter[str]:
    """Return how the implementations are judged in a replicate."""
    at = point(batch=8, num_tokens=tokens, channels=384, num_heads=6)
    members = {name: Member(Case(at, name), pool, "here", thorough=False) for name in (*HONEST, PLANTED)}
    Replicate(members, dict.fromkeys(members, "eager"), LIMITS, seed=number, number=0).measure(600.0)
    ends: Counter[str] = Counter()
    for name, member in members.items():
        kind = "planted" if name == PLANTED else "honest"
        how = member.status if "impossible rate" not in member.detail else "doubted" if member.is_ok else "impossible"
        ends.update([kind, f"{kind} {how}"])
    return ends


def main(seconds: float = 30.0) -> None:
    """Print the counts for each number of tokens and each load."""
    ceilings.PATH = Path(os.devnull) / "ceilings.json"
    pool = Pool(1, HONEST)
    try:
        for tokens in TOKENS:
            for load in LOADS:
                ends, end, number = Counter[str](), time.monotonic() + seconds, 0
                while time.monotonic() < end:
                    with busy(load, seconds):
                        ends, number = ends + judged(pool, tokens, number), number + 1
                print(
                    f"N={tokens}, load {load}: {dict(ends)}; load average {os.getloadavg()[0]:.1f}",
                    flush=True,
                )
    finally:
        pool.close()


if __name__ == "__main__":
    main(*(float(word) for word in sys.argv[1:]))
