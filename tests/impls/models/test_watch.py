"""The attention of a model as it runs, and cores of several operators in functions that are written for it."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from impls.models import watch
from impls.models.sources import make
from impls.models.watch import Flow, Scores
from tests import tiny_models

B, H, N, D = 2, 3, 5, 4
HEADS, CHANNELS = torch.randn(H, H), torch.randn(D, D)


def cores(name: str) -> list[watch.Core]:
    """Return the cores of a call of a tiny model in inference."""
    model = make(f"tests.tiny_models:{name}").eval()
    with torch.inference_mode():
        return watch.cores(model, torch.randn(3, *model.item))


def test_a_fused_core_has_shapes_and_strides() -> None:
    """Those of views of a packed projection, with the module that it belongs to."""
    first, second = cores("Net[input=5x16]")
    assert (first.layer, second.layer, first.class_name) == ("layers.0", "layers.1", "Attention")
    assert first.shapes == ((3, 2, 5, 8),) * 3
    assert first.strides == ((240, 8, 48, 1),) * 3
    assert first.by_sdpa
    assert first.is_fused
    assert (first.mask, first.causal, first.dropout, first.dtype) == ("", False, 0.0, "float32")


def test_masks_are_seen() -> None:
    """A tensor with its shape, or a causal one."""
    for kind, mask, causal in (("masked", "float32 [5, 5]", False), ("causal", "", True)):
        core = cores(f"Net[kind={kind},input=5x16]")[0]
        assert (core.mask, core.causal) == (mask, causal)


def test_an_unfused_core_is_known_by_its_operators() -> None:
    """A product, a softmax and a product; a model without attention has no core."""
    first, second = cores("Net[kind=written,input=5x16]")
    assert {(core.operator, core.by_sdpa) for core in (first, second)} == {(watch.UNFUSED, False)}
    assert first.shapes[0] == (3, 2, 5, 8)
    assert first.lines.startswith(f"{tiny_models.__file__}:")
    assert cores("plain[input=5x16]") == []


@pytest.mark.parametrize(
    ("name", "operator", "layer"),
    [
        ("Encoder[input=5x16]", "_transformer_encoder_layer_fwd", "encoder.layers.0"),
        ("Heads[input=5x16]", "_native_multi_head_attention", "attention"),
    ],
)
def test_a_fast_path_stays_one(name: str, operator: str, layer: str) -> None:
    """Watching changes nothing: torch's own modules still run as one operator."""
    core = cores(name)[0]
    assert (core.operator, core.layer, core.is_whole) == (operator, layer, True)


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
    """One of the values may be computed after the scores."""
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
    assert core.masks == ["float32 [5, 5]"]
    assert followed(plain).cores[0].masks == []


def test_layers_that_are_alike_share_a_trace() -> None:
    """So that the tensors of one are held for all; each core has one."""
    model = make("tests.tiny_models:Net[kind=written,input=5x16]").eval()
    with torch.inference_mode(), watch.watched(model) as seen:
        model(torch.randn(3, *model.item))
    assert [*seen.traces] == [0, 1]
    assert seen.traces[0] is seen.traces[1]
