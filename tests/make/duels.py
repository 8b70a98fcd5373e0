"""Made-up duels: changes between two sides, and their outcome."""

from typing import Any

from bench.analyse.change import Change
from bench.analyse.duel import Outcome, change
from bench.plan.case import AFTER, BEFORE
from bench.plan.sides import SAME
from bench.store.environment import Environment
from tests.make.points import point

BOUND = 0.01
IDENTITY = {"cpu": "A CPU", "cores": 2, "torch": "2.13.0", "python": "3.11.7"}

FAST, EQUAL, UNSURE, SLOW = (1.5, 1.4, 1.6), (1.0, 0.995, 1.005), (0.99, 0.94, 1.04), (0.95, 0.94, 0.96)
"""Speed-ups of the second side with the ends of their intervals."""


def row(name: str, status: str = "ok", **changes: Any) -> dict[str, Any]:
    """Return the row of a side."""
    columns = {"implementation": name, "status": status, "detail": None, "baseline": BEFORE, "flagged_share": 0.0}
    measured = {"latency_s": 1e-3, "memory_bytes": 1000, "processes": 3, "kernels": "aten::bmm;aten::_softmax"}
    of_status = measured if status == "ok" else {"detail": f"{name} {status}: (*because*)"}
    return {**columns, **of_status, **changes}


def of(*speedup: float, tokens: int = 7, bound: float = BOUND, **changes: Any) -> Change:
    """Return the change to a side with this speed-up; `changes` replace values of its row."""
    ends = dict(zip(("speedup", "speedup_low", "speedup_high"), speedup, strict=False))
    return change(point(num_tokens=tokens), [row(BEFORE), row(AFTER, **{**ends, **changes})], BEFORE, AFTER, bound)


def ended(before: str, after: str, tokens: int = 7) -> Change:
    """Return the change between sides with these statuses."""
    return change(point(num_tokens=tokens), [row(BEFORE, before), row(AFTER, after)], BEFORE, AFTER, BOUND)


LOST = (ended("ok", "incorrect"), ended("skipped", "crashed"), ended("oom", "skipped"), of())
"""The second side is different, or one has no time, or both have one but from different replicates."""


def outcome(
    *changes: Change,
    sides: dict[str, Any] | None = None,
    weights: str | None = SAME,
    allow: float | None = None,
    names: tuple[str, str] = (BEFORE, AFTER),
) -> Outcome:
    """Return the outcome of a duel of 40 seconds."""
    here = Environment(IDENTITY, {}, {"weights": weights, **({"sides": sides} if sides else {})})
    return Outcome(changes, *names, BOUND, allow, 40.0, here)
