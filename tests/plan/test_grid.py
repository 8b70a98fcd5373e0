"""From the values of a grid to points, with ranges, models and shards."""

import dataclasses
import importlib
import itertools
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from bench.plan.case import COLUMNS, RETAINED
from bench.plan.columns import DERIVED, ValueKind
from bench.plan.grid import (
    DEFAULTS,
    MODELS,
    Shard,
    expand,
    expand_models,
    is_range,
    model_of,
    numbers_of,
    parse_shard,
    part,
)
from bench.plan.sweep import Request, load_sweep
from tests.make.points import VIT_S, vit_s
from tests.modules.test_sources import has
from tests.refusals import refusal

LEAST: dict[str, Any] = {**DEFAULTS, "threads": 1, "num_tokens": 10, "channels": 12}
"""The least that a grid must give, on a machine with one thread."""

ALL = {name: value for name, value in VIT_S.items() if value is not None}
"""All columns of a point of the vit layer."""

TIMM: dict[str, tuple[str, dict[str, int], dict[str, str]]] = {
    "deit_ti_16_224": ("deit_tiny_patch16_224", {}, {}),
    "deit_s_16_224": ("deit_small_patch16_224", {}, {}),
    "vit_b_16_224": ("vit_base_patch16_224", {}, {}),
    "vit_b_16_384": ("vit_base_patch16_384", {}, {}),
    "vit_l_16_224": ("vit_large_patch16_224", {}, {}),
    "vit_l_16_384": ("vit_large_patch16_384", {}, {}),
    "vit_h_14_224": ("vit_huge_patch14_224", {}, {}),
    "vit_b_16_1024": ("vit_base_patch16_224", {"img_size": 1024}, {}),
    "beit_base": ("beit_base_patch16_224", {}, {"attn_bias": "relative"}),
    "dinov3_vits16": ("vit_small_patch16_dinov3", {"img_size": 224}, {"rope": "axial"}),
    "eva02_small_336": ("eva02_small_patch14_336", {}, {"rope": "axial"}),
}
"""Our name, timm's, its options, and the columns beside the shape, which make it a layer `attention`."""

POINTS = tuple(
    vit_s(num_tokens=tokens, dtype=dtype) for tokens in range(1, 14) for dtype in ("float32", "bfloat16", "float16")
)


def refused(values: dict[str, Any]) -> str:
    """Return why a grid is refused."""
    return refusal(lambda: list(expand(values)))


# Products and defaults


def test_scalars_are_one_point_and_lists_a_product() -> None:
    """Lists are multiplied with each other, the first key varying slowest; missing columns have their defaults."""
    assert list(expand(ALL)) == [vit_s()]
    assert list(expand(LEAST)) == [vit_s(num_tokens=10, token_len=12, channels=12, num_heads=1)]
    points = expand({"num_tokens": [10, 20], **{**LEAST, "num_tokens": [10, 20]}, "num_heads": [1, 2, 3]})
    assert [(each.num_tokens, each.num_heads) for each in points] == [(n, h) for n in (10, 20) for h in (1, 2, 3)]


@pytest.mark.parametrize(
    ("values", "column", "expected"),
    [
        ({"channels": [12, 24]}, "token_len", [12, 24]),
        ({"channels": [12, 24], "token_len": 49}, "token_len", [49, 49]),
        ({"device": ["cpu", "cuda"]}, "allocator", [RETAINED, RETAINED]),
        ({"device": ["cpu", "cuda"], "allocator": "system"}, "allocator", ["system", "system"]),
        ({"device": ["cpu", "cuda", "cuda:3"]}, "timing", ["host", "device-cold", "device-cold"]),
        ({"device": "cuda", "timing": ["host", "device-hot"]}, "timing", ["host", "device-hot"]),
    ],
)
def test_columns_follow_from_others(values: dict[str, Any], column: str, expected: list[object]) -> None:
    """A token is as long as there are channels, freed memory is retained, timing follows the device.

    A grid's own values stay.
    """
    assert [getattr(each, column) for each in expand(LEAST | values)] == expected


def test_none_leaves_an_optional_column_out() -> None:
    """It may stand beside values, and for all columns whose absence is None; a layer that needs one refuses it."""
    optional = [name for name, column in COLUMNS.items() if column.absent is None]
    assert [*expand({**LEAST, **dict.fromkeys(optional, "none")})] == [*expand(LEAST)]
    grid = {**LEAST, "layer": "attention", "num_tokens": 64, "window_size": ["none", 8]}
    assert [each.window_size for each in expand(grid)] == [None, 8]
    assert refused({**LEAST, "layer": "patch", "image_size": 32, "patch_size": "none"}).startswith("patch_size is miss")
    assert refused({**LEAST, "num_heads": "none"}).startswith("num_heads = 'none' must be a whole number from 1 to ")


