"""From the values of a grid to points, with ranges, models and shards."""

import dataclasses
import importlib
import itertools
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from bench.plan.case import COLUMNS, HUGE, RETAINED
from bench.plan.columns import DERIVED, Kind
from bench.plan.grid import DEFAULTS, MODELS, Shard, expand, expand_models, is_range, numbers_of, parse_shard, part
from bench.plan.layers import LAYERS
from bench.plan.sweep import Request, load_sweep
from tests import points as tiny
from tests.examples import POINT, point
from tests.refusals import refusal

SMALL: dict[str, Any] = {**DEFAULTS, "threads": 1, "num_tokens": 10, "channels": 12}
"""The least that a grid must say, on a machine with one thread."""

SAID = {name: value for name, value in POINT.items() if value is not None}
"""All that can be said of a point of the vit layer."""


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


POINTS = tuple(
    tiny.point(num_tokens=tokens, dtype=dtype)
    for tokens in range(1, 14)
    for dtype in ("float32", "bfloat16", "float16")
)


def refused(values: dict[str, Any]) -> str:
    """Return why a grid is refused."""
    return refusal(lambda: list(expand(values)))


def test_scalars_are_one_point() -> None:
    """A grid of scalars is the one point that it says."""
    assert list(expand(SAID)) == [point()]


def test_lists_are_a_product() -> None:
    """Lists are multiplied with each other, the first key varying slowest."""
    points = expand({"num_tokens": [10, 20], **{**SMALL, "num_tokens": [10, 20]}, "num_heads": [1, 2, 3]})

    assert [(point.num_tokens, point.num_heads) for point in points] == [
        (10, 1), (10, 2), (10, 3), (20, 1), (20, 2), (20, 3),
    ]  # fmt: skip


def test_defaults_are_the_suites() -> None:
    """Where a sweep says nothing, a point is the vit layer in float32 inference on the CPU, batch 8, one head."""
    (default,) = expand(SMALL)

    assert default == point(num_tokens=10, token_len=12, channels=12, num_heads=1)


@pytest.mark.parametrize(
    ("values", "token_lens"),
    [
        ({"channels": [12, 24]}, [12, 24]),
        ({"channels": [12, 24], "token_len": 49}, [49, 49]),
        ({"channels": 12, "token_len": [49, 12]}, [49, 12]),
    ],
)
def test_token_len_follows_channels(values: dict[str, Any], token_lens: list[int]) -> None:
    """A token is as long as there are channels, unless the grid says otherwise."""
    assert [point.token_len for point in expand(SMALL | values)] == token_lens


@pytest.mark.parametrize(
    ("values", "allocators"),
    [
        ({}, [HUGE]),
        ({"device": ["cpu", "cuda"]}, [HUGE, RETAINED]),
        ({"device": ["cpu", "cuda"], "allocator": "system"}, ["system", "system"]),
        ({"allocator": RETAINED}, [RETAINED]),
    ],
)
def test_the_machines_allocator_is_that_of_points_on_a_cpu(values: dict[str, Any], allocators: list[str]) -> None:
    """Huge pages of the host are nothing to a GPU, and an allocator that is asked for stays."""
    assert [point.allocator for point in expand({**SMALL, **values}, HUGE)] == allocators


@pytest.mark.parametrize(
    ("values", "timings"),
    [
        ({"device": ["cpu", "cuda", "cuda:3"]}, ["host", "device-cold", "device-cold"]),
        ({"device": "cuda", "timing": ["host", "device-hot"]}, ["host", "device-hot"]),
    ],
)
def test_timing_follows_the_device(values: dict[str, Any], timings: list[str]) -> None:
    """The CPU is timed by the wall, a GPU by events with a cold cache, unless the grid says otherwise."""
    assert [point.timing for point in expand(SMALL | values)] == timings


