"""A point, and a case: the point with an implementation."""

import dataclasses
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True)
class Point:
    """Everything that is fixed while implementations are compared with each other.

    `token_len` is the width of a token on the way in, `channels` on the way out.
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
        """Return the case that stands in a row; other columns are passed over."""
        return cls(Point(**{name: columns[name] for name in POINT_COLUMNS}), columns["implementation"])


POINT_COLUMNS = tuple(field.name for field in dataclasses.fields(Point))
CASE_COLUMNS = ("layer", "implementation", *POINT_COLUMNS[1:])
