"""A rate above what the device reaches is an error with the figures; fast kernels and busy machines make none."""

import math
from collections.abc import Callable

import pytest

from bench.measure import ceiling
from bench.measure.ceiling import BEYOND, MARGIN, Judgement
from bench.plan.layers import flops, least_bytes
from bench.plan.layers.layer import Work
from bench.store.roofline import Roof
from tests.measure.test_visit import visited
from tests.points import point

AT = point(num_tokens=64, channels=64, num_heads=4)
LARGE = point(batch=4096, num_tokens=64, channels=64, num_heads=4)
BEST = Roof(flops_per_s=1e9, bytes_per_s=1e9)
WORK = Work(flops(AT), least_bytes(AT))
WORK_S = (flops(AT) or 0) / BEST.flops_per_s
"""What the work of a call takes at the best that is known."""


Shows = list[tuple[Roof, float]]


def times(factor: float) -> Roof:
    """Return so many times the best that is known."""
    return Roof(factor * BEST.flops_per_s, factor * BEST.bytes_per_s)


@pytest.fixture
def confronted(monkeypatch: pytest.MonkeyPatch) -> Shows:
    """Return a list of what confrontations show: what products and copy reach, and what others keep busy.

    A call that is timed again takes as long as the timer says. A confrontation that isn't expected fails.
    """
    shows: Shows = []
    others: list[float] = []

    class Interference:
        def __init__(self, threads: int, beside: int | None) -> None: ...

        def share(self) -> float:
            return others.pop()

    def show(_point: object, again: Callable[[], float]) -> tuple[Roof, float]:
        reached, busy = shows.pop(0)
        others.append(busy)
        return reached, again()

    monkeypatch.setattr(ceiling, "_seen", {})
    monkeypatch.setattr(ceiling, "_confronted", show)
    monkeypatch.setattr(ceiling, "_taken", lambda _point: BEST)
    monkeypatch.setattr(ceiling, "Interference", Interference)
    return shows


def judged(excess: float, again: float | None = None, known: Roof | None = BEST) -> Judgement:
    """Return the judgement on a call that takes so many times less than its work does at the best, then and again."""
    return ceiling.judge(AT, WORK, WORK_S / excess, known, lambda: WORK_S / (again or excess))


def test_a_possible_time_is_not_looked_at_again(confronted: Shows) -> None:
    """Up to the margin nothing is said, nothing is timed again, and the best stays what it is."""
    assert judged(0.99 * MARGIN) == judged(0.5) == Judgement(BEST)


def test_where_nothing_is_known_the_best_is_taken_first(confronted: Shows) -> None:
    """The judgement carries it, so that it can be kept."""
    assert judged(1.0, known=None) == Judgement(BEST)


def test_twice_the_best_is_impossible_on_a_quiet_machine(confronted: Shows) -> None:
    """The objection names both rates."""
    confronted.append((BEST, 0.0))
    said = judged(2.0).objection
    assert "impossible rate" in said
    assert "would be 2.00 GFLOP/s; a matrix product reaches 1.00 GFLOP/s" in said


def test_a_best_that_was_taken_on_a_slow_machine_is_raised(confronted: Shows) -> None:
    """A ceiling at a third of the speed is taken anew beside the call, and the judgement carries the new one."""
    confronted.append((times(3), 0.0))
    assert judged(3.0) == Judgement(times(3))


def test_a_call_that_is_slower_when_it_is_timed_again_is_possible(confronted: Shows) -> None:
    """One timing that nobody can repeat is no proof."""
    confronted.append((BEST, 0.0))
    assert judged(2.0, again=1.0) == Judgement(BEST)


@pytest.mark.parametrize(("reached", "others"), [(0.5, 0.0), (1.0, 0.9), (0.1, 13.0)])
def test_on_a_busy_machine_the_time_is_kept_with_a_doubt(confronted: Shows, reached: float, others: float) -> None:
    """Others at work, or products that don't reach what they have reached before, are no fault of the case."""
    confronted.append((times(reached), others))
    judgement = judged(2.0)
    assert judgement.objection == ""
    assert "perhaps an impossible rate" in judgement.doubt
    assert judgement.best == BEST


@pytest.mark.parametrize(("reached", "others"), [(1.0, 0.0), (0.1, 13.0)])
def test_far_beyond_the_best_is_impossible_on_any_machine(confronted: Shows, reached: float, others: float) -> None:
    """No load explains it."""
    confronted.append((times(reached), others))
    assert "impossible rate" in judged(1.1 * BEYOND).objection


def test_more_bytes_than_a_copy_moves_are_impossible(confronted: Shows) -> None:
    """A call too large for a cache is held against the copy as well."""
    confronted.append((Roof(1e15, 1e9), 0.0))
    best, call_s = Roof(1e15, 1e9), least_bytes(LARGE) / 2e9
    said = ceiling.judge(LARGE, Work(flops(LARGE), least_bytes(LARGE)), call_s, best, lambda: call_s).objection
    assert "would be 2.00 GB/s; a copy reaches 1.00 GB/s" in said


def test_a_small_call_is_not_held_against_the_copy(confronted: Shows) -> None:
    """What fits in a cache may move faster than memory."""
    assert ceiling.judge(AT, WORK, 1e-6, Roof(1e15, 1.0), lambda: math.nan).objection == ""


def test_work_that_nobody_knows_makes_no_time_impossible(confronted: Shows) -> None:
    """A layer whose operations are unknown is not held against a product."""
    unknown = Work(None, least_bytes(AT))
    assert ceiling.judge(AT, unknown, 1e-9, BEST, lambda: math.nan) == Judgement(BEST)


@pytest.mark.slow
def test_the_real_ceiling_lies_above_a_real_layer() -> None:
    """Eager, sdpa and mha stay possible at a shape that keeps the core busy, and the visit says what was seen."""
    made = visited("eager", "sdpa", "mha", num_tokens=128, channels=256, num_heads=4, batch=8)
    assert {outcome.status for outcome in made.outcomes.values()} == {"ok"}
    assert made.ceiling is not None
    assert made.ceiling.flops_per_s > 1e8


@pytest.mark.slow
def test_an_implementation_that_works_only_if_it_is_looked_at_is_an_error() -> None:
    """Its answers are right whenever they are judged, and its time is a thousandth of what is possible."""
    name = "tests.mutants:works_if_looked_at"
    made = visited("eager", name, num_tokens=128, channels=256, num_heads=4, batch=8)
    outcome = made.outcomes[name]
    assert outcome.status == "error"
    assert "impossible rate" in outcome.detail
    assert "slots" not in outcome.metrics
    assert made.outcomes["eager"].status == "ok"
