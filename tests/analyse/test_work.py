"""The work of a layer, held against torch's own count and the sizes of its tensors."""

import pytest
from torch.utils.flop_counter import FlopCounterMode

from bench.analyse.work import flops, least_bytes
from bench.measure import workload
from tests.points import of_layer, point

SHAPES = [(2, 16, 64, 64, 4), (3, 64, 48, 48, 1), (13, 100, 49, 64, 4)]


@pytest.mark.parametrize("mode", ["inference", "forward", "train"])
@pytest.mark.parametrize(("batch", "tokens", "token_len", "channels", "heads"), SHAPES)
def test_flops_are_those_that_torch_counts_in_the_eager_layer(
    batch: int, tokens: int, token_len: int, channels: int, heads: int, mode: str
) -> None:
    """Forward, and forward with backward, agree with torch's counter to the last operation."""
    at = point(batch=batch, num_tokens=tokens, token_len=token_len, channels=channels, num_heads=heads, mode=mode)
    work = workload.make(at)
    x = work.x.requires_grad_()
    with FlopCounterMode(display=False) as counter:
        y = work.layer(x)
        if mode == "train":
            y.backward(work.direction)
    assert flops(at) == counter.get_total_flops()


@pytest.mark.parametrize("mode", ["inference", "train"])
@pytest.mark.parametrize("layer", ["self", "patch", "conv"])
def test_flops_of_the_other_layers_are_those_that_torch_counts(layer: str, mode: str) -> None:
    """Each layer's formula agrees with torch's counter to the last operation."""
    at = of_layer(layer, mode=mode)
    work = workload.make(at)
    x = work.x.requires_grad_()
    with FlopCounterMode(display=False) as counter:
        y = work.layer(x)
        if mode == "train":
            y.backward(work.direction)
    assert flops(at) == counter.get_total_flops()


@pytest.mark.parametrize("layer", ["vit", "self", "patch", "conv"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_least_bytes_are_those_of_input_weights_and_output(dtype: str, layer: str) -> None:
    """Each tensor that lives outside the call counts once."""
    at = of_layer(layer, dtype=dtype)
    work = workload.make(at)
    tensors = [work.x, work.direction, *work.layer.parameters()]
    assert least_bytes(at) == sum(tensor.nbytes for tensor in tensors)
