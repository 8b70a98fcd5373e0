"""Cores of several operators, in functions that are written for it."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from impls.modules.flow import Flow, Scores

B, H, N, D = 2, 3, 5, 4
HEADS, CHANNELS = torch.randn(H, H), torch.randn(D, D)


class Followed(TorchDispatchMode):
    """Follows the operators of a function."""

    def __init__(self, x: Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.flow, self.cores = Flow(), list[Scores]()
        self.flow.begin([x])

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        """Note an operator."""
        output = func(*args, **(kwargs or {}))
        if scores := self.flow.next(func, args, kwargs, output):
            self.cores.append(scores)
        return output


def followed(function: Callable[[Tensor], object], *, grad: bool = False) -> Followed:
    """Return what was seen of a function of an input [B, H, N, D]."""
    x = torch.randn(B, H, N, D, requires_grad=grad)
    seen = Followed(x)
    with torch.set_grad_enabled(grad), seen:
        function(x)
    return seen


def plain(x: Tensor) -> Tensor:
    """Return attention in which all three are the input."""
    return (x @ x.mT / 2).softmax(-1) @ x


def talking_heads(x: Tensor) -> Tensor:
    """Return attention with a layer over heads before and after the softmax."""
    scores = torch.nn.functional.linear((x @ x.mT).permute(0, 2, 3, 1), HEADS).permute(0, 3, 1, 2).softmax(-1)
    weights = torch.nn.functional.linear(scores.permute(0, 2, 3, 1), HEADS).permute(0, 3, 1, 2)
    return weights @ x


def masked_in_place(x: Tensor) -> Tensor:
    """Return attention whose scores are changed in place, with a mask that is computed from constants."""
    scores = x @ x.mT
    scores += (torch.randn(N, D) @ torch.randn(D, N)).tril()
    return torch.nn.functional.dropout(scores.softmax(-1), 0.1) @ x


def values_on_the_left(x: Tensor) -> Tensor:
    """Return attention with transposed weights."""
    return x.mT @ (x @ x.mT).softmax(-2)


def over_channels(x: Tensor) -> Tensor:
    """Return attention of channels, as in XCiT."""
    return (x.mT @ x).softmax(-1) @ x.mT


@pytest.mark.parametrize("function", [plain, talking_heads, masked_in_place, values_on_the_left, over_channels])
def test_a_product_a_softmax_and_a_product_are_a_core(function: Callable[[Tensor], Tensor]) -> None:
    """Whatever stands between them, all of it belongs to the core."""
    for grad in (False, True):
        seen = followed(function, grad=grad)
        (core,) = seen.cores
        assert core.steps == [*range(len(seen.flow.operators))]
        assert core.value is not None
        assert {line for file, line in core.lines if file == __file__}


def test_a_projection_between_is_no_part_of_a_core() -> None:
    """A projection of the values may be computed after the scores."""
    seen = followed(lambda x: (x @ x.mT).softmax(-1) @ (x.reshape(-1, D) @ CHANNELS).reshape(x.shape))
    assert seen.flow.operators == ["product", "softmax", "product", "product"]
    assert [core.steps for core in seen.cores] == [[0, 1, 3]]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.softmax(-1) @ x.mT,
        lambda x: x @ (x.softmax(-2).mT @ x),
        lambda x: (x @ x.mT) @ x,
        lambda x: (x @ CHANNELS).softmax(-1) @ CHANNELS,
    ],
)
def test_other_products_are_none(function: Callable[[Tensor], Tensor]) -> None:
    """Linear attention, gates by weights, and products without a softmax."""
    assert followed(function).cores == []


def test_each_layer_has_its_own_core() -> None:
    """What follows a core is no part of it, though it works on its result."""
    seen = followed(lambda x: plain(plain(x) @ CHANNELS))
    assert [core.steps for core in seen.cores] == [[0, 1, 2], [4, 5, 6]]


def test_a_mask_is_described() -> None:
    """By its dtype and shape, if something is added to scores before the softmax."""
    (core,) = followed(lambda x: (x @ x.mT + torch.zeros(N, N)).softmax(-1) @ x).cores
    assert [*map(str, core.masks)] == ["float32 [5, 5]"]
    assert followed(plain).cores[0].masks == []
