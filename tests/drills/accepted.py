"""The correctness check at twelve shapes: `python -m tests.drills.accepted [MODE] [DTYPE] [IMPLEMENTATION] ...`.

Prints for each implementation, all by default, how often it was accepted, and the largest part of a tolerance that its
error took.
"""

import sys
from collections import Counter

import torch

import impls
from bench.measure import workload
from bench.plan.case import COLUMNS
from tests.checked import SHAPES, compared, expected
from tests.points import point


def judged(name: str, mode: str, dtype: str, device: str = "cpu") -> tuple[Counter[str], float]:
    """Return how often the check accepted an implementation, its other results, and the largest error in tolerances."""
    said: Counter[str] = Counter()
    severity = 0.0
    for shape in SHAPES:
        torch.compiler.reset()
        timing = "host" if device == "cpu" else "device-cold"
        work = workload.make(point(**shape, mode=mode, dtype=dtype, device=device, timing=timing))
        try:
            subject = workload.subject(work, name)
            result = compared(subject, work, expected(work))
            said[result.reason or "accepted"] += 1
            severity = max(severity, result.severity)
        except impls.Unsupported as reason:
            said[f"unsupported: {str(reason)[:70]}"] += 1
        except Exception as error:
            said[f"{type(error).__name__}: {str(error).strip().splitlines()[0][:70]}"] += 1
    return said, severity


def main(*words: str) -> None:
    """Print a line for each implementation, mode and dtype."""
    modes = [mode for mode in COLUMNS["mode"].choices if mode in words] or ["inference", "train"]
    dtypes = [dtype for dtype in COLUMNS["dtype"].choices if dtype in words] or ["float32"]
    for dtype in dtypes:
        for mode in modes:
            for name in [name for name in impls.IMPLEMENTATIONS if name in words] or impls.IMPLEMENTATIONS:
                said, severity = judged(name, mode, dtype)
                print(f"{dtype} {mode} {name}: {dict(said)}, at most {severity:.0%} of the tolerance", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