@pytest.mark.parametrize(
    ("key", "near"),
    [("num_head", "num_heads"), ("tokens", "num_tokens"), ("colour", ""), ("Batch", "batch"), ("", "")],
)
def test_an_unknown_key_is_refused(key: str, near: str) -> None:
    """A key that is no column of a point is refused with all that are, and the nearest of them."""
    suggested = f"; did you mean {near}?" if near else ""
    expected = f"unknown key {key!r}; expected one of {', '.join(POINT)}, model{suggested}"
    assert refused({**SMALL, key: 3}) == expected


@pytest.mark.parametrize("key", [key for key in SAID if COLUMNS[key].default is not DERIVED or key == "num_tokens"])
def test_a_missing_key_is_refused(key: str) -> None:
    """A point that lacks a value which follows from no other is refused, the key named."""
    assert refused({name: value for name, value in SAID.items() if name != key}).startswith(f"{key} is missing")


@pytest.mark.parametrize("key", list(POINT))
def test_an_empty_list_is_refused(key: str) -> None:
    """A list without a value would make an empty product, and is refused."""
    assert refused({**SAID, key: []}) == f"{key} = [] must hold at least one value"


@pytest.mark.parametrize("value", [0, -1, 1.0, 2.5, True, "8", None, [3]])
@pytest.mark.parametrize("key", [name for name, column in COLUMNS.items() if column.kind is Kind.COUNT])
def test_a_count_is_a_whole_number_of_at_least_one(key: str, value: object) -> None:
    """Nothing but a positive whole number is a count, and true is no number."""
    assert refused({**SAID, key: [value]}) == f"{key} = {value!r} must be a whole number of at least 1"


@pytest.mark.parametrize(
    ("key", "values", "expected"),
    [
        ("layer", ["vti"], f"must be one of {', '.join(LAYERS)}"),
        ("dtype", ["float64", 32], "must be one of float32, bfloat16, float16"),
        ("mode", ["backward", ["train"]], "must be one of inference, forward, train"),
        ("allocator", ["jemalloc", {}], "must be one of retained, system, retained-huge"),
        ("timing", ["cold"], "must be one of host, device-cold, device-hot"),
        ("qk_scale", ["0.5", True, float("nan")], "must be a number"),
        ("qkv_bias", [1, "true"], "must be true or false"),
        (
            "device",
            ["gpu", "cuda:", "cuda:one", "cuda:-1", "cuda:٣", "cpu:0", "", 0],
            "must be cpu, cuda or cuda:<number>",
        ),
    ],
)
def test_an_impossible_value_is_refused(key: str, values: list[object], expected: str) -> None:
    """A value that its column can't have is refused with the key, the value and what was expected."""
    for value in values:
        assert refused({**SAID, key: [value]}).startswith(f"{key} = {value!r} {expected}")


def test_all_mistakes_are_told_in_one_message() -> None:
    """Two wrong values and a missing key are three lines."""
    values = {**SMALL, "dtype": "fp32", "allocator": "foo"}
    del values["channels"]
    dtype, allocator, channels = refused(values).splitlines()
    assert dtype.endswith("did you mean float32?")
    assert allocator.startswith("allocator = 'foo' must be")
    assert channels.startswith("channels is missing")


def test_ranges_are_lists() -> None:
    """A range of whole numbers stands for its numbers, alone or beside others; a wrong one is named by its column."""
    points = expand({**SMALL, "num_tokens": ["128:512:128", 1000, "2:8:x2"], "batch": "1:2"})

    assert [(point.num_tokens, point.batch) for point in points] == [
        (tokens, batch) for batch in (1, 2) for tokens in (128, 256, 384, 512, 1000, 2, 4, 8)
    ]
    for key in ("num_tokens", "threads"):
        assert refused({**SMALL, key: "9:3"}).startswith(f"{key} = 9:3 is empty")


