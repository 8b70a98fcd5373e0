"""Points from the values of a grid (lists, ranges and models), and their division among machines."""

import hashlib
import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

from bench.plan.case import COLUMNS, POINT_COLUMNS, RETAINED, Point, of_role
from bench.plan.columns import DERIVED, REQUIRED, Role, ValueKind
from bench.plan.device import kind
from bench.plan.errors import WrongRequest, refuse, suggestion, unknown_names
from bench.plan.layers import LAYERS, complete, layer_of
from bench.plan.layers.module import Module
from bench.plan.names import PRINTED, misspelled, read
from impls.catalogue import SOURCES, name_of

Values = Mapping[str, Any]
"""A value or a list of values for each column of a point; for whole numbers also a range such as `"128:2048:128"`."""

DEFAULTS: Values = {
    name: column.default for name, column in COLUMNS.items() if column.default not in (REQUIRED, DERIVED)
}
"""The values of columns that a sweep doesn't give."""

RANGE_FORM = re.compile(r"([0-9]{1,15}):([0-9]{1,15})(?::(x?)([0-9]{1,15}))?")
RANGE_FORMS = "first:last, first:last:step or first:last:xfactor, such as 128:2048:128 or 128:2048:x2"

MOST_NUMBERS = 10_000
"""A longer range is refused as a mistake."""

MOST_POINTS = 10_000
"""A larger grid is refused, because each point takes seconds at least."""

SHARD_FORM = re.compile(r"([0-9]+)/([0-9]+)")

OF_THE_MACHINE = ("threads", "allocator")
"""The columns that default to the machine's values, which differ between nodes."""


def expand(values: Values, usual: Values | None = None, shown: Values | None = None) -> Iterator[Point]:
    """Yield the points of the product of all values, which name one layer; the first key varies slowest.

    `usual` fills in columns that neither the values nor the layer gives; `shown` has the columns that a call of a
    module has shown.
    Raises WrongRequest for unknown keys, missing ones, and values that break a rule.
    """
    whole = {**(usual or {}), **values}
    refuse(mistakes_in(whole))
    (name,) = layers_of(whole)
    layer = Module(name_of(name), shown) if shown else layer_of(name)
    values = {**layer.usable(usual or {}), **values, "layer": name}
    refuse(
        f"{key} is missing; every point needs it"
        for key, column in COLUMNS.items()
        if key not in {*values, *layer.fixed, *layer.without} and column.default is not DERIVED
    )
    lists = [_listed(key, value) for key, value in values.items()]
    if (number := math.prod(map(len, lists))) > MOST_POINTS:
        raise WrongRequest(f"the grid has {number:,} points; a grid may have at most {MOST_POINTS:,}")
    for combination in itertools.product(*lists):
        given = zip(values, combination, strict=True)
        point = {key: value for key, value in given if not COLUMNS[key].is_none(value)}
        if "qk_scale" in point:
            point["qk_scale"] = float(point["qk_scale"])
        point.setdefault("timing", kind(point["device"]).timings[0])
        point.setdefault("allocator", RETAINED)
        yield Point(**complete(point, layer))


def layers_of(values: Values) -> list[Any]:
    """Return the layers that values name, or the default layer."""
    return _listed("layer", values.get("layer", DEFAULTS["layer"]))


def mistakes_in(values: Values) -> list[str]:
    """Return a line for each mistake in the values; each column is checked alone."""
    unknown = [key for key in values if key not in POINT_COLUMNS]
    mistakes = [unknown_names("key", unknown, (*POINT_COLUMNS, "model"))] if unknown else []
    for key in (key for key in values if key in POINT_COLUMNS):
        try:
            if values[key] == []:
                raise WrongRequest(f"{key} = [] must hold at least one value")
            for value in _listed(key, values[key]):
                refuse([COLUMNS[key].mistake(value)])
                if key == "layer" and value not in LAYERS:
                    _check_own_layer(value)
        except WrongRequest as error:
            mistakes.append(str(error))
    return mistakes


def _check_own_layer(name: str) -> None:
    if line := misspelled(name, "layer"):
        raise WrongRequest(line)
    module, _, attribute = name.partition(":")
    if not (module and attribute):
        expected = (*LAYERS, "module:attribute", *(f"{source}:NAME" for source in SOURCES))
        raise WrongRequest(f"layer = {name!r} must be one of {', '.join(expected)}{suggestion(name, expected)}")
    read(name)


def _listed(key: str, value: object) -> list[Any]:
    """Return the values of a column as a list, with ranges of whole numbers expanded."""
    listed = value if isinstance(value, list) else [value]
    if COLUMNS[key].kind is not ValueKind.COUNT:
        return listed
    return [number for each in listed for number in (numbers_of(key, each) if is_range(each) else [each])]


