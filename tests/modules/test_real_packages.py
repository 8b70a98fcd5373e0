"""A model or layer of each library, as its package makes it: other cores take the place of those in its graph."""

from contextlib import suppress

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from bench.modules.graph.rewriting import rewritten
from bench.modules.graph.tracing import traced
from bench.modules.sources import library
from impls.attend import eager, sdpa
from impls.contract import Unresolved
from tests.make.points import made

REAL = {
    "timm:swin_tiny_patch4_window7_224[img_size=32,window_size=4,embed_dim=16,depths=(2,2),num_heads=(2,4)]": 4,
    "torchvision.models:VisionTransformer"
    "[image_size=32,patch_size=8,num_layers=2,num_heads=2,hidden_dim=32,mlp_dim=64,input=2x3x32x32]": 2,
    "transformers:T5Config[attn_implementation=eager,d_model=32,d_kv=8,d_ff=64,num_layers=2,num_heads=4,tokens=16]": 6,
    "diffusers.models.attention:BasicTransformerBlock"
    "[dim=32,num_attention_heads=4,attention_head_dim=8,double_self_attention=True,input=2x16x32]": 2,
    "vit_pytorch:ViT[image_size=32,patch_size=8,num_classes=5,dim=32,depth=2,heads=2,mlp_dim=64,input=2x3x32x32]": 2,
    "x_transformers:Encoder[dim=32,depth=2,heads=4,attn_dim_head=8,attn_qk_norm=True,input=2x16x32]": 2,
    "torch.nn:TransformerDecoderLayer[d_model=32,nhead=4,input=tests.modules.test_real_packages:decoded]": 2,
}
"""The cores of models: one for each layer, and one more for each layer that reads a context."""


def decoded() -> dict[str, Tensor]:
    """Return the arguments of a decoder, with a mask that hides later tokens."""
    return {"tgt": torch.randn(2, 16, 32), "memory": torch.randn(2, 7, 32), "tgt_mask": torch.ones(16, 16).triu(1) > 0}


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL, ids=lambda name: name.partition("[")[0])
def test_every_core_of_a_real_model_is_replaced(name: str) -> None:
    """By the formula and by torch's function: outputs and gradients stay the model's at another input."""
    with suppress(Unresolved):
        library(name.partition(":")[0].partition(".")[0])  # else torchvision may not be importable
    pytest.importorskip(name.partition(":")[0])
    model = made(name).double()
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)  # none hides a core
    x, other = (torch.randn(2, *model.items[0], dtype=torch.float64) for _ in range(2))
    graph, expected = traced(model, (x,)), results(model, model, other)
    for attend in (eager.attend_safely, sdpa.attend):
        new = rewritten(graph, attend)
        assert (len(new.replaced), new.left, new.unknown) == (REAL[name], (), ())
        assert_close(results(new.module, model, other), expected, rtol=1e-9, atol=1e-9)


def results(of: nn.Module, model: nn.Module, x: Tensor) -> list[Tensor | None]:
    """Return an output, and the gradients of its sum for the input and the model's parameters."""
    x = x.clone().requires_grad_()
    y: Tensor = of(x)
    weights = torch.linspace(-1, 1, y.numel(), dtype=y.dtype).view_as(y)
    return [y, *torch.autograd.grad(y, [x, *model.parameters()], weights, allow_unused=True)]
