"""A rate above what the device reaches is an error with the figures, and a fast kernel is none."""

import pytest

from bench.measure import ceiling
from bench.measure.ceiling import Ceiling
from bench.plan import layers as work
from tests.measure.test_visit import visited
from tests.points import point

AT = point(num_tokens=64, channels=64, num_heads=4)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[Ceiling]:
    """Return a list from which ceilings are taken, the last first; nothing is remembered from before or for later."""
    ceilings: list[Ceiling] = []
    monkeypatch.setattr(ceiling, "_best", {})
    monkeypatch.setattr(ceiling, "_take", lambda *_: ceilings.pop())
    return ceilings


def test_a_possible_rate_is_no_objection(taken: list[Ceiling]) -> None:
    """At the product's own rate there is nothing to say, and the ceiling is taken once."""
    taken.append(Ceiling(flops_per_s=1e9, bytes_per_s=1e9))
    at_the_ceiling_s = work.flops(AT) / 1e9
    assert ceiling.objection(AT, at_the_ceiling_s) == ""
    assert ceiling.objection(AT, 2 * at_the_ceiling_s) == ""


def test_twice_the_rate_of_the_product_is_impossible(taken: list[Ceiling]) -> None:
    """The objection names both rates."""
    taken.extend([Ceiling(1e9, 1e12)] * 2)
    said = ceiling.objection(AT, work.flops(AT) / 2e9)
    assert "the layer's work at this time would be 2.00 GFLOP/s; a matrix product reaches 1.00 GFLOP/s" in said


def test_a_machine_that_was_slow_at_first_is_asked_again(taken: list[Ceiling]) -> None:
    """A ceiling taken at a third of the speed is taken anew before anything is called impossible."""
    taken.extend([Ceiling(3e9, 1e12), Ceiling(1e9, 1e12)])
    assert ceiling.objection(AT, work.flops(AT) / 3e9) == ""


def test_more_bytes_than_a_copy_moves_are_impossible(taken: list[Ceiling]) -> None:
    """A call too large for a cache is held against the copy as well."""
    large = point(batch=4096, num_tokens=64, channels=64, num_heads=4)
    taken.extend([Ceiling(1e15, 1e9)] * 2)
    assert "a copy reaches 1.00 GB/s" in ceiling.objection(large, work.least_bytes(large) / 2e9)


def test_a_small_call_is_not_held_against_the_copy(taken: list[Ceiling]) -> None:
    """What fits in a cache may move faster than memory."""
    taken.append(Ceiling(1e15, 1.0))
    assert ceiling.objection(AT, 1e-6) == ""


def test_the_real_ceiling_lies_above_a_real_layer() -> None:
    """Eager, sdpa and mha stay possible at a shape that keeps the core busy."""
    made = visited("eager", "sdpa", "mha", num_tokens=128, channels=256, num_heads=4, batch=8)
    assert {outcome.status for outcome in made.outcomes.values()} == {"ok"}


def test_an_implementation_that_remembers_its_answer_is_an_error() -> None:
    """It passes the gate, because its answers are right, and would be thousands of times faster than possible."""
    made = visited("eager", "tests.mutants:remembers", num_tokens=128, channels=256, num_heads=4, batch=8)
    outcome = made.outcomes["tests.mutants:remembers"]
    assert outcome.status == "error"
    assert "impossible rate" in outcome.detail
    assert "slots" not in outcome.found
    assert made.outcomes["eager"].status == "ok"