# What is refused


def test_a_missing_key_and_an_empty_list_are_refused() -> None:
    """A value that follows from no other must be given, and a list without a value would make an empty product."""
    for key in (key for key in ALL if COLUMNS[key].default is not DERIVED or key == "num_tokens" if key != "layer"):
        assert refused({name: value for name, value in ALL.items() if name != key}).startswith(f"{key} is missing")
    for key in VIT_S:
        assert refused({**ALL, key: []}) == f"{key} = [] must hold at least one value"


def test_a_count_is_a_whole_number_of_at_least_one() -> None:
    """Only a positive whole number within torch's limit is a count; true isn't a number."""
    for key in (name for name, column in COLUMNS.items() if column.kind is ValueKind.COUNT):
        for value in (0, -1, 1.0, 2.5, True, "8", None, [3], 10**9 + 1, 10**20):
            assert refused({**ALL, key: [value]}).startswith(f"{key} = {value!r} must be a whole number from 1 to ")


@pytest.mark.parametrize(
    ("key", "values", "expected"),
    [
        ("dtype", ["float64", 32], "must be one of float32, bfloat16, float16"),
        ("mode", ["training", ["train"]], "must be one of inference, forward, train, backward"),
        ("allocator", ["jemalloc", "retained-huge", {}], "must be one of retained, system"),
        ("timing", ["cold"], "must be one of host, device-cold, device-hot"),
        ("qk_scale", ["0.5", True, float("nan")], "must be a number"),
        ("qkv_bias", [1, "true"], "must be true or false"),
        ("device", ["gpu", "cuda:", "cuda:one", "cuda:-1", "cuda:٣", "", 0], "must be cpu, cuda or cuda:<number>"),
    ],
)
def test_an_impossible_value_is_refused(key: str, values: list[object], expected: str) -> None:
    """A value that its column can't have is refused with the key, the value and the rule."""
    for value in values:
        assert refused({**ALL, key: [value]}).startswith(f"{key} = {value!r} {expected}")


# Ranges


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("128:512:128", [128, 256, 384, 512]),
        ("100:250:100", [100, 200]),
        ("128:2048:x2", [128, 256, 512, 1024, 2048]),
        ("1:4", [1, 2, 3, 4]),
        ("7:7", [7]),
        (" 7:8 ", [7, 8]),
    ],
)
def test_a_range_holds_its_last_number_if_the_steps_meet_it(text: str, expected: list[int]) -> None:
    """A range adds its step, or multiplies by its factor, up to and including the last number."""
    assert numbers_of("batch", text) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        *((text, "must be first:last") for text in ("128:", ":5", "1:2:3:4", "a:b", "1:8:y2", "-1:8", "1:8:2.5")),
        ("1:8:0", "a step of at least 1"),
        ("1:8:x1", "a factor of at least 2"),
        ("0:8", "must start at 1"),
        ("9:3", "is empty, because its last number, 3, is below its first, 9"),
        ("1:1000000000", "has 1,000,000,000 numbers; a range may have at most 10,000"),
    ],
)
def test_what_is_no_range_is_refused(text: str, reason: str) -> None:
    """The refusal is one line that begins with the column and the text."""
    line = refused({**LEAST, "threads": text})
    assert line.startswith(f"threads = {text} ")
    assert reason in line
    assert "\n" not in line


def test_ranges_are_lists() -> None:
    """A range of whole numbers stands for its numbers, alone or among others; text without a colon isn't a range."""
    points = expand({**LEAST, "num_tokens": ["128:512:128", 1000, "2:8:x2"], "batch": "1:2"})
    assert [(each.num_tokens, each.batch) for each in points] == [
        (tokens, batch) for batch in (1, 2) for tokens in (128, 256, 384, 512, 1000, 2, 4, 8)
    ]
    assert not any(is_range(value) for value in (8, "8", None, [1, 2]))


# Models


@pytest.fixture(scope="module")
def timm() -> Any:
    """timm, where the torchvision that it imports fits torch."""
    has("timm")
    return importlib.import_module("timm")


