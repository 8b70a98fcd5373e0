"""Made-up but plausible profiles: graphs in stages, and others by their operators."""

from typing import Any

from bench.plan.case import Case
from bench.store.profile import BACKWARD, CORE, FORWARD, Profile, ProfiledOperator, Stage
from tests.make.points import vit_s
from tests.make.records import ORIGIN

STAGES: dict[str, tuple[str, float]] = {
    "qkv": ("aten::mm", 3e-3),
    f"{CORE} of ViTAttention, eager.py:26-30": ("aten::bmm", 6e-3),
    "proj": ("aten::addmm", 2e-3),
    "ViTAttention": ("aten::add", 1e-3),
}
"""Each stage with the operator that does its work and its seconds."""


def profile(implementation: str = "sdpa", *, operators: tuple[ProfiledOperator, ...] = (), **changes: Any) -> Profile:
    """Return the profile of a case without stages; columns of its point may be changed."""
    given = operators or (
        ProfiledOperator("aten::addmm", 2, 4e-3, flops=2e9),
        ProfiledOperator("aten::_scaled_dot_product_flash_attention_for_cpu", 1, 3e-3),
        ProfiledOperator("aten::add", 1, 0.3e-3),
    )
    total_s = sum(each.self_s for each in given)
    return Profile(Case(vit_s(**changes), implementation), ORIGIN, 15, total_s, total_s * 1.02, given)


def graph(*, residual_s: float = 0.2e-3, **changes: Any) -> Profile:
    """Return the profile of a graph whose call is longer than its stages by this time; in training they come twice."""
    case = Case(vit_s(**changes), "graph")
    directions = (FORWARD, BACKWARD) if case.point.mode == "train" else (FORWARD,)
    stages = tuple(Stage(name, way, time_s) for way in directions for name, (_, time_s) in STAGES.items())
    operators = tuple(
        ProfiledOperator(operator, len(directions), len(directions) * time_s, line=f"layer.py:{line}")
        for line, (operator, time_s) in enumerate(STAGES.values(), start=8)
    )
    whole_s = sum(stage.time_s for stage in stages) + residual_s
    return Profile(case, ORIGIN, 15, whole_s / 1.05, whole_s, operators, stages)
