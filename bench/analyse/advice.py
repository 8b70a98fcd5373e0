"""What attention is worth in a model: its share of the time, and the measured gain of each setting."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from bench.analyse.padding import Packing
from bench.analyse.rows import Row, grouped, log_latencies, speedup_of
from bench.plan.case import AS_IS, Point
from bench.plan.verdicts import SLOWER
from bench.stats.contrasts import Contrasts
from bench.stats.estimates import UNKNOWN, Estimates, Interval, combined, interval, intervals, mean
from bench.store.saved_run import Seen
from impls.catalogue import GRAPH, name_of

LITTLE = 1.1
"""A bound below this is little: attention can't be worth much."""

NUMBERS = ("latency_s", "peak_bytes", "error", "compile_cold_s", "slowdown_high")
"""The numbers of an alternative, by the columns of its row."""


@dataclass(frozen=True)
class LayerKind:
    """Layers of a model that are alike: one path for all, their number, and what is known of a core in them.

    `cores` is the number of their cores, which is larger if a layer is called several times or has several. `share` is
    that of the time that their cores take.
    """

    path: str
    count: int
    cores: int
    core: Mapping[str, Any]
    share: float


@dataclass(frozen=True)
class OtherSoftmax:
    """Softmaxes at the same lines that belong to no known core: their layers, why, and their share of the time."""

    layers: tuple[str, ...]
    lines: str
    reason: str
    share: Interval


@dataclass(frozen=True)
class Alternative:
    """A setting beside the model as it is: how it ended, and its gain.

    `by` is how the core was replaced: GRAPH if the model itself has no way for it. `slowdown_high` is what the setting
    can cost, as in the table of the model's run. A number that isn't known is NaN.
    """

    name: str
    status: str
    detail: str = ""
    by: str = ""
    speedup: Interval = UNKNOWN
    kernels: tuple[str, ...] = ()
    latency_s: float = math.nan
    peak_bytes: float = math.nan
    error: float = math.nan
    compile_cold_s: float = math.nan
    slowdown_high: float = math.nan


@dataclass(frozen=True)
class Advice:
    """The answer for a model at a point, by what the `looks` of some processes saw, and by a run of its settings.

    `share` is that of the time in attention cores, `layer_share` that of their layers, and `others` are the softmaxes
    that belong to no core. `as_is` is the row of the model as it is, `chosen` that of the setting to use, or of the
    model as it is: both are empty if nothing was compared. `recommendation` is the setting to use, None if none is
    shown to be faster than the model as it is. `packing` is what packed items bring in a padded core by itself.
    """

    point: Point
    looks: Sequence[Seen] = field(repr=False)
    share: Interval
    layer_share: Interval
    kinds: tuple[LayerKind, ...]
    others: tuple[OtherSoftmax, ...]
    alternatives: tuple[Alternative, ...] = ()
    as_is: Row = field(default_factory=dict)
    chosen: Row = field(default_factory=dict)
    recommendation: str | None = None
    packing: Packing | None = None

    @property
    def first(self) -> Seen:
        """What the first process saw: it tried the settings too."""
        return self.looks[0]

    def named(self, name: str | None) -> Alternative | None:
        """Return the alternative of a name, None if there is none."""
        return next((each for each in self.alternatives if each.name == name), None)

    @property
    def untraced(self) -> str:
        """Why there is no graph; empty if there is one."""
        return str(self.first["untraced"])

    @property
    def call_s(self) -> float:
        """The median time of a plain call."""
        return float(np.median([call["plain_s"] for each in self.looks for call in each["calls"]]))

    @property
    def working(self) -> list[str]:
        """The settings that the model has and that change it."""
        return [name for name, tried in self.first["settings"].items() if tried["status"] == "ok"]

    @property
    def controls(self) -> list[str]:
        """The control of the settings that go by the model's graph; nothing if none does."""
        return [GRAPH] * any(tried["by"].startswith(GRAPH) for tried in self.first["settings"].values())

    @property
    def has_whole(self) -> bool:
        """Whether the model computes whole layers by one operator, so that settings change more than attention."""
        return bool(self.first["has_whole"])

    @property
    def bound(self) -> Interval:
        """The most that a setting of attention alone can gain.

        It is unknown without a core, if a share of all of the time can't be ruled out, and if settings change more than
        attention.
        """
        ends = self.share.value, self.share.low, self.share.high
        if not self.kinds or self.has_whole or 1.0 in ends:
            return UNKNOWN
        return Interval(*(1 / (1 - end) for end in ends))

    @property
    def is_little(self) -> bool:
        """Whether there is too little to gain to go on unasked: by the bound, or because there is no core."""
        return self.bound.value < LITTLE or not (self.kinds or self.untraced)

    @property
    def objections(self) -> list[str]:
        """How the graph differs from a plain call, and which switches of the model stay as they are."""
        plain, in_graph = ({*self.first[name]} for name in ("kernels", "graph_kernels"))
        lines = [
            f"{flag} is a switch of the library that no setting here changes; build the model with another value and "
            "call advise again"
            for flag in self.first.get("flags", ())
        ]
        if plain == in_graph or self.untraced:
            return lines
        its, plain_ones = (", ".join(sorted(each)) or "no attention operator" for each in (in_graph, plain))
        difference = (
            f"the model's graph runs {its}, the model itself {plain_ones}: the layers and the share are those of the "
            "graph; gains are measured in the model as it is"
        )
        return [difference, *lines]