@pytest.mark.parametrize("name", TIMM)
def test_shapes_are_timms(timm: Any, name: str) -> None:
    """Tokens with their prefix, width, heads, and whether queries have a bias, beside the projection if not in it."""
    theirs, options, own = TIMM[name]
    with torch.device("meta"):
        model = timm.create_model(theirs, depth=1, **options)  # its blocks are equal
    attention = model.blocks[0].attn
    assert attention.qkv.in_features == attention.proj.out_features
    assert MODELS[name] == {
        "layer": "attention" if own else "vit",
        "num_tokens": model.patch_embed.num_patches + getattr(model, "num_prefix_tokens", 1),
        "channels": attention.proj.out_features,
        "num_heads": attention.num_heads,
        "qkv_bias": attention.qkv.bias is not None or getattr(attention, "q_bias", None) is not None,
        **own,
    }
    assert ("rope" in own) == (getattr(model, "rope", None) is not None)


def shown(*names: str, column: str) -> list[Any]:
    """Return a column of some models."""
    return [MODELS[name].get(column) for name in names]


def test_shapes_of_stages_and_windows_are_timms(timm: Any) -> None:
    """SAM pads its map until windows are whole; keys of PVT are the map after a convolution, by its stride."""
    with torch.device("meta"):
        swin = timm.create_model("swin_tiny_patch4_window7_224")
        sam = timm.create_model("samvit_base_patch16")
        stage = timm.create_model("pvt_v2_b1").stages[0]
    for number, blocks in enumerate((each.blocks for each in swin.layers), start=1):
        assert blocks[0].window_size[0] == blocks[0].window_size[1]
        assert MODELS[f"swin_tiny_{number}"] == {
            "layer": "attention",
            "num_tokens": blocks[0].input_resolution[0] * blocks[0].input_resolution[1],
            "channels": blocks[0].attn.qkv.in_features,
            "num_heads": blocks[0].attn.num_heads,
            "qkv_bias": blocks[0].attn.qkv.bias is not None,
            "attn_bias": "relative",
            "window_size": blocks[0].window_size[0],
        }
    side, windowed, whole = sam.patch_embed.grid_size[0], sam.blocks[0], sam.blocks[2]
    padded = windowed.window_size * -(-side // windowed.window_size)
    names = ("sam_vit_b", "sam_vit_b_window")
    assert whole.window_size == 0
    assert shown(*names, column="window_size") == [None, windowed.window_size]
    assert shown(*names, column="num_tokens") == [side**2, padded**2]
    assert shown(*names, column="channels") == [windowed.attn.qkv.in_features] * 2
    assert shown(*names, column="num_heads") == [windowed.attn.num_heads] * 2
    attention, ours = stage.blocks[0].attn, MODELS["pvt_v2_b1_1"]
    assert (ours["channels"], ours["num_heads"]) == (attention.q.in_features, attention.num_heads)
    assert ours["num_tokens"] / ours["num_kv_tokens"] == attention.sr.stride[0] ** 2


def test_shapes_are_those_of_transformers() -> None:
    """Configurations without arguments are DETR, BERT base and SegFormer B0; an image of SegFormer has 512 pixels."""
    transformers = pytest.importorskip("transformers")
    detr, bert, segformer = (getattr(transformers, f"{name}Config")() for name in ("Detr", "Bert", "Segformer"))
    side = 512 // segformer.strides[0]
    names = ("detr_decoder", "bert_base", "segformer_b0_1")
    columns = ("num_tokens", "channels", "num_heads", "num_kv_tokens")
    assert [*zip(*(shown(*names, column=column) for column in columns), strict=True)] == [
        (detr.num_queries, detr.d_model, detr.decoder_attention_heads, 850),
        (bert.max_position_embeddings, bert.hidden_size, bert.num_attention_heads, None),
        (side**2, segformer.hidden_sizes[0], segformer.num_attention_heads[0], (side // segformer.sr_ratios[0]) ** 2),
    ]


def test_shapes_of_t2t_are_those_of_its_soft_splits() -> None:
    """T2T-ViT unfolds 7×7 pixels in steps of 4 with a border of 2, then 3×3 tokens of 64 in steps of 2, border 1."""
    image = torch.empty(1, 3, 224, 224, device="meta")
    first = nn.Unfold(7, stride=4, padding=2)(image)
    second = nn.Unfold(3, stride=2, padding=1)(torch.empty(1, 64, 56, 56, device="meta"))
    stages = {name: (each["token_len"], each["num_tokens"]) for name, each in MODELS.items() if name.startswith("t2t")}
    assert stages == {"t2t_stage_1": first.shape[1:], "t2t_stage_2": second.shape[1:]}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_a_point_that_is_known_by_its_columns(name: str) -> None:
    """Its layer has all columns that the model gives, and no other is missing; batch, dtype and mode are free."""
    (only,) = expand({**DEFAULTS, "threads": 1, "mode": "train", "dtype": "bfloat16", "batch": 3, **MODELS[name]})
    assert {column: getattr(only, column) for column in MODELS[name]} == MODELS[name]
    assert model_of(only) == name


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"model": "vit_b_16_385"}, "list`; did you mean vit_b_16_384?; "),
        ({"model": [16, "t2t_1"]}, "did you mean t2t_stage_1 for 't2t_1'?"),
        ({"model": "vit_small_patch16_224"}, "--layer timm:NAME[at=PATH]"),
        ({"model": []}, "model = [] must hold at least one value"),
        ({"model": "vit_b_16_384", "num_heads": 6}, "6 contradicts model = vit_b_16_384, which has 12; leave one out"),
    ],
)
def test_what_is_no_model_is_refused(grid: dict[str, Any], message: str) -> None:
    """An unknown name is refused with the known ones, and so is a grid that contradicts its model."""
    assert message in refusal(expand_models, grid)


