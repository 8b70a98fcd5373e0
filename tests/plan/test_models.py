"""The models' shapes, held against the constructors and the arithmetic that they come from."""

import importlib
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from bench.plan.models import MODELS, expand_models
from bench.plan.sweep import Request, load_sweep
from tests.refusals import refusal

TIMM = {
    "deit_ti_16_224": ("deit_tiny_patch16_224", 224),
    "deit_s_16_224": ("deit_small_patch16_224", 224),
    "vit_b_16_224": ("vit_base_patch16_224", 224),
    "vit_b_16_384": ("vit_base_patch16_384", 384),
    "vit_l_16_224": ("vit_large_patch16_224", 224),
    "vit_l_16_384": ("vit_large_patch16_384", 384),
    "vit_h_14_224": ("vit_huge_patch14_224", 224),
    "vit_b_16_1024": ("vit_base_patch16_224", 1024),
}
"""Our name, timm's, and the side of the image."""

EXPECTED = f"expected one of {', '.join(MODELS)}"

TORCHVISION_OPERATORS = ("nms", "qnms")
"""What torchvision's Python part asks torch for even where its compiled part doesn't load."""


@pytest.fixture(scope="module")
def timm() -> Any:
    """timm, which imports torchvision: beside a torch of another build that lacks operators, which nobody calls here.

    They are declared without an implementation, so that the import succeeds.
    """
    try:
        return importlib.import_module("timm")
    except RuntimeError:
        declared = torch.library.Library("torchvision", "FRAGMENT")
        for name in TORCHVISION_OPERATORS:
            declared.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        return importlib.import_module("timm")


@pytest.mark.parametrize("name", TIMM)
def test_shapes_are_timms(timm: Any, name: str) -> None:
    """Tokens with the class token, width, heads and QKV bias are those of the model that timm builds."""
    theirs, side = TIMM[name]
    with torch.device("meta"):
        model = timm.create_model(theirs, img_size=side)
    attention = model.blocks[0].attn

    assert attention.qkv.in_features == attention.proj.out_features
    assert MODELS[name] == {
        "layer": "vit",
        "num_tokens": model.patch_embed.num_patches + model.num_prefix_tokens,
        "channels": attention.proj.out_features,
        "num_heads": attention.num_heads,
        "qkv_bias": attention.qkv.bias is not None,
    }


def test_shapes_of_t2t_are_those_of_its_soft_splits() -> None:
    """T2T-ViT unfolds 7×7 pixels in steps of 4 with a border of 2, then 3×3 tokens of 64 in steps of 2, border 1."""
    image = torch.empty(1, 3, 224, 224, device="meta")
    first = nn.Unfold(7, stride=4, padding=2)(image)
    second = nn.Unfold(3, stride=2, padding=1)(torch.empty(1, 64, 56, 56, device="meta"))
    stages = [(MODELS[name]["token_len"], MODELS[name]["num_tokens"]) for name in ("t2t_stage_1", "t2t_stage_2")]

    assert stages == [first.shape[1:], second.shape[1:]]


def test_every_model_is_checked() -> None:
    """No shape stands there that isn't held against something."""
    assert set(MODELS) == {*TIMM, "t2t_stage_1", "t2t_stage_2"}


def test_a_list_of_models_is_a_grid_each() -> None:
    """Each model brings its shape; other values hold for all, and the model's own may be said again."""
    grids = expand_models({"model": ["vit_b_16_224", "vit_b_16_384"], "batch": [1, 8], "num_heads": [12]})

    assert [(grid["num_tokens"], grid["batch"]) for grid in grids] == [(197, [1, 8]), (577, [1, 8])]
    assert expand_models({"num_tokens": 7}) == [{"num_tokens": 7}]


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"model": "vit_b_16_385"}, f"unknown model 'vit_b_16_385'; {EXPECTED}; did you mean vit_b_16_384?"),
        ({"model": ""}, f"unknown model ''; {EXPECTED}"),
        ({"model": 16}, f"unknown model 16; {EXPECTED}"),
        ({"model": None}, f"unknown model None; {EXPECTED}"),
        ({"model": ["vit_b_16_2224", "t2t_1"]}, "vit_b_16_224 for 'vit_b_16_2224', t2t_stage_1 for 't2t_1'?"),
        ({"model": []}, "model = [] must hold at least one value"),
        ({"model": "vit_b_16_384", "num_heads": 6}, "6 contradicts model = vit_b_16_384, which has 12; leave one out"),
    ],
)
def test_what_is_no_model_is_refused(grid: dict[str, Any], message: str) -> None:
    """An unknown name is refused with those that there are, and so is a grid that contradicts its model."""
    assert refusal(expand_models, grid).endswith(message)


def write(folder: Path, text: str) -> str:
    """Write a sweep file of two implementations."""
    path = folder / "mine.toml"
    path.write_text(f'implementations = ["eager", "sdpa"]\n{text}', encoding="utf-8")
    return str(path)


def test_a_model_overrules_the_sweeps_defaults(tmp_path: Path) -> None:
    """What [defaults] say of a shape holds for grids without a model; options on the command line overrule both."""
    grids = '[[grid]]\nmodel = "vit_b_16_384"\n[[grid]]\nnum_tokens = 50'
    sweep = write(tmp_path, f"[defaults]\nnum_heads = 6\nchannels = 384\n{grids}")
    first, second = load_sweep(sweep).points
    (overridden, _) = load_sweep(Request(sweep, overrides={"num_heads": [4]})).points

    assert (first.num_tokens, first.channels, first.num_heads) == (577, 768, 12)
    assert (second.num_tokens, second.channels, second.num_heads) == (50, 384, 6)
    assert (overridden.num_tokens, overridden.num_heads) == (577, 4)


def test_the_token_length_follows_channels_that_replace_a_models() -> None:
    """An option for the channels makes tokens as long, so that all ViTs of a sweep become one point."""
    overrides = {"num_tokens": [64], "channels": [96], "num_heads": [3], "batch": [1]}
    (point,) = load_sweep(Request("vit", overrides=overrides)).points

    assert (point.token_len, point.channels) == (96, 96)


def test_a_model_may_stand_in_the_defaults(tmp_path: Path) -> None:
    """A model of [defaults] is that of every grid without one of its own."""
    grids = '[[grid]]\nbatch = [1, 2]\n[[grid]]\nmodel = "t2t_stage_2"'
    points = load_sweep(write(tmp_path, f'[defaults]\nmodel = "vit_b_16_224"\n{grids}')).points

    assert [(point.num_tokens, point.batch) for point in points] == [(197, 1), (197, 2), (784, 8)]


def test_a_model_that_is_given_replaces_the_shapes_of_a_sweep() -> None:
    """On the command line a model takes the place of every shape, and the sweep's other values stay."""
    points = load_sweep(Request("article", overrides={"model": ["vit_b_16_224", "t2t_stage_1"]})).points

    assert [(point.num_tokens, point.token_len, point.num_heads, point.batch) for point in points] == [
        (197, 768, 12, 13),
        (3136, 147, 1, 13),
    ]