def is_range(value: object) -> TypeGuard[str]:
    """Return whether a value has the form of a range."""
    return isinstance(value, str) and ":" in value


def numbers_of(key: str, text: str) -> list[int]:
    """Return the numbers of a range: `first:last:step` adds the step (default 1), `first:last:xfactor` multiplies.

    The range includes the last number if the steps reach it exactly.
    Raises WrongRequest, with the column's name, for a text of another form, and a range that is empty or too long.
    """
    match = RANGE_FORM.fullmatch(text.strip())
    if match is None:
        raise WrongRequest(f"{key} = {text} must be {RANGE_FORMS}")
    first, last, by, factor = int(match[1]), int(match[2]), int(match[4] or 1), bool(match[3])
    rule = ""
    if first < 1 or by < (2 if factor else 1):
        rule = "must start at 1 or more, with a step of at least 1 or a factor of at least 2"
    elif last < first:
        rule = f"is empty, because its last number, {last}, is below its first, {first}"
    elif not factor and (last - first) // by >= MOST_NUMBERS:
        rule = f"has {(last - first) // by + 1:,} numbers; a range may have at most {MOST_NUMBERS:,}"
    if rule:
        raise WrongRequest(f"{key} = {text} {rule}")
    if not factor:
        return list(range(first, last + 1, by))
    powers = [first]
    while powers[-1] * by <= last:
        powers.append(powers[-1] * by)
    return powers


def _vit(num_tokens: int, channels: int, num_heads: int, **others: Any) -> dict[str, Any]:
    """Return the columns of a model; its token_len is derived from the channels, even if an option replaces them."""
    shape = {"num_tokens": num_tokens, "channels": channels, "num_heads": num_heads}
    return {"layer": "vit", **shape, "qkv_bias": True, **others}


def _attention(num_tokens: int, channels: int, num_heads: int, **others: Any) -> dict[str, Any]:
    """Return the columns of a model's layer with a context, a bias, windows, norms or rotary embeddings."""
    return {**_vit(num_tokens, channels, num_heads, **others), "layer": "attention"}


MODELS: dict[str, dict[str, Any]] = {
    "deit_ti_16_224": _vit(197, 192, 3),
    "deit_s_16_224": _vit(197, 384, 6),
    "vit_b_16_224": _vit(197, 768, 12),
    "vit_b_16_384": _vit(577, 768, 12),
    "vit_l_16_224": _vit(197, 1024, 16),
    "vit_l_16_384": _vit(577, 1024, 16),
    "vit_h_14_224": _vit(257, 1280, 16),
    "vit_b_16_1024": _vit(4097, 768, 12),
    "t2t_stage_1": _vit(3136, 64, 1, token_len=147, qkv_bias=False),
    "t2t_stage_2": _vit(784, 64, 1, token_len=576, qkv_bias=False),
    "swin_tiny_1": _attention(3136, 96, 3, attn_bias="relative", window_size=7),
    "swin_tiny_2": _attention(784, 192, 6, attn_bias="relative", window_size=7),
    "swin_tiny_3": _attention(196, 384, 12, attn_bias="relative", window_size=7),
    "swin_tiny_4": _attention(49, 768, 24, attn_bias="relative", window_size=7),
    "beit_base": _attention(197, 768, 12, attn_bias="relative"),
    "sam_vit_b": _attention(4096, 768, 12, attn_bias="relative"),
    "sam_vit_b_window": _attention(4900, 768, 12, attn_bias="relative", window_size=14),
    "dinov3_vits16": _attention(201, 384, 6, qkv_bias=False, rope="axial"),
    "eva02_small_336": _attention(577, 384, 6, rope="axial"),
    "sd15_self": _attention(4096, 320, 8, qkv_bias=False),
    "sd15_cross": _attention(4096, 320, 8, qkv_bias=False, num_kv_tokens=77, context_dim=768),
    "sdxl_cross": _attention(1024, 1280, 20, qkv_bias=False, num_kv_tokens=77, context_dim=2048),
    "detr_decoder": _attention(100, 256, 8, num_kv_tokens=850),
    "pvt_v2_b1_1": _attention(3136, 64, 1, num_kv_tokens=49),
    "segformer_b0_1": _attention(16384, 32, 1, num_kv_tokens=256),
    "flux": _attention(4608, 3072, 24, qk_norm="rms", rope="axial"),
    "bert_base": _attention(512, 768, 12),
    "llama3_8b": {
        "layer": "core", "num_tokens": 1, "num_kv_tokens": 8192, "channels": 4096, "num_heads": 32, "num_kv_heads": 8,
    },
}  # fmt: skip
"""The columns of each model; a name has the patch and the image side, or the stage.

A ViT's tokens include the class token; the stages of T2T-ViT have none. From Swin on the layer is `attention`, which
some models match only approximately:
- BEiT's table also has entries for the class token. SAM's global bias is a sum of one for rows and one for columns.
  FLUX's positions have a third dimension; its grid here is the largest square, 67 × 67, after 119 tokens.
- BEiT and EVA-02 have no bias of keys. SAM pads 64 × 64 tokens to 70 × 70 before the projection: whole windows of 14.
- Keys of PVT and SegFormer come from a reduced map; the reduction isn't measured. SegFormer's image has 512 pixels.
- BERT has its longest text; llama3_8b is the core for one new token with a full cache, without projections.
Sources: Dosovitskiy et al. 2020 (arXiv 2010.11929), Touvron et al. 2020 (arXiv 2012.12877),
Yuan et al. 2021 (arXiv 2101.11986), Liu et al. 2021 (2103.14030), Bao et al. 2021 (2106.08254), Kirillov et al. 2023
(2304.02643), Siméoni et al. 2025 (2508.10104), Fang et al. 2023 (2303.11331), Rombach et al. 2021 (2112.10752), Podell
et al. 2023 (2307.01952), Carion et al. 2020 (2005.12872), Wang et al. 2021 (2106.13797), Xie et al. 2021 (2105.15203),
Devlin et al. 2018 (1810.04805), Grattafiori et al. 2024 (2407.21783); FLUX.1 as configured in diffusers.
A test compares shapes with timm's constructors and with transformers' configurations.
"""

