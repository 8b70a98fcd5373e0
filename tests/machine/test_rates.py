"""A rate above the device's is impossible."""

from bench.machine.rates import POSSIBLE, counted, objection
from bench.plan.device import CPU
from bench.plan.layers import flops, least_bytes
from bench.plan.work import Roof, Work
from tests.make.points import point

HERE = point(num_tokens=64, channels=64, num_heads=4)
LARGE = point(batch=4096, num_tokens=64, channels=64, num_heads=4)
BEST = Roof(flops_per_s=1e9, bytes_per_s=1e9)
WORK = Work(10**6, 0)
WORK_S = 1e-3
"""The time of that work at the best rate."""


def test_a_rate_within_the_margin_is_possible() -> None:
    """A layer's own shapes may be a little better than the product's; beyond that, both rates are named."""
    assert objection(WORK, WORK_S / (0.99 * POSSIBLE), BEST) == ""
    assert objection(WORK, WORK_S / (1.01 * POSSIBLE), BEST)
    assert "means 2.00 GFLOP/s, more than the 1.00 GFLOP/s of a matrix product" in objection(WORK, WORK_S / 2, BEST)


def test_more_bytes_than_a_copy_moves_are_impossible() -> None:
    """A call that is too large for a cache is also compared with the copy."""
    best, work = Roof(1e15, 1e9), counted(LARGE, Work(flops(LARGE), least_bytes(LARGE)))
    assert "means 2.00 GB/s, more than the 1.00 GB/s of a copy" in objection(work, least_bytes(LARGE) / 2e9, best)


def test_a_small_call_is_not_compared_with_the_copy() -> None:
    """What fits into a cache may move faster than memory; a GPU's cache is another one.

    A layer whose operations are unknown is not compared with a product.
    """
    small, larger = Work(flops(HERE), least_bytes(HERE)), Work(10, CPU.copied_bytes + 1)
    assert counted(HERE, small) == Work(flops(HERE), 0)
    assert counted(HERE, larger) == larger
    assert counted(point(device="cuda:0"), larger) == Work(10, 0)
    assert objection(counted(HERE, Work(None, least_bytes(HERE))), 1e-9, BEST) == ""
