"""The roofline of a row, by hand and at the bound itself."""

import pytest

from bench.plan.case import Case
from bench.plan.work import Roof, Work
from bench.store.roofline import CEILING_BYTES, CEILING_FLOPS, flops_per_s, roof_of, roofline_share, work_of
from tests.make.points import point


def test_the_larger_bound_of_a_roof_counts() -> None:
    """Up to ten operations a byte the memory is the bound, above it the arithmetic."""
    roof = Roof(flops_per_s=100.0, bytes_per_s=10.0)
    assert roof.ridge == 10
    assert [roof.reached(intensity) for intensity in (1, 10, 50)] == [10, 100, 100]
    assert [roof.least_s(Work(flops=flops, least_bytes=100)) for flops in (200, 2000)] == [10, 20]


def test_the_work_of_a_point() -> None:
    """ViT attention of 3 tokens and 4 channels, by hand: 3·16·3 + 16·3 multiplications beside 2·9·4 of the scores."""
    work = work_of(point(batch=1, num_tokens=3, channels=4, num_heads=1), {})
    assert work is not None
    assert work.flops == 2 * (3 * 3 * 16 + 2 * 9 * 4 + 3 * 16)
    own = point(layer="somebody:Layer")
    assert work_of(own, {}) is None
    assert work_of(own, {"flops": 30, "least_bytes": 3}) == Work(30, 3)


def test_rate_and_share_of_the_roofline() -> None:
    """A case at the speed of the bound has a share of 1, one of twice its time one half; without a part it is empty."""
    case, work = Case(point(), "eager"), work_of(point(), {})
    assert work is not None
    assert work.flops
    ceilings = {CEILING_FLOPS: 1e9, CEILING_BYTES: 1e12}
    bound_s = work.flops / 1e9
    assert roofline_share(case, {"latency_s": bound_s, **ceilings}) == pytest.approx(1.0)
    assert roofline_share(case, {"latency_s": 2 * bound_s, **ceilings}) == pytest.approx(0.5)
    of_bytes = {CEILING_FLOPS: 1e15, CEILING_BYTES: work.least_bytes / bound_s}
    assert roofline_share(case, {"latency_s": bound_s, **of_bytes}) == pytest.approx(1.0)
    assert flops_per_s(case, {"latency_s": bound_s}) == pytest.approx(1e9)
    assert flops_per_s(case, {}) is None
    for row in ({"latency_s": 1.0}, {"latency_s": 1.0, **ceilings, CEILING_BYTES: None}, ceilings):
        assert roofline_share(case, row) is None
    assert roof_of({CEILING_FLOPS: None, CEILING_BYTES: None}) is None
