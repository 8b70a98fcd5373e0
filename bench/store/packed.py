"""Samples as one short text: the columns of numbers in as few bytes as give the same numbers back.

The bytes of a column are ordered by their place in a number, because the first bytes of similar numbers are the same
and can then be compressed.
"""

import base64
import itertools
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Columns = Mapping[str, Sequence[Any]]
"""The columns of samples by name; `timings_s` has a sequence for each sample."""

KINDS = {
    "rounds": "u",
    "timings_s": "f",
    "switches": "u",
    "faults": "u",
    "others": "f",
    "product_s": "f",
    "copy_s": "f",
}
"""The columns in their order: unsigned whole numbers, or floating-point numbers."""

GROWING = "rounds"
"""The column of which the differences are kept: they are mostly 1."""

TEXT = "zlib"
"""The key that distinguishes packed samples from lists."""


def pack(columns: Columns) -> dict[str, Any]:
    """Return samples as a JSON object of four keys.

    `count` is the number of samples. `timings` is the number of timings in each, or a list of them if they differ.
    `bytes` has a digit for each column of KINDS, the bytes of a number, 0 if the column is empty.
    `zlib` has the columns one after the other: little-endian, first bytes first, compressed, in base64.
    """
    timings = [len(each) for each in columns["timings_s"]]
    arrays = [_narrow(np.array(_flat(name, columns), dtype=f"<{kind}8")) for name, kind in KINDS.items()]
    data = b"".join(_shuffled(_differences(name, array)) for name, array in zip(KINDS, arrays, strict=True))
    return {
        "count": len(columns["rounds"]),
        "timings": timings[0] if len({*timings}) == 1 else timings,
        "bytes": "".join(str(array.itemsize if len(array) else 0) for array in arrays),
        TEXT: base64.b64encode(zlib.compress(data)).decode(),
    }


def is_packed(samples: Any) -> bool:
    """Return whether samples of a journal's line are packed; in older journals they are lists."""
    return isinstance(samples, dict) and TEXT in samples


def unpack(packed: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """Return the columns that `pack` packed; raises ValueError if the text is damaged."""
    count, timings = packed["count"], packed["timings"]
    per_sample = timings if isinstance(timings, list) else [timings] * count
    try:
        data = zlib.decompress(base64.b64decode(packed[TEXT], validate=True))
    except zlib.error:
        raise ValueError("its samples are damaged") from None
    columns: dict[str, tuple[Any, ...]] = {}
    start = 0
    for (name, kind), width in zip(KINDS.items(), map(int, packed["bytes"]), strict=True):
        length = (sum(per_sample) if name == "timings_s" else count) * width
        raw = np.frombuffer(data[start : start + length], dtype=np.uint8)
        array = np.ascontiguousarray(raw.reshape(width, -1).T).view(f"<{kind}{width}").ravel() if length else raw
        columns[name] = tuple((np.cumsum(array, dtype=array.dtype) if name == GROWING else array).tolist())
        start += length
    if start != len(data):
        raise ValueError("its samples are damaged")
    numbers = iter(columns["timings_s"])
    return {**columns, "timings_s": tuple(tuple(itertools.islice(numbers, each)) for each in per_sample)}


def rounded(values: Sequence[float], *, bits: int = 24) -> tuple[float, ...]:
    """Return numbers with so many binary digits, at most 24: 24 are seven decimal digits, and 16 are five."""
    dropped = np.uint32((1 << (24 - bits)) - 1)
    raw = np.array(values, dtype=np.float32).view(np.uint32)
    return tuple(((raw + (dropped + 1) // 2) & ~dropped).view(np.float32).tolist())


def _flat(name: str, columns: Columns) -> list[Any]:
    values = columns[name]
    return list(itertools.chain.from_iterable(values)) if name == "timings_s" else list(values)


def _narrow(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return numbers of 4 bytes if they are the same numbers, else those of 8."""
    with np.errstate(over="ignore"):
        narrow = values.astype(f"<{values.dtype.kind}4")
    return narrow if bool((narrow.astype(values.dtype) == values).all()) else values


def _differences(name: str, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.diff(values, prepend=values.dtype.type(0)) if name == GROWING else values


def _shuffled(values: npt.NDArray[Any]) -> bytes:
    return values.view(np.uint8).reshape(-1, values.itemsize).T.tobytes() if len(values) else b""
