"""The stages of stepwise, as a profile shows them."""

import pytest
import torch
from torch import nn
from torch.autograd.profiler_util import FunctionEvent

from impls import Unsupported, build
from impls.layers.conv import ConvSelfAttention
from impls.layers.patch import PatchAttention
from impls.layers.self_attention import SelfAttention
from impls.layers.vit import ViTAttention
from tests.impls.reference import normal

CORE = ["split heads", "scale", "scores", "softmax", "weighted values", "merge heads"]


def events_of(layer: nn.Module, *shape: int) -> list[FunctionEvent]:
    """Return what a profile of one call of stepwise shows."""
    implementation, x = build(layer, "stepwise"), normal(*shape)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        implementation(x)
    return list(profile.events() or [])


@pytest.mark.parametrize(
    ("layer", "x", "stages"),
    [
        (ViTAttention(6, 8, 2), (2, 5, 6), ["qkv projection", *CORE, "output projection", "skip"]),
        (SelfAttention(6, 4, 8), (2, 5, 6), ["qkv projection", *CORE]),
        (
            PatchAttention(3, 4, 8, 2),
            (2, 3, 8, 8),
            ["patch embedding", "qkv projection", *CORE, "output projection"],
        ),
        (SelfAttention(6, 4, 8, mask="causal"), (2, 5, 6), ["qkv projection", *CORE[:3], "mask", *CORE[3:]]),
        (ConvSelfAttention(8), (2, 8, 3, 3), ["qkv projection", *CORE, "skip"]),
    ],
    ids=["vit", "self", "patch", "causal", "conv"],
)
def test_every_layer_has_its_stages(layer: nn.Module, x: tuple[int, ...], stages: list[str]) -> None:
    """Each layer's steps are named alike, once a call in the order of the formulas, and all of its work is in one."""
    outermost = [event for event in events_of(layer, *x) if event.cpu_parent is None]

    assert [event.name for event in sorted(outermost, key=lambda event: event.time_range.start)] == stages


def test_work_stands_in_its_stage() -> None:
    """Each operator of the layer runs inside the stage that is named after it."""
    stages = {
        "aten::linear": ["qkv projection", "output projection"],
        "aten::permute": ["split heads"],
        "aten::mul": ["scale"],
        "aten::matmul": ["scores", "weighted values"],
        "aten::softmax": ["softmax"],
        "aten::add": ["skip"],
    }
    events = events_of(ViTAttention(6, 8, 2, qkv_bias=True), 2, 5, 6)

    parents = {
        name: [event.cpu_parent.name for event in events if event.name == name and event.cpu_parent] for name in stages
    }
    assert parents == stages


def test_other_layers_are_unsupported() -> None:
    """A layer whose steps are not spelled out is unsupported, and the reason names it."""
    with pytest.raises(Unsupported, match="Linear"):
        build(nn.Linear(4, 4), "stepwise")