MODEL_COLUMNS = frozenset(column for model in MODELS.values() for column in model)
"""The columns that a model gives."""


def expand_models(grid: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a grid's values once for each model that it names, with the model replaced by its columns.

    Raises WrongRequest for an unknown model, and for a value of the grid that contradicts the model's.
    """
    if "model" not in grid:
        return [grid]
    names = grid["model"] if isinstance(grid["model"], list) else [grid["model"]]
    if not names:
        raise WrongRequest("model = [] must hold at least one value")
    if unknown := [name for name in names if not isinstance(name, str) or name not in MODELS]:
        hint = "; for a layer of a library's model use --layer timm:NAME[at=PATH], for the whole model advise timm:NAME"
        raise WrongRequest(unknown_names("model", unknown, MODELS, PRINTED) + hint)
    rest = {key: value for key, value in grid.items() if key != "model"}
    for name in names:
        for key, value in MODELS[name].items():
            if rest.get(key, value) not in (value, [value]):
                raise WrongRequest(
                    f"{key} = {rest[key]!r} contradicts model = {name}, which has {value}; leave one out"
                )
    return [{**MODELS[name], **rest} for name in names]


def model_of(point: Point) -> str:
    """Return the one model that a point's attention columns match exactly; empty for none or several."""
    parts = of_role(Role.CONTEXT, Role.CORE, Role.QUERIES)
    own = {name for name in parts if getattr(point, name) not in (None, "none")}
    fitting = [
        name
        for name, columns in MODELS.items()
        if own <= {*columns, "context_dim"} and all(getattr(point, key) == value for key, value in columns.items())
    ]
    return fitting[0] if len(fitting) == 1 else ""


@dataclass(frozen=True)
class Shard:
    """One of `count` parts of a sweep; `number` counts from 1."""

    number: int
    count: int

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


def parse_shard(text: str) -> Shard:
    """Return the shard that a text such as `2/4` names; raises WrongRequest if it names none."""
    match = SHARD_FORM.fullmatch(text)
    shard = Shard(*map(int, match.groups())) if match else Shard(0, 0)
    if not 1 <= shard.number <= shard.count:
        raise WrongRequest(f"--shard {text} must be I/N with whole numbers and 1 <= I <= N, such as 1/4")
    return shard


def part(points: Sequence[Point], shard: Shard) -> tuple[Point, ...]:
    """Return the points of a shard, in their order.

    Points are ordered by a hash and dealt out in turn, so shards differ by at most one point and mix shapes of all
    sizes. Raises WrongRequest if there are fewer points than shards.
    """
    if shard.count > len(points):
        raise WrongRequest(f"the sweep has {len(points)} points, so at most {len(points)} shards, got {shard.count}")
    order = sorted(points, key=lambda point: (_hash(point), point.threads, point.allocator))
    mine = {*order[shard.number - 1 :: shard.count]}
    return tuple(point for point in points if point in mine)


def is_like(point: Point, other: Point) -> bool:
    """Return whether points differ only in their tokens and the image size that these come from."""
    return replace(point, num_tokens=other.num_tokens, image_size=other.image_size) == other


def _hash(point: Point) -> str:
    """Return a hash that is the same on every machine."""
    return hashlib.sha256(point.short_name(OF_THE_MACHINE).encode()).hexdigest()
