"""The work of a layer, held against torch's own count and the sizes of its tensors."""

import dataclasses

import pytest
from torch.utils.flop_counter import FlopCounterMode

from bench.measure import workload
from bench.plan.case import Point
from bench.plan.layers import flops, least_bytes
from tests.points import OF_LAYER, of_layer, point

SHAPES = [
    point(batch=2, num_tokens=16, token_len=64, channels=64, num_heads=4),
    point(batch=3, num_tokens=64, token_len=48, channels=48, num_heads=1),
    point(batch=13, num_tokens=100, token_len=49, channels=64, num_heads=4),
    *map(of_layer, OF_LAYER),
]


@pytest.mark.parametrize("mode", ["inference", "forward", "train"])
@pytest.mark.parametrize("at", SHAPES, ids=lambda at: at.name)
def test_flops_are_those_that_torch_counts_in_the_layer(at: Point, mode: str) -> None:
    """Forward, and forward with backward, each layer's formula agrees with torch's counter to the last operation."""
    at = dataclasses.replace(at, mode=mode)
    work = workload.make(at)
    x = work.x.requires_grad_()
    with FlopCounterMode(display=False) as counter:
        y = work.layer(x)
        if mode == "train":
            y.backward(work.direction)
    assert flops(at) == counter.get_total_flops()


@pytest.mark.parametrize(
    ("layer", "halves"),
    [
        # B·N²·(width of keys + width of values) multiplications become half as many
        ("vit", 2 * 7**2 * (12 + 12)),
        ("self", 2 * 7**2 * (6 + 14)),
        ("patch", 2 * 9**2 * (12 + 12)),
        ("conv", 2 * 9**2 * (2 + 16)),
    ],
)
@pytest.mark.parametrize(("mode", "times"), [("inference", 1), ("train", 3)])
def test_a_causal_mask_halves_the_products_of_the_core(layer: str, halves: int, mode: str, times: int) -> None:
    """Half of the scores are needed, and no projection changes; a multiplication is two operations."""
    whole, causal = (flops(of_layer(layer, mode=mode, mask=mask)) or 0 for mask in ("none", "causal"))
    assert whole - causal == times * halves


@pytest.mark.parametrize("layer", OF_LAYER)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_least_bytes_are_those_of_input_weights_and_output(dtype: str, layer: str) -> None:
    """Each tensor that lives outside the call counts once."""
    at = of_layer(layer, dtype=dtype)
    work = workload.make(at)
    tensors = [work.x, work.direction, *work.layer.parameters()]
    assert least_bytes(at) == sum(tensor.nbytes for tensor in tensors)
