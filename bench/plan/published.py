"""Figures that others published, which sweep files list besides the points."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bench.plan.case import COLUMNS, POINT_COLUMNS, Point
from bench.plan.errors import WrongRequest, unknown
from bench.plan.layers.layer import ATTENTION_ALONE, visible_share

FIGURES = ("latency_s", "items_per_s", "core_flops_per_s")
"""The kinds of figures: seconds per call, batch items per second, or operations of the attention core per second."""

PARTS = {"layer": "whole layer", "core": "core alone"}
"""The measured part: the whole layer, or only attention with q, k and v given."""

NOT_GIVEN = {name: COLUMNS[name].absent for name in ("mask", *ATTENTION_ALONE)}
"""The columns that a figure need not name, with the values that it means then: the plain core."""

TEXTS = ("source", "machine", "called", "implementation")
KEYS = (*TEXTS, "part", "at", *FIGURES)


@dataclass(frozen=True)
class Published:
    """One published figure.

    `source` is the publication, `machine` the machine that was measured, `called` the implementation's name there,
    `implementation` the name of the most similar one here. `unit` is one of FIGURES.
    `at` are the values that a point's columns must have for a comparison with the figure.
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
        """Return whether a point has all values of `at`, in which any GPU is `cuda`; NOT_GIVEN holds for the others."""
        values = {**vars(point), "device": point.device.partition(":")[0]}
        return all(values[name] == value for name, value in {**NOT_GIVEN, **self.at}.items())

    def latency_s(self, point: Point) -> float:
        """Return the figure as seconds per call of a point.

        The core has 4·B·N·M·C operations, a multiply-add counted as two, of which a mask leaves the visible share; a
        causal one halves them (arXiv 2307.08691).
        """
        if self.unit == "items_per_s":
            return point.batch / self.value
        if self.unit == "core_flops_per_s":
            whole = 4 * point.batch * point.num_tokens * point.keys * point.channels
            return whole * float(visible_share(point)) / self.value
        return self.value


def read(entries: object) -> tuple[Published, ...]:
    """Return the figures of a sweep file; raises WrongRequest if one breaks a rule."""
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
    units = [name for name in FIGURES if name in entry]
    if len(units) != 1 or not isinstance(entry[units[0]], int | float) or not entry[units[0]] > 0:
        raise WrongRequest(f"published: exactly one of {', '.join(FIGURES)} must be a number above 0")
    at = entry.get("at")
    if not isinstance(at, dict) or not at:
        raise WrongRequest("published: at must be a table of the columns that the figure was measured at")
    for key in at:
        if key not in POINT_COLUMNS:
            raise unknown("column of published", key, POINT_COLUMNS)
    texts = {name: entry[name] for name in (*TEXTS, "part")}
    return Published(**texts, unit=units[0], value=float(entry[units[0]]), at=at)
