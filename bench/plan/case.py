"""A point, and a case: the point with an implementation."""

import dataclasses
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True, kw_only=True)
class Point:
    """Everything that is fixed while implementations are compared with each other.

    `token_len` is the width of a token on the way in, `channels` on the way out, `key_channels` that of queries and
    keys where it is a choice. `qk_scale` multiplies the queries, None is the layer's own scale.
    Layers of images have the side of a square image, and of a patch, in pixels: `num_tokens` follows from them.
    What has no place in a layer is None.
    """

    layer: str
    device: str
    dtype: str
    mode: str
    batch: int
    num_tokens: int
    token_len: int
    channels: int
    num_heads: int
    qkv_bias: bool
    qk_scale: float | None = None
    key_channels: int | None = None
    image_size: int | None = None
    patch_size: int | None = None
    threads: int
    allocator: str
    timing: str

    @property
    def name(self) -> str:
        """The point in one word, unique among points and safe in a file name."""
        parts = [
            self.layer,
            self.device.replace(":", ""),
            self.dtype,
            self.mode,
            f"b{self.batch}",
            f"n{self.num_tokens}",
            f"c{self.channels}" if self.token_len == self.channels else f"c{self.token_len}to{self.channels}",
            f"h{self.num_heads}",
            *(["bias"] if self.qkv_bias else []),
            *([] if self.qk_scale is None else [f"s{self.qk_scale:g}"]),
            *([] if self.key_channels is None else [f"k{self.key_channels}"]),
            *([] if self.image_size is None else [f"i{self.image_size}"]),
            *([] if self.patch_size is None else [f"p{self.patch_size}"]),
            f"t{self.threads}",
            *([self.allocator] if self.allocator != "retained" else []),
            *([self.timing] if self.timing != "host" else []),
        ]
        return "-".join(parts)


@dataclass(frozen=True)
class Case:
    """A point and one way to compute it: one row of the results."""

    point: Point
    implementation: str

    @property
    def name(self) -> str:
        """The case in one word, unique among cases."""
        return f"{self.point.name}-{self.implementation}"

    def columns(self) -> dict[str, Any]:
        """Return the case as the columns of its row, in the order of CASE_COLUMNS."""
        point = dataclasses.asdict(self.point)
        layer = point.pop("layer")
        return {"layer": layer, "implementation": self.implementation, **point}

    @classmethod
    def from_columns(cls, columns: dict[str, Any]) -> Self:
        """Return the case that stands in a row; other columns are passed over.

        A column that was not there yet when the row was written has the value that went without saying.
        """
        from pandas import isna  # slow to import, and only results hold what it looks for

        point = {name: columns.get(name) if name in SINCE else columns[name] for name in POINT_COLUMNS}
        values: dict[str, Any] = {name: None if isna(value) else value for name, value in point.items()}
        return cls(Point(**values), columns["implementation"])


SINCE = {"qk_scale": 3, "key_channels": 3, "image_size": 3, "patch_size": 3}
"""The schema version of results that brought a column of the case."""

POINT_COLUMNS = tuple(field.name for field in dataclasses.fields(Point))
CASE_COLUMNS = ("layer", "implementation", *POINT_COLUMNS[1:])
