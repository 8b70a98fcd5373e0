"""torch.nn.MultiheadAttention in place of a whole layer."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd.profiler_util import FunctionEvent

from bench.measure import outputs, subjects, workload
from bench.measure.layer import cast_to
from bench.plan.case import Point
from impls import Unsupported, build
from impls.layers.core import Core
from impls.layers.vit import ViTAttention
from tests.make.points import featured

NAMES = ["mha", "mha_weights"]

TOLERANCE = 5e-5
"""In units of the output's root mean square, for float32."""

TAKEN = ("plain", "causal", "padding")
"""The features of the layer attention that it computes."""


@pytest.mark.parametrize(
    ("layer", "reason"),
    [
        (ViTAttention(49, 64), "token_len.*49.*64"),
        (ViTAttention(64, 32, 4), "token_len.*64.*32"),
        (ViTAttention(8, 8, 2, qk_scale=1.0), r"scale.*1\.0"),
        (ViTAttention(8, 8, 2, qk_scale=0.0), r"scale.*0\.0"),
        (Core(8, num_tokens=8), "not written for this one"),
        (nn.Linear(8, 8), "not written for this one"),
    ],
    ids=["narrower tokens", "wider tokens", "custom scale", "zero scale", "core", "another layer"],
)
def test_what_a_module_cannot_express_is_unsupported(layer: nn.Module, reason: str) -> None:
    """The reason says what is missing, or has the numbers."""
    for name in NAMES:
        with pytest.raises(Unsupported, match=reason):
            build(layer, name)


def results(at: Point, name: str, dtype: torch.dtype) -> list[Tensor]:
    """Return the output and gradients of an implementation at a point, with the layer and its inputs in a dtype."""
    work = workload.make(at)
    cast = replace(work, layer=work.layer.to(dtype), direction=work.direction.to(dtype))
    inputs = tuple(cast_to(each, "cpu", dtype) for each in work.inputs())
    return [*outputs.compute(subjects.subject(cast, name), cast, inputs).tensors]


@pytest.mark.parametrize("mode", ["inference", "train"])
@pytest.mark.parametrize("name", NAMES)
def test_each_feature_of_attention_is_computed_or_refused(name: str, mode: str) -> None:
    """Outputs and gradients match the layer in float64; features that the module doesn't take are unsupported."""
    for feature, at in featured("attention").items():
        if feature not in TAKEN:
            with pytest.raises(Unsupported, match=r"nn\.MultiheadAttention is used only for layers without context"):
                results(replace(at, mode=mode), name, torch.float32)
            continue
        exact = results(replace(at, mode=mode), "eager", torch.float64)
        for got, expected in zip(results(replace(at, mode=mode), name, torch.float32), exact, strict=True):
            torch.testing.assert_close(got.double(), expected, rtol=TOLERANCE, atol=TOLERANCE, msg=feature)


@pytest.mark.parametrize("name", NAMES)
def test_the_module_has_its_fast_path_in_inference(name: str) -> None:
    """One operator runs, with a QKV bias or without, for a causal layer and one whose items are padded."""
    heads: dict[str, Any] = {"num_heads": 2, "channels": 8, "token_len": 8}
    for feature, qkv_bias in (("plain", True), *((feature, False) for feature in TAKEN)):
        work = workload.make(replace(featured("attention")[feature], **heads, qkv_bias=qkv_bias))
        names = {event.name for event in events_of(work.layer, name, *work.inputs())}
        assert "aten::_native_multi_head_attention" in names, feature


def events_of(layer: nn.Module, name: str, *xs: Tensor) -> list[FunctionEvent]:
    """Return the events of a profile of one call of an implementation."""
    implementation = build(layer, name)
    with (
        torch.inference_mode(not layer.training),
        torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile,
    ):
        implementation(*xs)
    return list(profile.events() or [])
