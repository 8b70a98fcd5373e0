"""From the values of a grid to points: products, defaults, and the rules that a point must keep."""

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any

from bench.plan.case import POINT_COLUMNS, Point
from bench.plan.errors import WrongRequest, suggestion, unknown_names
from bench.plan.layers import complete
from bench.plan.names import ALLOCATORS, DTYPES, LAYERS, MODES, TIMINGS
from bench.plan.ranges import is_range, numbers

Values = Mapping[str, Any]
"""A value or a list of values per column of a point; a whole number may be a range, as `"128:2048:128"`."""

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

    Raises WrongRequest for unknown keys, missing ones, and values that break a rule, all of them in one message.
    """
    mistakes = mistakes_in(values)
    mistakes += [
        f"{key} is missing; every point needs it" for key in POINT_COLUMNS if key not in values and key not in DERIVED
    ]
    if mistakes:
        raise WrongRequest("\n".join(mistakes))
    lists = [_listed(key, value) for key, value in values.items()]
    for combination in itertools.product(*lists):
        yield _point(dict(zip(values, combination, strict=True)))


def mistakes_in(values: Values) -> list[str]:
    """Return a line for each mistake in the values of columns, each column looked at by itself."""
    unknown = [key for key in values if key not in POINT_COLUMNS]
    mistakes = [unknown_names("key", unknown, (*POINT_COLUMNS, "model"))] if unknown else []
    for key in (key for key in values if key in POINT_COLUMNS):
        try:
            _check_list(key, _listed(key, values[key]))
        except WrongRequest as error:
            mistakes.append(str(error))
    return mistakes


def _point(values: dict[str, Any]) -> Point:
    if "qk_scale" in values:
        values["qk_scale"] = float(values["qk_scale"])
    values.setdefault("timing", "host" if values["device"] == "cpu" else "device-cold")
    return Point(**complete(values))


def _listed(key: str, value: object) -> list[Any]:
    """Return the values of a column as a list, ranges of whole numbers spelled out."""
    listed = value if isinstance(value, list) else [value]
    if key not in COUNTS:
        return listed
    return [number for each in listed for number in (_numbers(key, each) if is_range(each) else [each])]


def _numbers(key: str, text: str) -> list[int]:
    try:
        return numbers(text)
    except WrongRequest as error:
        raise WrongRequest(f"{key} = {error}") from None


def _check_list(key: str, values: list[Any]) -> None:
    if not values:
        raise WrongRequest(f"{key} = [] must hold at least one value")
    for value in values:
        _check_value(key, value)


def _check_value(key: str, value: object) -> None:
    if key in COUNTS and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise WrongRequest(f"{key} = {value!r} must be a whole number of at least 1")
    if key in CHOICES and value not in tuple(CHOICES[key]):
        choices = tuple(CHOICES[key])
        raise WrongRequest(f"{key} = {value!r} must be one of {', '.join(choices)}{suggestion(value, choices)}")
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
