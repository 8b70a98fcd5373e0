"""From the values of a grid to points: products, defaults, and the rules that a point must keep."""

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any

from bench.plan.case import POINT_COLUMNS, Point
from bench.plan.errors import WrongRequest, unknown
from bench.plan.layers import complete
from bench.plan.names import ALLOCATORS, DTYPES, LAYERS, MODES, TIMINGS

Values = Mapping[str, Any]
"""A value or a list of values per column of a point."""

DEFAULTS: Values = {
    "layer": "vit",
    "device": "cpu",
    "dtype": "float32",
    "mode": "inference",
    "batch": 8,
    "num_heads": 1,
    "allocator": "retained",
}

COUNTS = (
    "batch",
    "num_tokens",
    "token_len",
    "channels",
    "num_heads",
    "key_channels",
    "image_size",
    "patch_size",
    "threads",
)
CHOICES = {"layer": LAYERS, "dtype": DTYPES, "mode": MODES, "allocator": ALLOCATORS, "timing": TIMINGS}
DERIVED = (
    "num_tokens",
    "token_len",
    "qkv_bias",
    "qk_scale",
    "key_channels",
    "image_size",
    "patch_size",
    "timing",
)
"""Columns that follow from others, or that the layer asks for or has no place for: see `bench.plan.layers`."""


def expand(values: Values) -> Iterator[Point]:
    """Yield the points of the product of all values, the first key varying slowest.

    Raises WrongRequest for an unknown key, a missing one, or a value that breaks a rule.
    """
    for key in values:
        if key not in POINT_COLUMNS:
            raise unknown("key", key, (*POINT_COLUMNS, "model"))
    for key in POINT_COLUMNS:
        if key not in values and key not in DERIVED:
            raise WrongRequest(f"{key} is missing; every point needs it")
    lists = [_check_list(key, value if isinstance(value, list) else [value]) for key, value in values.items()]
    for combination in itertools.product(*lists):
        yield _point(dict(zip(values, combination, strict=True)))


def _point(values: dict[str, Any]) -> Point:
    if "qk_scale" in values:
        values["qk_scale"] = float(values["qk_scale"])
    values.setdefault("timing", "host" if values["device"] == "cpu" else "device-cold")
    return Point(**complete(values))


def _check_list(key: str, values: list[Any]) -> list[Any]:
    if not values:
        raise WrongRequest(f"{key} = [] must hold at least one value")
    for value in values:
        _check_value(key, value)
    return values


def _check_value(key: str, value: object) -> None:
    if key in COUNTS and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise WrongRequest(f"{key} = {value!r} must be a whole number of at least 1")
    if key in CHOICES and value not in tuple(CHOICES[key]):
        raise WrongRequest(f"{key} = {value!r} must be one of {', '.join(CHOICES[key])}")
    if key == "qk_scale" and (
        not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value)
    ):
        raise WrongRequest(f"qk_scale = {value!r} must be a number")
    if key == "qkv_bias" and not isinstance(value, bool):
        raise WrongRequest(f"qkv_bias = {value!r} must be true or false")
    if key == "device" and not _is_device(value):
        raise WrongRequest(f"device = {value!r} must be cpu, cuda or cuda:<number>")


def _is_device(value: object) -> bool:
    if not isinstance(value, str):
        return False
    kind, colon, index = value.partition(":")
    return value == "cpu" or (kind == "cuda" and (not colon or (index.isascii() and index.isdecimal())))
