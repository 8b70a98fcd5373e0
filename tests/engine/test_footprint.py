"""The least memory that a case needs."""

import pytest

from bench.engine.footprint import least_bytes, reference_bytes
from bench.plan.case import Case
from tests.points import point

LARGE = point(batch=2, num_tokens=1000, token_len=12, channels=12, num_heads=3, dtype="bfloat16")
TENSORS = 2 * (2 * 2 * 1000 * 12 + 3 * 12 * 12 + 12 * 12 + 12)
"""Input, output and weights in bfloat16."""


@pytest.mark.parametrize(
    ("implementation", "scores"),
    [
        ("eager", 2 * 3 * 1000**2),
        ("mha_weights", 2 * 3 * 1000**2),
        ("manual", 2 * 1000**2),
        ("sdpa", 0),
        ("compiled_eager", 0),
        ("mykernel:adapt", 0),
    ],
)
def test_a_case_holds_its_tensors_and_its_scores(implementation: str, scores: int) -> None:
    """Without a formula the scores count once, for those that are known to hold them."""
    assert least_bytes(Case(LARGE, implementation)) == TENSORS + 2 * scores


def test_a_formula_says_more() -> None:
    """In float32 inference eager is known to hold both score tensors beside the projection."""
    case = Case(point(batch=2, num_tokens=1000, token_len=12, channels=12, num_heads=3), "eager")
    assert least_bytes(case) == 2 * TENSORS + 4 * (2 * 2 * 3 * 1000**2 + 3 * 2 * 1000 * 12)


def test_the_reference_holds_one_items_scores_twice_in_float64() -> None:
    """Whatever the point's dtype, and on whatever device."""
    assert reference_bytes(LARGE) == TENSORS + 2 * 8 * 3 * 1000**2