def seen(point: Point, looks: Sequence[Seen]) -> Advice:
    """Return the answer as far as the looks of some processes at a model give it."""
    return Advice(
        point,
        looks,
        _share(looks, lambda call: sum(call["cores"])),
        _share(looks, lambda call: call["layers"]),
        tuple(_kinds(looks)),
        tuple(_others(looks)),
    )


def _kinds(looks: Sequence[Seen]) -> list[LayerKind]:
    """Return the distinct layers of a model, those that take the most time first."""
    groups = grouped(
        enumerate(looks[0]["cores"]), lambda each: repr([each[1][name] for name in each[1] if name != "layer"])
    )
    all_kinds = [
        LayerKind(
            group[0][1]["layer"],
            len({core["layer"] for _, core in group}),
            len(group),
            group[0][1],
            float(_shares(looks, partial(_sum, "cores", [number for number, _ in group])).value),
        )
        for group in groups.values()
    ]
    return sorted(all_kinds, key=lambda kind: -kind.share)


def _others(looks: Sequence[Seen]) -> Iterator[OtherSoftmax]:
    """Yield the softmaxes that belong to no core, those of the same lines together."""
    every = grouped(enumerate(looks[0]["others"]), lambda each: (each[1]["lines"], each[1]["reason"]))
    for (lines, reason), those in every.items():
        share = _share(looks, partial(_sum, "others", [number for number, _ in those]))
        yield OtherSoftmax(tuple(dict.fromkeys(each["layer"] for _, each in those)), lines, reason, share)


def _sum(name: str, numbers: Collection[int], call: Mapping[str, Any]) -> float:
    """Return the seconds of a call in some of its cores or other softmaxes."""
    return math.fsum(call[name][number] for number in numbers)


def _share(looks: Sequence[Seen], part_s: Callable[[Mapping[str, Any]], float]) -> Interval:
    """Return the share of the time in a part of the calls, without what no share can be."""
    if looks[0]["untraced"]:
        return UNKNOWN
    share = interval(_shares(looks, part_s))
    return Interval(*np.clip([share.value, share.low, share.high], 0.0, 1.0).tolist())


def _shares(looks: Sequence[Seen], part_s: Callable[[Mapping[str, Any]], float]) -> Estimates:
    """Return the mean over processes of each process's median call; of one process it is that over its calls."""
    values = [[part_s(call) / call["total_s"] for call in each["calls"]] for each in looks]
    return mean([float(np.median(own)) for own in values] if len(values) > 1 else values[0])


def compared(before: Advice, rows: Iterable[Row], of: Contrasts, settings: Iterable[str]) -> Advice:
    """Return the whole answer by the rows and contrasts of the model's run.

    `settings` are all that were asked for, in their order.
    """
    by_name = {str(row["implementation"]): row for row in rows}
    alternatives = [_alternative(name, by_name.get(name), before.first["settings"]) for name in settings]
    as_is = by_name.get(AS_IS, {})
    best = None
    if as_is.get("standing") == SLOWER:
        first = next(name for name, row in by_name.items() if row["rank"] == 1)
        by = next((each.by for each in alternatives if each.name == first), "")
        best = None if by.startswith(GRAPH) and not _beats_graph(first, of) else first
    chosen = by_name.get(best or AS_IS, {})
    return replace(before, alternatives=tuple(alternatives), as_is=as_is, chosen=chosen, recommendation=best)


def _beats_graph(name: str, of: Contrasts) -> bool:
    """Return whether a setting is shown to be faster than the model's graph unchanged, if that has a time."""
    return GRAPH not in of.names or interval(of.speedup(name, GRAPH)).low > 0


def _alternative(name: str, row: Row | None, tried: Mapping[str, Mapping[str, str]]) -> Alternative:
    """Return an alternative by its row of results, or by what the look says of a setting that was not measured."""
    own, by = tried.get(name, {}), tried.get(name_of(name).compiled_from or name, {}).get("by", "")
    if row is None:
        return Alternative(name, own.get("status", "skipped"), own.get("detail", ""), by)
    kernels = tuple(filter(None, (row["kernels"] or "").split(";")))
    numbers = {name: math.nan if row[name] is None else float(row[name]) for name in NUMBERS}
    return Alternative(
        name, row["status"], row["detail"] or "", row["adapted_by"] or by, speedup_of(row), kernels, **numbers
    )


@dataclass(frozen=True)
class PerItem:
    """A point and the setting to use there: the seconds for each item, and how many times as fast the fastest is."""

    point: Point
    setting: str
    item_s: float
    behind: Interval


def per_item(answers: Iterable[Advice]) -> list[PerItem]:
    """Return the points with a time, the one that is fastest for each item first."""
    measured = [answer for answer in answers if answer.chosen.get("status") == "ok"]
    measured.sort(key=lambda each: each.chosen["latency_s"] / each.point.batch)
    if not measured:
        return []
    logs = log_latencies([each.chosen for each in measured])
    logs = replace(logs, value=logs.value - np.log([each.point.batch for each in measured]))
    weights = np.eye(len(measured)) - np.eye(len(measured))[0]
    behind = intervals(combined(weights, logs))
    return [
        PerItem(each.point, each.chosen["implementation"], float(np.exp(value)), ratio.exp())
        for each, value, ratio in zip(measured, logs.value, behind, strict=True)
    ]
