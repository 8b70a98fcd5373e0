"""What the engine believes of a member, by what its judge knows."""

import math
from types import SimpleNamespace
from typing import Any

import pytest

from bench.engine.judge import PointJudge
from bench.plan.work import Roof
from tests.make.points import point


def most_apart_s(implementation: str, **columns: Any) -> float:
    """Return the most seconds for which a member may say that it made the inputs of three timings."""
    member: Any = SimpleNamespace(point=point(**columns), implementation=implementation, calls=4)
    judge: Any = SimpleNamespace(best=Roof(1e12, 1e9))
    return PointJudge.apart_s(judge, member, 3, 0.1)


@pytest.mark.parametrize("implementation", ["sdpa", "my:packing_attend"])
def test_making_inputs_is_believed_by_their_size(implementation: str) -> None:
    """With padding they are made padded: eight items of which the shortest have an eighth of the tokens."""
    sizes = {"batch": 8, "num_tokens": 1024, "channels": 64}
    fixed_s = most_apart_s(implementation, **sizes)
    assert 0 < fixed_s == pytest.approx(most_apart_s(implementation, lengths="bimodal", **sizes), rel=0.01)


def test_a_packing_way_of_the_suite_is_believed_what_it_makes_of_a_batch() -> None:
    """A block mask has all pairs of tokens, and takes longer than the calls."""
    assert most_apart_s("loop", batch=8, num_tokens=64, lengths="uniform") == math.inf
    assert most_apart_s("flex_packed[build=call]", batch=8, num_tokens=64, lengths="uniform") == math.inf
