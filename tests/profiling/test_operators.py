"""Operators as means over calls."""

import pytest

from bench.profiling.operators import operators
from bench.store.profile import Operator
from tests.points import point
from tests.profiling.taken import captured

AT = point(batch=2, num_tokens=64, channels=32, num_heads=4)


@pytest.fixture(scope="module")
def found() -> dict[str, Operator]:
    """Return the operators of eager by their names."""
    return {each.name: each for each in operators(captured(AT, "eager").middle_half, "cpu")}


def test_calls_bytes_and_flops_are_those_of_one_call(found: dict[str, Operator]) -> None:
    """By hand: two products of all heads, the first with N² results and the second with as many as queries."""
    scores, values = 2 * 4 * 64 * 64, 2 * 64 * 32
    product = found["aten::bmm"]
    assert product.calls == 2
    assert product.flops == 2 * 2 * (values * 64)
    assert product.allocated_bytes == 4 * (scores + values)
    assert found["aten::clone"].allocated_bytes == 4 * 4 * values  # q, k, v and the merged heads
    assert found["aten::_softmax"].flops is None


def test_the_operations_of_a_convolution_stand_where_its_time_is() -> None:
    """PyTorch counts them at the outermost event, which only hands the work on."""
    at = point(layer="conv", batch=2, num_tokens=64, channels=32, image_size=8, token_len=32)
    found = {each.name: each for each in operators(captured(at, "eager").middle_half, "cpu")}
    (counted,) = [each for each in found.values() if each.flops and "conv" in each.name]
    assert counted.flops == 2 * 2 * 64 * 32 * (4 + 4 + 32)
    assert counted.self_s == max(each.self_s for each in found.values() if "conv" in each.name)


def test_the_self_times_add_up_to_no_more_than_the_call(found: dict[str, Operator]) -> None:
    """No moment is counted twice, what took longest comes first, and a CPU has neither device time nor kernels."""
    times = [each.self_s for each in found.values()]
    assert 0 < sum(times) <= captured(AT, "eager").profiled_s
    assert times == sorted(times, reverse=True)
    assert all(each.device_s is None and each.kernels == () for each in found.values())
