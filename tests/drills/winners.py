"""How often a point gets a wrong winner or a wrong tie, and how often it is decided.

python -m tests.drills.winners collect DIR [PROCESSES [SECONDS]]   measures the pool of processes, or goes on with it
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench.engine.run import run
from tests.drills.power import sweep_of

SHAPES: list[dict[str, int]] = [
    {"batch": 8, "num_tokens": 50, "token_len": 384, "channels": 384, "num_heads": 6},
    {"batch": 8, "num_tokens": 197, "token_len": 384, "channels": 384, "num_heads": 6},
    {"batch": 8, "num_tokens": 197, "token_len": 384, "channels": 384, "num_heads": 1},
    {"batch": 8, "num_tokens": 197, "token_len": 96, "channels": 96, "num_heads": 6},
    {"batch": 13, "num_tokens": 100, "token_len": 49, "channels": 64, "num_heads": 4},
    {"batch": 8, "num_tokens": 197, "token_len": 192, "channels": 192, "num_heads": 6},
]
"""Half of the points of `quick`."""

TWIN, COPY = "impls.twin:adapt", "tests.planted:sdpa"
"""A copy of eager, and one of sdpa."""

NAMES = (TWIN, "manual", "online", "sdpa", COPY, "compiled_sdpa")

PROCESSES, SECONDS = 30, 600.0

PART = 5
"""So many processes are measured at a time, for the sake of memory."""

VISIT_S = 3.0
"""Seconds for the rounds of a point in a process."""


def collect(folder: Path, processes: int, seconds: float) -> None:
    """Measure the pool into parts of PART processes each; no part is begun after so many seconds.

    A part that is there is not measured again.
    """
    begin = time.monotonic()
    sweep = sweep_of(SHAPES, NAMES, PART, VISIT_S * PART)
    for first in range(0, processes, PART):
        if time.monotonic() - begin > seconds:
            break
        list(run(sweep, folder / f"part{first:03d}"))
        print(f"{first + PART} of {processes} processes, {time.monotonic() - begin:.0f} s", flush=True)


def _main(words: Sequence[str]) -> None:
    match words:
        case ["collect", folder, *rest]:
            collect(Path(folder), int(rest[0]) if rest else PROCESSES, float(rest[1]) if rest[1:] else SECONDS)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    _main(sys.argv[1:])
