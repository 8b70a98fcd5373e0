"""The correctness check of all implementations at twelve shapes: `python -m tests.drills.accepted [MODE] [DTYPE]`."""

import sys
from collections import Counter

import torch

import impls
from bench.measure import workload
from bench.plan.case import COLUMNS
from tests.checked import SHAPES, compared, expected
from tests.points import point


def judged(name: str, mode: str, dtype: str) -> Counter[str]:
    """Return how often the check accepted an implementation, and its other results."""
    said: Counter[str] = Counter()
    for shape in SHAPES:
        torch.compiler.reset()
        work = workload.make(point(**shape, mode=mode, dtype=dtype))
        try:
            subject = workload.subject(work, name)
            said[compared(subject, work, expected(work)).reason or "accepted"] += 1
        except impls.Unsupported as reason:
            said[f"unsupported: {str(reason)[:70]}"] += 1
        except Exception as error:
            said[f"{type(error).__name__}: {str(error).strip().splitlines()[0][:70]}"] += 1
    return said


def main(*words: str) -> None:
    """Print a line for each implementation, mode and dtype."""
    modes = [mode for mode in COLUMNS["mode"].choices if mode in words] or ["inference", "train"]
    dtypes = [dtype for dtype in COLUMNS["dtype"].choices if dtype in words] or ["float32"]
    for dtype in dtypes:
        for mode in modes:
            for name in impls.IMPLEMENTATIONS:
                print(f"{dtype} {mode} {name}: {dict(judged(name, mode, dtype))}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
