"""What the suite rejects of what is wrong or dishonest, and of what is honest: python -m tests.drills.attacks [RUNS].

Each run measures in new processes, with new inputs, as a user's run does: the dishonest kernels of `tests.hacks`,
the wrong ones of `tests.mutants` and of `tests.mutants_of_attention`, each at a point at which it is wrong, and beside
them what the suite ships and the odd honest ones of `tests.honest`. Prints how many of each were rejected, and the
names of those that should not have been, or should have been.
"""

import sys
import tempfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.engine.run import Run
from bench.plan.case import Case, Point
from bench.plan.sweep import Effort, Sweep
from bench.sampling.rounds import Length
from tests import hacks, honest, mutants, mutants_of_attention
from tests.make.points import of_layer, point

SHIPPED = ("eager", "manual", "online", "sdpa", "sdpa_math")
EFFORT = Effort(processes=1, timeout_s=120)
SHORTEST = Length(0.0)
"""The fewest rounds: so many take their time already."""

RUNS = 3

WRONG = [f"tests.mutants:{name}" for name in mutants.ALL]


def groups() -> Iterator[tuple[str, Point, list[str]]]:
    """Yield points with what is planted there and the kind of that."""
    for at, expected in hacks.every_hack().items():
        yield "dishonest", at, [name for name, end in expected.items() if not end.startswith("ok")]
    for mode, own in (("inference", honest.ALL), ("train", honest.IN_TRAINING)):
        yield "honest", point(**hacks.LONG, mode=mode), [f"tests.honest:{name}" for name in own]
    for dtype in ("float32", "bfloat16"):
        yield "wrong", point(**hacks.LONG, dtype=dtype), WRONG
        for mode, of in (("inference", mutants_of_attention.WRONG), ("train", mutants_of_attention.WRONG_GRADIENTS)):
            for name, (columns, *_) in of.items():
                yield f"wrong {mode}", _at(columns, mode, dtype), [f"tests.mutants_of_attention:{name}"]


def _at(columns: dict[str, Any], mode: str, dtype: str) -> Point:
    """Return a point of the layer `attention` with these columns."""
    context = {"context_dim": 16} if "num_kv_tokens" in columns else {}
    sizes = {"batch": 4, "num_tokens": 10, "channels": 16, "token_len": 16, "num_heads": 4}
    return of_layer("attention", **{**sizes, **context, **columns}, mode=mode, dtype=dtype)


def ends(wanted: Mapping[Point, Sequence[str]]) -> Generator[tuple[Case, str], None, None]:
    """Measure implementations at points, each in a process; yield each supported case with its status."""
    every = tuple(dict.fromkeys(name for names in wanted.values() for name in names))
    with (
        tempfile.TemporaryDirectory() as folder,
        Run(Sweep("attacks", tuple(wanted), every, effort=EFFORT), Path(folder)) as run,
    ):
        for at, names in wanted.items():
            while missing := [name for name in run.missing(at) if name in names]:  # a crash is tried again
                run.replicate(at, missing, SHORTEST)
            for row in run.summary.rows(at):
                if row["status"] != "unsupported":
                    yield Case(at, row["implementation"]), row["status"]


def main(runs: int = RUNS) -> int:
    """Print the rates; 1 if any is not as it should be."""
    kinds = {Case(at, name): kind for kind, at, planted in groups() for name in planted}
    wanted: dict[Point, list[str]] = {}
    for case in kinds:
        wanted.setdefault(case.point, [*SHIPPED]).append(case.implementation)
    rejected: dict[str, list[tuple[Case, bool]]] = {}
    for number, (case, status) in enumerate(each for _ in range(runs) for each in ends(wanted)):
        rejected.setdefault(kinds.get(case, "honest"), []).append((case, status != "ok"))
        print(f"\r{number + 1} cases", end="", file=sys.stderr, flush=True)
    faults = []
    for kind, own in sorted(rejected.items()):
        number = sum(is_rejected for _, is_rejected in own)
        implementations = {case.implementation for case, _ in own}
        print(f"{kind}: {number} of {len(own)} rejected, {len(implementations)} implementations")
        faults += [f"  {kind}: {case.name}" for case, is_rejected in own if is_rejected == (kind == "honest")]
    print("not as it should be:" if faults else "all as it should be", *faults, sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