@pytest.mark.parametrize(("channels", "heads"), [([100], 3), ([64], 5), ([4], 8), ([48, 64], 6)])
def test_indivisible_channels_are_refused(channels: list[int], heads: int) -> None:
    """Channels that the heads can't share refuse a whole product, because its rows would be missing."""
    expected = f"channels = {channels[-1]} must be divisible by num_heads = {heads}"
    assert refused({**SAID, "channels": channels, "num_heads": [1, heads]}) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("128:512:128", [128, 256, 384, 512]),
        ("100:250:100", [100, 200]),
        ("128:2048:x2", [128, 256, 512, 1024, 2048]),
        ("100:1000:x3", [100, 300, 900]),
        ("1:4", [1, 2, 3, 4]),
        ("7:7", [7]),
        (" 7:8 ", [7, 8]),
    ],
)
def test_a_range_holds_its_last_number_if_the_steps_meet_it(text: str, expected: list[int]) -> None:
    """A range adds its step, or multiplies by its factor, up to and including the last number."""
    assert numbers_of(text) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("128:", "must be first:last"),
        (":5", "must be first:last"),
        ("1:2:3:4", "must be first:last"),
        ("a:b", "must be first:last"),
        ("1:8:y2", "must be first:last"),
        ("-1:8", "must be first:last"),
        ("1:8:2.5", "must be first:last"),
        ("1:8:0", "a step of at least 1"),
        ("1:8:x1", "a factor of at least 2"),
        ("0:8", "must start at 1"),
        ("9:3", "is empty: the last number, 3, is below the first, 9"),
        ("1:1000000000", "holds 1,000,000,000 numbers"),
    ],
)
def test_what_is_no_range_is_refused(text: str, reason: str) -> None:
    """The refusal is one line that begins with what came."""
    line = refusal(numbers_of, text)
    assert line.startswith(text)
    assert reason in line
    assert "\n" not in line


def test_a_text_with_a_colon_is_meant_as_a_range() -> None:
    """A number, and a text without a colon, are none."""
    assert is_range("1:2")
    assert not any(is_range(value) for value in (8, "8", None, [1, 2]))


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


@pytest.mark.parametrize("count", [1, 2, 4, 13])
def test_shards_are_the_sweep_without_overlap(count: int) -> None:
    """Every point is in one shard, in the order of the sweep, and no shard has two groups more than another."""
    parts = [part(POINTS, Shard(number, count)) for number in range(1, count + 1)]
    assert sorted(itertools.chain(*parts), key=POINTS.index) == [*POINTS]
    assert all([*each] == sorted(each, key=POINTS.index) for each in parts)
    assert max(map(len, parts)) - min(map(len, parts)) <= 3


def test_points_that_differ_in_the_dtype_alone_stay_together() -> None:
    """They are measured in the same rounds."""
    tokens = [{each.num_tokens for each in part(POINTS, Shard(number, 4))} for number in range(1, 5)]
    assert sum(map(len, tokens)) == len(set.union(*tokens)) == 13


def test_a_shard_is_the_same_on_every_machine() -> None:
    """What follows from the machine, and the order of the sweep, don't matter; this is a part that was dealt before."""
    here = {each.num_tokens for each in part(POINTS, Shard(2, 4))}
    elsewhere = [dataclasses.replace(each, threads=7, allocator="retained-huge") for each in reversed(POINTS)]
    assert {each.num_tokens for each in part(elsewhere, Shard(2, 4))} == here


@pytest.mark.parametrize("text", ["5/4", "0/4", "1", "a/b", "1/0", "-1/4", "1/4/2", ""])
def test_what_is_no_shard_is_refused(text: str) -> None:
    """The line has the rule and what came."""
    line = refusal(parse_shard, text)
    assert f"--shard {text} must be I/N" in line
    assert "1/4" in line


def test_more_shards_than_points_are_refused() -> None:
    """A shard without points would end without a result; the line says how many there can be."""
    assert parse_shard("2/3") == Shard(2, 3)
    assert "at most 13 shards, got 14" in refusal(part, POINTS, Shard(14, 14))
