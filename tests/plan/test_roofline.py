"""The bounds of a roof, and what is derived of a case from them."""

import pytest

from bench.plan.case import Case
from bench.plan.layers.layer import Work
from bench.plan.roofline import CEILING_BYTES as BYTES
from bench.plan.roofline import CEILING_FLOPS as FLOPS
from bench.plan.roofline import Roof, flops_per_s, roof_of, share, work_of
from tests.points import point

ROOF = Roof(flops_per_s=100.0, bytes_per_s=10.0)


def test_the_larger_bound_counts() -> None:
    """Up to ten operations a byte the memory bounds, above it the arithmetic."""
    assert ROOF.ridge == 10
    assert [ROOF.reached(intensity) for intensity in (1, 10, 50)] == [10, 100, 100]
    assert ROOF.least_s(Work(flops=200, least_bytes=100)) == 10
    assert ROOF.least_s(Work(flops=2000, least_bytes=100)) == 20


def test_the_work_of_a_point() -> None:
    """ViT attention of 3 tokens and 4 channels, by hand: 3·16·3 + 16·3 multiplications beside 2·9·4 of the scores."""
    work = work_of(point(batch=1, num_tokens=3, channels=4, num_heads=1), {})
    assert work is not None
    assert work.flops == 2 * (3 * 3 * 16 + 2 * 9 * 4 + 3 * 16)
    own = point(layer="somebody:Layer")
    assert work_of(own, {}) is None
    assert work_of(own, {"flops": 30, "least_bytes": 3}) == Work(30, 3)


def test_rate_and_share_of_a_case() -> None:
    """A case at the speed of the bound has a share of 1, one of twice its time one half."""
    at = point()
    case, work = Case(at, "eager"), work_of(at, {})
    assert work is not None
    assert work.flops
    ceilings = {FLOPS: 1e9, BYTES: 1e12}
    bound_s = work.flops / 1e9
    assert share(case, {"latency_s": bound_s, **ceilings}) == pytest.approx(1.0)
    assert share(case, {"latency_s": 2 * bound_s, **ceilings}) == pytest.approx(0.5)
    assert share(case, {"latency_s": bound_s, FLOPS: 1e15, BYTES: work.least_bytes / bound_s}) == pytest.approx(1.0)
    assert flops_per_s(case, {"latency_s": bound_s}) == pytest.approx(1e9)


def test_what_is_not_known_is_empty() -> None:
    """Without a time there is no rate, without both ceilings no share."""
    case = Case(point(), "eager")
    assert flops_per_s(case, {}) is None
    assert share(case, {"latency_s": 1.0}) is None
    assert share(case, {"latency_s": 1.0, FLOPS: 1e9, BYTES: None}) is None
    assert share(case, {FLOPS: 1e9, BYTES: 1e9}) is None
    assert roof_of({FLOPS: None, BYTES: None}) is None
