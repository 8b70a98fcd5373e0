"""Figures that others published, which sweep files list besides the points."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from bench.plan.cards import model
from bench.plan.case import COLUMNS, POINT_COLUMNS, Point, of_role
from bench.plan.columns import Role
from bench.plan.errors import WrongRequest, unknown
from bench.plan.layers.layer import visible_share
from bench.plan.verdicts import EQUIVALENT, FASTER, SLOWER

FIGURES = ("latency_s", "items_per_s", "core_flops_per_s")
"""The kinds of figures: seconds per call, batch items per second, or operations of the attention core per second."""

PARTS = {"layer": "whole layer", "core": "core alone"}
"""The measured part: the whole layer, or only attention with q, k and v given."""

NOT_GIVEN = {name: COLUMNS[name].absent for name in ("mask", *of_role(Role.CONTEXT, Role.CORE, Role.QUERIES))}
"""The columns that a figure need not name, with the values that it means then: the plain core."""

FORWARD_PASSES = {"backward": 2.5, "train": 3.5}
"""The work of a call in forward passes, by its mode, as papers count it: a backward pass computes the scores again.

Source: Dao 2023, arXiv 2307.08691, section 4.1. The rates of our rows count two forward passes for a backward pass."""

TEXTS = ("source", "machine", "card", "called", "implementation")
KEYS = (*TEXTS, "part", "at", *FIGURES)

AGREES = 1.1
"""Two times are equivalent if the longer one is at most so many times the other."""


@dataclass(frozen=True)
class Published:
    """One published figure.

    `source` is the publication, `machine` the machine that was measured, `called` the implementation's name there,
    `implementation` the name of the most similar one here. `unit` is one of FIGURES. `card` is the machine's GPU as
    torch names it, empty if it isn't known or is no GPU: then there is no verdict.
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
    card: str = ""

    def is_for(self, point: Point) -> bool:
        """Return whether a point has all values of `at`, in which any GPU is `cuda`; NOT_GIVEN holds for the others."""
        values = {**vars(point), "device": point.device.partition(":")[0]}
        return all(values[name] == value for name, value in {**NOT_GIVEN, **self.at}.items())

    def latency_s(self, point: Point) -> float:
        """Return the figure as seconds per call of a point."""
        if self.unit == "items_per_s":
            return point.batch / self.value
        if self.unit == "core_flops_per_s":
            return core_flops(point) / self.value
        return self.value

    def verdict(self, point: Point, device_name: str, latency_s: float) -> str:
        """Return the verdict on a latency, or why there is none; empty without a card.

        It is EQUIVALENT if neither time is more than AGREES times the other.
        """
        if not self.card:
            return ""
        if model(device_name) != self.card:
            return f"another card, no comparison: published for {self.card}, measured on {device_name or 'no GPU'}"
        if self.part == "core" and point.layer != "core":
            return "the core alone against a whole layer: no comparison"
        ratio = latency_s / self.latency_s(point)
        if max(ratio, 1 / ratio) <= AGREES:
            return EQUIVALENT
        return SLOWER if ratio > 1 else FASTER


def core_flops(point: Point) -> float:
    """Return the operations of a call of the core as papers count them: 4·B·H·N·M·D for a forward pass.

    A multiply-add counts as two. A mask leaves the visible share, a causal one half (arXiv 2307.08691).
    """
    forward = 4 * point.batch * point.num_tokens * point.keys * point.channels * float(visible_share(point))
    return forward * FORWARD_PASSES.get(point.mode, 1.0)


def read(entries: object) -> tuple[Published, ...]:
    """Return the figures of a sweep file; raises WrongRequest if one breaks a rule.

    Lists in an entry make it a series: a figure for each place in them.
    """
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise WrongRequest("published must be written as [[published]], one table for each figure or series")
    return tuple(_read(each) for entry in entries for each in _each(entry))


def _each(entry: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the entry of each figure in a series; the card is empty if none is given."""
    at = entry.get("at")
    at = at if isinstance(at, dict) else {}
    lengths = {len(value) for value in (*entry.values(), *at.values()) if isinstance(value, list)}
    if len(lengths) > 1:
        raise WrongRequest(f"published: lists must have one length, got {' and '.join(map(str, sorted(lengths)))}")
    for place in range(lengths.pop() if lengths else 1):
        own, columns = (
            {key: value[place] if isinstance(value, list) else value for key, value in table.items()}
            for table in (entry, at)
        )
        yield {"card": "", **own, **({"at": columns} if at else {})}


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
