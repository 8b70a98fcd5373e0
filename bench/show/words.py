"""Points in words: on a line, over a picture, in a file name."""

import dataclasses
from collections.abc import Collection, Iterable

from bench.plan.case import POINT_COLUMNS, Point

DEFAULTS = {"device": "cpu", "qkv_bias": False, "qk_scale": None, "allocator": "retained"}
"""Values that go without saying."""

HOST_TIMING = ("cpu", "host")
"""The one way to time a CPU, so it goes without saying as well."""


def varying(points: Iterable[Point]) -> set[str]:
    """Return the columns in which the points differ."""
    columns = zip(*(dataclasses.astuple(point) for point in points), strict=True)
    return {name for name, values in zip(POINT_COLUMNS, columns, strict=False) if len(set(values)) > 1}


def parts(point: Point, columns: Collection[str] = POINT_COLUMNS) -> list[str]:
    """Return a word for each of these columns of the point, but none for a value that goes without saying.

    All columns of a usual point are `vit`, `float32`, `inference`, `B=8`, `N=197`, `C=384`, `H=6`, `1 thread`.
    """
    words = _words(point)
    said = _merged(columns) - {name for name, value in DEFAULTS.items() if getattr(point, name) == value}
    if (point.device, point.timing) == HOST_TIMING:
        said.discard("timing")
    return [word for name, word in words.items() if name in said and word]


def differences(point: Point, columns: Collection[str]) -> str:
    """Return the values of the columns in which this point differs from others, each of them said."""
    said = _merged(columns)
    return " ".join(word for name, word in _words(point).items() if name in said and word)


def width(point: Point) -> str:
    """Return the width of a token: `384`, or `49→64` where it changes on the way."""
    return f"{point.channels}" if point.token_len == point.channels else f"{point.token_len}→{point.channels}"


def slug(point: Point, without: Collection[str]) -> str:
    """Return the point in one word for a file name, without the columns that a picture shows."""
    words = {
        "layer": point.layer,
        "device": point.device.replace(":", ""),
        "dtype": point.dtype,
        "mode": point.mode,
        "batch": f"b{point.batch}",
        "num_tokens": f"n{point.num_tokens}",
        "token_len": "" if point.token_len == point.channels else f"w{point.token_len}",
        "channels": f"c{point.channels}",
        "num_heads": f"h{point.num_heads}",
        "qkv_bias": "bias" if point.qkv_bias else "",
        "qk_scale": "" if point.qk_scale is None else f"s{point.qk_scale:g}",
        "key_channels": "" if point.key_channels is None else f"k{point.key_channels}",
        "image_size": "" if point.image_size is None else f"i{point.image_size}",
        "patch_size": "" if point.patch_size is None else f"p{point.patch_size}",
        "threads": f"t{point.threads}",
        "allocator": point.allocator if point.allocator != DEFAULTS["allocator"] else "",
        "timing": point.timing if point.timing != "host" else "",
    }
    return "-".join(word for name, word in words.items() if word and name not in without)


def counted(numbers: Collection[int], one: str, many: str) -> str:
    """Return how many there are: `1 process`, `3 processes`, `2 to 3 processes`, or nothing where nothing counted."""
    if not numbers:
        return ""
    low, high = min(numbers), max(numbers)
    return f"{low} to {high} {many}" if low < high else f"{low} {one if low == 1 else many}"


def _words(point: Point) -> dict[str, str]:
    return {
        "layer": point.layer,
        "device": point.device,
        "dtype": point.dtype,
        "mode": point.mode,
        "batch": f"B={point.batch}",
        "num_tokens": f"N={point.num_tokens}",
        "channels": f"C={width(point)}",
        "num_heads": f"H={point.num_heads}",
        "qkv_bias": "with qkv bias" if point.qkv_bias else "without qkv bias",
        "qk_scale": "qk scale of the layer" if point.qk_scale is None else f"qk scale {point.qk_scale:g}",
        "key_channels": "" if point.key_channels is None else f"keys C={point.key_channels}",
        "image_size": "" if point.image_size is None else f"images {point.image_size}×{point.image_size}",
        "patch_size": "" if point.patch_size is None else f"patches {point.patch_size}×{point.patch_size}",
        "threads": "1 thread" if point.threads == 1 else f"{point.threads} threads",
        "allocator": f"allocator {point.allocator}",
        "timing": f"timing {point.timing}",
    }


def _merged(columns: Collection[str]) -> set[str]:
    # two columns, one word
    return {"channels" if name == "token_len" else name for name in columns}
