"""The workload: the same weights and inputs for everyone, and calls in the point's mode."""

import pytest
import torch
from torch import Tensor

from bench.measure import workload
from tests.points import of_layer, point


def test_the_values_depend_on_the_shape_alone() -> None:
    """Two workloads of one point hold equal weights and inputs, whatever was drawn in between."""
    first = workload.make(point())
    torch.randn(17)
    second = workload.make(point())
    assert torch.equal(first.x, second.x)
    for one, other in zip(first.layer.parameters(), second.layer.parameters(), strict=True):
        assert torch.equal(one, other)


def test_making_a_workload_leaves_the_random_state_alone() -> None:
    """The user's own random numbers do not change because a point was prepared."""
    torch.manual_seed(3)
    expected = torch.randn(4)
    torch.manual_seed(3)
    workload.make(point())
    assert torch.equal(torch.randn(4), expected)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_everything_has_the_points_dtype(dtype: str) -> None:
    """Input, output gradient and weights have the dtype of the point."""
    work = workload.make(point(dtype=dtype))
    tensors = [work.x, work.direction, *work.layer.parameters()]
    assert {tensor.dtype for tensor in tensors} == {getattr(torch, dtype)}


def test_token_len_and_channels_become_the_origins_dim_and_chan() -> None:
    """A point from 49 to 64 channels builds a layer that maps 49 to 64."""
    work = workload.make(point(token_len=49, channels=64, num_heads=4))
    assert work.x.shape == (2, 7, 49)
    assert work.direction.shape == (2, 7, 64)
    assert work.layer.state_dict()["qkv.weight"].shape == (3 * 64, 49)


@pytest.mark.parametrize(
    ("layer", "x", "y"),
    [("self", (2, 7, 10), (2, 7, 14)), ("patch", (2, 3, 12, 12), (2, 9, 12)), ("conv", (2, 16, 3, 3), (2, 16, 3, 3))],
)
def test_each_layer_gets_what_it_takes(layer: str, x: tuple[int, ...], y: tuple[int, ...]) -> None:
    """Layers of tokens get tokens and layers of images get images, and the output gradient has the output's shape."""
    work = workload.make(of_layer(layer))
    assert (tuple(work.x.shape), tuple(work.direction.shape)) == (x, y)


def test_the_residual_of_conv_counts() -> None:
    """The workload's gamma is not its initial 0, at which the layer would return its input."""
    work = workload.make(of_layer("conv"))
    assert work.layer.get_parameter("gamma").item() == workload.GAMMA > 0


def test_a_scale_of_the_point_is_the_layers() -> None:
    """qk_scale goes to the layer as it is."""
    assert workload.make(point(qk_scale=0.25)).layer.scale == 0.25


def test_implementations_cannot_disturb_each_other() -> None:
    """Each subject has its own copy of the weights: zeroing one leaves the other and the reference as they are."""
    work = workload.make(point())
    first, second = workload.subject(work, "eager"), workload.subject(work, "sdpa")
    with torch.no_grad():
        for weight in first.layer.parameters():
            weight.zero_()
    for weight, original in zip(second.layer.parameters(), work.layer.parameters(), strict=True):
        assert torch.equal(weight, original)
        assert weight.abs().max() > 0


def test_an_inference_call_keeps_no_graph() -> None:
    """In mode inference the output is an inference tensor."""
    work = workload.make(point())
    with work.context():
        y = workload.step(workload.subject(work, "eager"), work)()
    assert isinstance(y, Tensor)
    assert y.is_inference()


def test_a_forward_call_keeps_the_graph() -> None:
    """In mode forward the output can be differentiated."""
    work = workload.make(point(mode="forward"))
    with work.context():
        y = workload.step(workload.subject(work, "eager"), work)()
    assert isinstance(y, Tensor)
    assert y.grad_fn is not None


def test_a_training_step_gives_the_gradients_of_x_and_of_every_weight_each_time() -> None:
    """In mode train each call computes all gradients from a fresh graph, and adds none up."""
    work = workload.make(point(mode="train"))
    subject = workload.subject(work, "eager")
    call = workload.step(subject, work)
    with work.context():
        first, second = call(), call()
    assert isinstance(first, tuple)
    assert isinstance(second, tuple)
    assert [gradient.shape for gradient in first] == [work.x.shape, *(p.shape for p in subject.layer.parameters())]
    for one, other in zip(first, second, strict=True):
        assert torch.equal(one, other)
        assert one.abs().max() > 0
    assert all(weight.grad is None for weight in subject.layer.parameters())
