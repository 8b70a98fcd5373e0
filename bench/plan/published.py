"""Figures that others published, as they stand in sweep files beside the points that they are for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bench.plan.case import POINT_COLUMNS, Point
from bench.plan.errors import WrongRequest, unknown

FIGURES = ("latency_s", "items_per_s", "core_flops_per_s")
"""What a figure may be: seconds a call, batch items a second, or operations of the attention core a second."""

PARTS = {"layer": "whole layer", "core": "core alone"}
"""What was measured: all that the layer does, or attention with q, k and v given."""

TEXTS = ("source", "machine", "called", "implementation")
KEYS = (*TEXTS, "part", "at", *FIGURES)


@dataclass(frozen=True)
class Published:
    """One figure: where it stands, what it was measured on, what it is called there, and our name for the like.

    `at` holds the columns that a point must have for the figure to be set beside it.
    """

    source: str
    machine: str
    called: str
    implementation: str
    part: str
    unit: str
    value: float
    at: Mapping[str, Any] = field(hash=False)

    def is_for(self, point: Point) -> bool:
        """Return whether a point has every column that the figure was measured at; any GPU is `cuda`.

        A figure that says nothing of a mask was measured without one.
        """
        values = {**vars(point), "device": point.device.partition(":")[0]}
        return all(values[name] == value for name, value in {"mask": "none", **self.at}.items())

    def latency_s(self, point: Point) -> float:
        """Return the figure as seconds a call of a point.

        The core's operations are 4·B·N²·C: two products, a multiply-add counted as two; with a causal mask half of
        them (arXiv 2307.08691, 4.1).
        """
        if self.unit == "items_per_s":
            return point.batch / self.value
        if self.unit == "core_flops_per_s":
            halves = 2 if point.mask == "causal" else 1
            return 4 * point.batch * point.num_tokens**2 * point.channels / halves / self.value
        return self.value


def read(entries: object) -> tuple[Published, ...]:
    """Return the figures of a sweep file; raises WrongRequest for what is none."""
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise WrongRequest("published must be written as [[published]], one table for each figure")
    return tuple(_read(entry) for entry in entries)


def _read(entry: dict[str, Any]) -> Published:
    for key in entry:
        if key not in KEYS:
            raise unknown("key of published", key, KEYS)
    for key in TEXTS:
        if not isinstance(entry.get(key), str):
            raise WrongRequest(f"published: {key} = {entry.get(key)!r} must be text")
    if entry.get("part") not in PARTS:
        raise WrongRequest(f"published: part = {entry.get('part')!r} must be one of {', '.join(PARTS)}")
    given = [name for name in FIGURES if name in entry]
    if len(given) != 1 or not isinstance(entry[given[0]], int | float) or not entry[given[0]] > 0:
        raise WrongRequest(f"published: exactly one of {', '.join(FIGURES)} must be a number above 0")
    return Published(
        **{name: entry[name] for name in TEXTS},
        part=entry["part"],
        unit=given[0],
        value=float(entry[given[0]]),
        at=_columns(entry.get("at")),
    )


def _columns(at: object) -> Mapping[str, Any]:
    if not isinstance(at, dict) or not at:
        raise WrongRequest("published: at must be a table of the columns that the figure was measured at")
    for key in at:
        if key not in POINT_COLUMNS:
            raise unknown("column of published", key, POINT_COLUMNS)
    return at
