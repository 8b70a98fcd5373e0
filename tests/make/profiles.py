"""Profiles that nobody measured, plausible enough to be shown: stepwise in stages, and others by their operators."""

from dataclasses import replace
from typing import Any

from bench.plan.case import Case
from bench.store.profile import BACKWARD, CORE, FORWARD, Profile, ProfiledOperator, Stage
from tests.make.points import vit_s
from tests.make.records import ORIGIN

MIB = 1 << 20

STEPS: dict[str, tuple[str, float, int]] = {
    "qkv projection": ("aten::mm", 3e-3, 7 * MIB),
    "split heads": ("aten::unbind", 0.01e-3, 0),
    "scale": ("aten::mul", 0.3e-3, 2 * MIB),
    "scores": ("aten::bmm", 2e-3, 9 * MIB),
    "softmax": ("aten::_softmax", 1.5e-3, 7 * MIB),
    "weighted values": ("aten::bmm", 2e-3, 2 * MIB),
    "merge heads": ("aten::clone", 0.2e-3, 2 * MIB),
    "output projection": ("aten::addmm", 1e-3, 2 * MIB),
    "skip": ("aten::add", 0.3e-3, 2 * MIB),
}
"""Each step with the operator that does its work, its seconds and the bytes that it allocates."""


def profile(implementation: str = "sdpa", *, operators: tuple[ProfiledOperator, ...] = (), **changes: Any) -> Profile:
    """Return the profile of a case without stages; columns of its point may be changed."""
    given = operators or (
        ProfiledOperator("aten::addmm", 2, 4e-3, 9 * MIB, flops=2e9),
        ProfiledOperator("aten::_scaled_dot_product_flash_attention_for_cpu", 1, 3e-3, 3 * MIB),
        ProfiledOperator("aten::add", 1, 0.3e-3, 2 * MIB, flops=6e5),
    )
    case = Case(vit_s(**changes), implementation)
    total_s = sum(each.self_s for each in given)
    return Profile(case, ORIGIN, 3, total_s, total_s * 1.02, given)


def by_graph() -> Profile:
    """Return the profile of a module's graph, whose core takes three quarters of the time."""
    lines = {"qkv": "layer.py:8", f"{CORE} of Mine, layer.py:9-11": "layer.py:11"}
    operators = tuple(
        ProfiledOperator("aten::bmm", 1, time_s, MIB, line=line)
        for time_s, line in zip((1e-3, 3e-3), lines.values(), strict=True)
    )
    of = profile("graph", operators=operators, layer="layer:Mine")
    stages = tuple(Stage(name, FORWARD, each.self_s, MIB) for name, each in zip(lines, operators, strict=True))
    return replace(of, stages=stages)


def stepwise(*, residual_s: float = 0.2e-3, **changes: Any) -> Profile:
    """Return a profile in stages, whose whole is so much more than their sum; in training they come twice."""
    case = Case(vit_s(**changes), "stepwise")
    directions = (FORWARD, BACKWARD) if case.point.mode == "train" else (FORWARD,)
    stages = [
        Stage(name, direction, time_s, size, 1e9 if "mm" in operator else None)
        for direction in directions
        for name, (operator, time_s, size) in STEPS.items()
    ]
    operators: dict[str, ProfiledOperator] = {}
    for operator, time_s, size in [*STEPS.values()] * len(directions):
        before = operators.get(operator, ProfiledOperator(operator, 0, 0.0, 0))
        operators[operator] = ProfiledOperator(
            operator, before.calls + 1, before.self_s + time_s, before.allocated_bytes + size
        )
    whole_s = sum(stage.time_s for stage in stages) + residual_s
    return Profile(case, ORIGIN, 3, whole_s, whole_s * 1.05, (*operators.values(),), (*stages,))