def test_models_of_a_file_and_of_options(tmp_path: Path) -> None:
    """Each model brings its shape in place of [defaults], which may name one; the other values of a grid hold for all.

    Options replace a model's columns, and tokens are then as long as the channels; a model among them replaces every
    shape.
    """

    def shapes(sweep: str, **overrides: Any) -> list[tuple[int, ...]]:
        points = load_sweep(Request(sweep, overrides=overrides)).points
        return [(each.num_tokens, each.token_len, each.channels, each.num_heads, each.batch) for each in points]

    path = tmp_path / "mine.toml"
    path.write_text(
        'implementations = ["eager"]\n[defaults]\nmodel = "vit_b_16_224"\nnum_heads = 12\n[[grid]]\nbatch = [1, 2]\n'
        '[[grid]]\nmodel = ["vit_l_16_224", "vit_h_14_224"]\nnum_heads = [16]\nbatch = 3\n'
    )
    assert shapes(str(path)) == [
        (197, 768, 768, 12, 1),
        (197, 768, 768, 12, 2),
        (197, 1024, 1024, 16, 3),
        (257, 1280, 1280, 16, 3),
    ]
    assert shapes(str(path), num_heads=[4], batch=[1])[::2] == [(197, 768, 768, 4, 1), (257, 1280, 1280, 4, 1)]
    assert shapes("vit", num_tokens=[64], channels=[96], num_heads=[3], batch=[1]) == [(64, 96, 96, 3, 1)]
    given = shapes("article", model=["vit_b_16_224", "t2t_stage_1"])
    assert given == [(197, 768, 768, 12, 13), (3136, 147, 64, 1, 13)]


# Shards


@pytest.mark.parametrize("count", [1, 2, 4, 13])
def test_shards_are_the_sweep_without_overlap(count: int) -> None:
    """Every point is in one shard, in the order of the sweep, and no shard has two points more than another."""
    parts = [part(POINTS, Shard(number, count)) for number in range(1, count + 1)]
    assert sorted(itertools.chain(*parts), key=POINTS.index) == [*POINTS]
    assert all([*each] == sorted(each, key=POINTS.index) for each in parts)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_a_shard_is_the_same_on_every_machine() -> None:
    """What follows from the machine, and the order of the sweep, don't matter."""
    here = {each.num_tokens for each in part(POINTS, Shard(2, 4))}
    elsewhere = [dataclasses.replace(each, threads=7, allocator="system") for each in reversed(POINTS)]
    assert {each.num_tokens for each in part(elsewhere, Shard(2, 4))} == here


@pytest.mark.parametrize("text", ["5/4", "0/4", "1", "a/b", "-1/4", "1/4/2", ""])
def test_what_is_no_shard_is_refused(text: str) -> None:
    """The line has the rule and the text; more shards than points are refused with how many there can be."""
    assert refusal(parse_shard, text).startswith(f"--shard {text} must be I/N with whole numbers")
    assert parse_shard("2/3") == Shard(2, 3)
    assert "at most 39 shards, got 40" in refusal(part, POINTS, Shard(40, 40))
