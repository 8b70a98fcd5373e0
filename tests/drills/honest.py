"""Honest kernels beside busy processes: python -m tests.drills.honest [ROWS [BUSY]].

Measures what the suite ships and the kernels of `tests.honest`, with one and two threads, at small and large shapes, in
several dtypes and modes, until there are ROWS rows, beside BUSY processes that it starts. Prints how many were blamed,
that is how many ended as an error or as incorrect, and each of them with its reason. 1 if any was.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import cycle, islice
from pathlib import Path

from bench.engine.run import Run
from bench.plan.case import Case, Point
from bench.plan.sweep import Effort, Sweep
from bench.sampling.rounds import Length
from tests import honest
from tests.make.points import of_layer

ROWS, BUSY = 300, 2
EFFORT = Effort(processes=1, timeout_s=120)
SHORTEST = Length(0.0)
"""The fewest rounds: so many take their time already."""

SHIPPED = ("eager", "sdpa", "sdpa_math", "online", "manual")
COMPILED = "compiled_eager"
"""It is measured at the first points alone: it takes long to compile."""

SHAPES = (
    (1, 5, 64, 4), (64, 9, 32, 2), (1, 256, 256, 8), (2, 64, 64, 1), (1, 1024, 64, 2), (8, 128, 128, 4),
    (32, 49, 96, 3), (2, 577, 192, 3), (4, 197, 384, 6), (1, 16, 768, 12), (16, 100, 256, 4), (1, 700, 512, 8),
)  # fmt: skip
"""Batch, tokens, channels and heads."""

KINDS = (("float32", "inference"), ("bfloat16", "inference"), ("float32", "train"), ("float32", "forward"),
    ("bfloat16", "train"))  # fmt: skip
LAYERS = ("core", "vit", "attention")


def points() -> Iterator[Point]:
    """Yield points, with one and with two threads in turns; the kinds and layers change from shape to shape."""
    kinds, layers = cycle(KINDS), cycle(LAYERS)
    while True:
        for batch, tokens, channels, heads in SHAPES:
            dtype, mode, layer = *next(kinds), next(layers)
            for threads in (2, 1):
                sizes = {"batch": batch, "num_tokens": tokens, "channels": channels, "num_heads": heads}
                own = {"dtype": dtype, "mode": mode, "threads": threads, "token_len": channels}
                yield of_layer(layer, **sizes, **own)


def names(at: Point, *, compiled: bool) -> list[str]:
    """Return what is measured at a point."""
    own = honest.ALL if at.mode == "inference" else honest.IN_TRAINING
    return [*SHIPPED, *([COMPILED] if compiled else []), *(f"tests.honest:{name}" for name in own)]


def measured(folder: Path, rows: int) -> Iterator[tuple[Case, str, str]]:
    """Yield at least so many cases that are supported, with status and detail; a crash is tried again."""
    number = 0
    wanted = {at: names(at, compiled=place < len(KINDS)) for place, at in enumerate(islice(points(), rows))}
    every = tuple(dict.fromkeys(name for own in wanted.values() for name in own))
    with Run(Sweep("honest", tuple(wanted), every, effort=EFFORT), folder) as run:
        for at, own in wanted.items():
            while missing := [name for name in run.missing(at) if name in own]:
                run.replicate({at: missing}, SHORTEST)
            for row in run.summary.rows(at):
                if row["status"] != "unsupported":
                    number += 1
                    yield Case(at, row["implementation"]), row["status"], row["detail"]
            if number >= rows:
                return


@contextmanager
def busy(number: int) -> Iterator[None]:
    """Keep so many processes at work."""
    with ExitStack() as others:
        for _ in range(number):
            process = others.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            others.callback(process.kill)
        yield


def main(rows: int = ROWS, others: int = BUSY) -> int:
    """Print the rows, and those that were blamed; 1 if any was."""
    number, blamed = 0, list[str]()
    with busy(others), tempfile.TemporaryDirectory() as folder:
        for number, (case, status, detail) in enumerate(measured(Path(folder), rows), start=1):
            if status != "ok":
                blamed.append(f"  {case.name}: {status}: {detail}")
            print(f"\r{number} rows, {len(blamed)} blamed", end="", file=sys.stderr, flush=True)
    print(f"\n{number} rows beside {others} busy processes, {len(blamed)} blamed", *blamed, sep="\n")
    return 1 if blamed else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
