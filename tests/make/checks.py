"""The correctness check of an implementation in this process, as a worker and the judge make it together."""

from functools import lru_cache
from typing import Any

from bench.measure import correctness, function, outputs, reference, subjects, workload
from bench.measure.correctness import CheckResult
from bench.measure.outputs import Incorrect
from bench.plan.case import Point
from bench.sampling.inputs import NORMAL, PEAKED, InputValues

SHAPES: list[dict[str, Any]] = [
    {"batch": 1, "num_tokens": 1, "channels": 8, "num_heads": 2},
    {"batch": 1, "num_tokens": 2, "channels": 8, "num_heads": 2},
    {"batch": 4, "num_tokens": 1, "channels": 16, "num_heads": 16},
    {"batch": 2, "num_tokens": 31, "channels": 16, "num_heads": 4},
    {"batch": 2, "num_tokens": 127, "channels": 24, "num_heads": 3},
    {"batch": 2, "num_tokens": 16, "channels": 12, "num_heads": 12},
    {"batch": 3, "num_tokens": 10, "channels": 64, "num_heads": 1},
    {"batch": 13, "num_tokens": 100, "token_len": 49, "channels": 64, "num_heads": 4},
    {"batch": 2, "num_tokens": 50, "token_len": 96, "channels": 48, "num_heads": 6},
    {"batch": 2, "num_tokens": 197, "channels": 192, "num_heads": 3},
    {"batch": 2, "num_tokens": 129, "channels": 64, "num_heads": 2, "qkv_bias": True},
    {"batch": 1, "num_tokens": 300, "channels": 32, "num_heads": 4, "qkv_bias": True},
]
"""One token, two, a prime number of them, heads of one channel."""


def expected(work: workload.Workload) -> list[reference.Check]:
    """Return the expected results for both inputs that are checked before the rounds."""
    return [reference.expect(work, name, values) for name, values in inputs(work).items()]


@lru_cache(maxsize=4)
def inputs(work: workload.Workload) -> dict[str, InputValues]:
    """Return the values of the inputs that are checked before the rounds; it takes some calls to find the peak."""
    return {NORMAL: InputValues(), PEAKED: InputValues(0, reference.peak(work))}


def compared(subject: subjects.Subject, work: workload.Workload, checks: list[reference.Check]) -> CheckResult:
    """Return the worst result of an implementation; a wrong form or number has a reason."""
    results = []
    for check in checks:
        xs = work.inputs(inputs(work)[check.name])
        try:
            output = outputs.compute(subject, work, tuple(x.clone() for x in xs))
            outputs.check_form(subject, work, xs, output)
        except Incorrect as error:
            return CheckResult(float("inf"), 1.0, f"{error} ({check.name})")
        results.append(correctness.compare(work, check, [tensor.cpu() for tensor in output.tensors]))
    return max(results, key=lambda result: result.severity)


def checked(at: Point, implementation: str) -> CheckResult:
    """Return the result of checking an implementation at a point."""
    work, checks = _judged(at, vars(reference)["LONG_SCORES"])  # which a test changes
    return compared(subjects.subject(work, implementation), work, checks)


@lru_cache(maxsize=4)
def _judged(at: Point, _long_scores: int) -> tuple[workload.Workload, list[reference.Check]]:
    """Return the workload of a point and its expected outputs, the same for all implementations."""
    work = workload.make(at)
    function.check(work)
    return work, expected(work)
