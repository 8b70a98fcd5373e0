"""The attention of a model as it runs."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention
from torch import Tensor, nn

from impls.modules import watch
from impls.modules.wrapper import wrapped
from tests import tiny_models
from tests.make.points import made


def cores(name: str) -> list[watch.Core]:
    """Return the cores of a call of a tiny model in inference."""
    model = made(f"tests.tiny_models:{name}")
    with torch.inference_mode():
        return watch.cores(model, torch.randn(3, *model.items[0]))


def test_a_fused_core_has_shapes_and_strides() -> None:
    """Those of views of a packed projection, with the module that it belongs to."""
    first, second = cores("Net[input=1x5x16]")
    assert (first.layer, second.layer, first.class_name) == ("layers.0", "layers.1", "Attention")
    assert first.shapes == ((3, 2, 5, 8),) * 3
    assert first.strides == ((240, 8, 48, 1),) * 3
    assert first.by_sdpa
    assert first.is_fused
    assert (first.mask, first.causal, first.dropout, first.dtype) == ("", False, 0.0, "float32")


@pytest.mark.parametrize(
    ("shape", "stated", "heads"),
    [((2, 4, 9, 5, 8), {4}, 4), ((2, 9, 4, 5, 8), {4, 5}, 4), ((2, 9, 4, 5, 8), {7}, 4), ((2, 9, 3, 5, 8), {7}, 1)],
)
def test_heads_beside_windows_are_those_that_the_module_has(
    shape: tuple[int, ...], stated: set[int], heads: int
) -> None:
    """Either axis may be that of windows: an attribute tells, or the width of 32; else none is known."""

    class Windowed(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            q = super().forward(x).sum() + torch.zeros(shape)
            return F.scaled_dot_product_attention(q, q, q).sum() + x

    module = Windowed(32, 32)
    vars(module).update({f"num_heads_{number}": value for number, value in enumerate(stated)}, other=9)
    (core,) = watch.cores(wrapped(module, ((6, 32),)), torch.randn(2, 6, 32))
    assert core.heads == heads


def test_masks_are_seen() -> None:
    """A tensor with its shape, or a causal one."""
    for kind, mask, causal in (("masked", "float32 [5, 5]", False), ("causal", "", True)):
        core = cores(f"Net[kind={kind},input=1x5x16]")[0]
        assert (core.mask, core.causal) == (mask, causal)


def test_an_unfused_core_is_known_by_its_operators() -> None:
    """A product, a softmax and a product; a model without attention has no core."""
    first, second = cores("Net[kind=written,input=1x5x16]")
    assert {(core.operator, core.by_sdpa) for core in (first, second)} == {(watch.UNFUSED, False)}
    assert first.shapes[0] == (3, 2, 5, 8)
    assert first.lines.startswith(f"{tiny_models.__file__}:")
    assert cores("plain[input=1x5x16]") == []


@pytest.mark.parametrize(
    ("name", "operator", "layer"),
    [
        ("Encoder[input=1x5x16]", "_transformer_encoder_layer_fwd", "encoder.layers.0"),
        ("Heads[input=1x5x16]", "_native_multi_head_attention", "attention"),
    ],
)
def test_a_fast_path_stays_one(name: str, operator: str, layer: str) -> None:
    """Watching changes nothing: torch's own modules still run as one operator."""
    core = cores(name)[0]
    assert (core.operator, core.layer, core.is_whole) == (operator, layer, True)


def test_layers_that_are_alike_share_a_trace() -> None:
    """The tensors of one trace are held for all of them; each core has one."""
    model = made("tests.tiny_models:Net[kind=written,input=1x5x16]").eval()
    with torch.inference_mode(), watch.watched(model) as seen:
        model(torch.randn(3, *model.items[0]))
    assert [*seen.traces] == [0, 1]
    assert seen.traces[0] is seen.traces[1]


class Masked(nn.Module):
    """Attention of 5 tokens with a core of (q, k, v, bias), the bias a parameter `[1, 2, 5, 5]`."""

    def __init__(self, core: Callable[..., Tensor]) -> None:
        super().__init__()
        self.qkv, self.bias, self.core = nn.Linear(16, 48), nn.Parameter(torch.randn(1, 2, 5, 5)), core

    def forward(self, x: Tensor) -> Tensor:
        """Return tokens `[B, N, C]` for tokens."""
        q, k, v = self.qkv(x).unflatten(2, (3, 2, -1)).permute(2, 0, 3, 1, 4)
        o: Tensor = self.core(q, k, v, self.bias * 1)
        return o.transpose(1, 2).flatten(2)


def with_third(q: Tensor, k: Tensor, bias: Tensor, beta: int) -> Tensor:
    """Return scores of a product to which so many times a bias is added."""
    flat = (bias.expand(3, 2, 5, 5).flatten(0, 1), q.flatten(0, 1), k.flatten(0, 1).mT)
    scores: Tensor = torch.baddbmm(*flat, beta=beta).unflatten(0, (3, 2))
    return scores


LATER = torch.ones(5, 5, dtype=torch.bool).triu(1)
HIDDEN = (torch.arange(5) >= torch.tensor([5, 4, 3])[:, None])[:, None, None]
"""The keys that items of other lengths don't have, `[3, 1, 1, 5]`."""


@pytest.mark.parametrize(
    ("core", "kinds"),
    [
        (lambda q, k, v, _: F.scaled_dot_product_attention(q, k, v, ~LATER), ["causal"]),
        (lambda q, k, v, _: F.scaled_dot_product_attention(q, k, v, ~HIDDEN), ["padding"]),
        (lambda q, k, v, bias: F.scaled_dot_product_attention(q, k, v, bias), ["bias"]),
        (lambda q, k, v, _: (q @ k.mT).masked_fill(HIDDEN, -1e9).softmax(-1) @ v, ["padding"]),
        (lambda q, k, v, _: torch.where(LATER, -1e9, q @ k.mT).softmax(-1) @ v, ["causal"]),
        (lambda q, k, v, _: torch.where(~LATER, q @ k.mT, torch.tensor(-1e9)).softmax(-1) @ v, ["causal"]),
        (lambda q, k, v, bias: ((q @ k.mT) + bias).masked_fill(HIDDEN, -1e9).softmax(-1) @ v, ["bias", "padding"]),
        (lambda q, k, v, bias: (bias.expand(3, 2, 5, 5) + q @ k.mT).softmax(-1) @ v, ["bias"]),
        (lambda q, k, v, bias: (q @ k.mT - bias).softmax(-1) @ v, ["bias"]),
        (lambda q, k, v, _: (q @ k.mT - HIDDEN * 1e9).softmax(-1) @ v, ["padding"]),
        (lambda q, k, v, bias: with_third(q, k, bias, 1).softmax(-1) @ v, ["bias"]),
        (lambda q, k, v, bias: with_third(q, k, bias, 0).softmax(-1) @ v, []),
    ],
)
def test_masks_have_kinds(core: Callable[..., Tensor], kinds: list[str]) -> None:
    """A bias that needs a gradient is learned, where gradients are computed."""
    for bias, is_enabled in (("learned", True), ("given", False)):
        with torch.set_grad_enabled(is_enabled):
            (seen,) = watch.cores(wrapped(Masked(core), ((5, 16),)), torch.randn(3, 5, 16))
        assert [mask.kind for mask in seen.masks] == [bias if kind == "bias" else kind for kind in kinds]
        assert seen.mask == " + ".join(map(str, seen.masks))
