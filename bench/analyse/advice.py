"""What attention is worth in a model: its share of the time, and the measured gain of each setting."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from bench.analyse.precision import WIDEST, across_precisions, in_precision
from bench.analyse.rows import grouped, log_latencies, log_speedups
from bench.analyse.standing import SLOWER
from bench.analyse.summary import of_records
from bench.plan.case import AS_IS, Point
from bench.stats.estimates import PAIR, UNKNOWN, Estimates, Interval, combined, interval, intervals, mean
from bench.store.record import Record
from bench.store.saved_run import Seen
from impls.catalogue import GRAPH, compiled_from

LITTLE = 1.1
"""A bound below this is little: attention can't be worth much."""

WHOLE = ("_native_multi_head_attention", "_transformer_encoder_layer_fwd")
"""The operators that compute a whole layer: the fast paths of torch's own modules."""

FAR = 10.0
"""The ratio of an interval's ends from which on it says nothing."""


@dataclass(frozen=True)
class LayerKind:
    """Layers of a model that are alike: one path for all, their number, and what is known of a core in them.

    `cores` is the number of their cores, which is larger if a layer is called several times or has several.
    """

    path: str
    count: int
    cores: int
    core: Mapping[str, Any]
    time: Estimates
    """The share of the time that their cores take."""

    @property
    def share(self) -> float:
        """The value of that share."""
        return float(self.time.value)


@dataclass(frozen=True)
class OtherSoftmax:
    """Softmaxes at the same lines that belong to no known core: their layers, why, and their share of the time."""

    layers: tuple[str, ...]
    lines: str
    reason: str
    share: Interval


@dataclass(frozen=True)
class Alternative:
    """A setting beside the model as it is: how it ended, and its gain."""

    name: str
    status: str
    detail: str = ""
    speedup: Interval = UNKNOWN
    kernels: tuple[str, ...] = ()
    latency_s: float = math.nan
    peak_bytes: float = math.nan
    error: float = math.nan
    compile_s: float = math.nan
    slowdown_high: float = math.nan
    """What it can cost, as in the table of the model's run."""
    by: str = ""
    """How the core was replaced: GRAPH if the model itself has no way for it."""


@dataclass(frozen=True)
class Advice:
    """The answer for a model at a point.

    `share` is that of the time in attention cores, `layer_share` that of their layers, and `others` are the softmaxes
    that belong to no core. `objections` say where the graph differs from a plain call, and which switches of the model
    are left as they are. `has_whole` is true if the model as it is computes whole layers by one operator, so that
    settings change more than attention. `untraced` is the reason if there is no graph. `recommendation` is the setting
    to use, None if none is shown to be faster than the model as it is.
    """

    point: Point
    share: Interval
    layer_share: Interval
    kinds: tuple[LayerKind, ...]
    others: tuple[OtherSoftmax, ...]
    has_whole: bool
    untraced: str
    library: str
    call_s: float
    objections: tuple[str, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    as_is: Mapping[Any, Any] = field(default_factory=dict)
    recommendation: str | None = None
    processes: int = 0
    chosen: Mapping[Any, Any] = field(default_factory=dict)
    """The row of the setting to use, or of the model as it is."""

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


def seen(point: Point, looks: Sequence[Seen]) -> Advice:
    """Return the answer as far as the looks of some processes at a model give it."""
    return Advice(
        point,
        _share(looks, lambda call: sum(call["cores"])),
        _share(looks, lambda call: call["layers"]),
        tuple(kinds(looks)),
        tuple(_others(looks)),
        any(name.startswith(WHOLE) for name in looks[0]["kernels"]),
        str(looks[0]["untraced"]),
        str(looks[0]["library"]),
        float(np.median([call["plain_s"] for each in looks for call in each["calls"]])),
        tuple(_objections(looks)),
    )


def _others(looks: Sequence[Seen]) -> Iterator[OtherSoftmax]:
    """Yield the softmaxes that belong to no core, those of the same lines together."""
    every = grouped(enumerate(looks[0]["others"]), lambda each: (each[1]["lines"], each[1]["reason"]))
    for (lines, reason), those in every.items():
        share = _share(looks, partial(_sum, "others", [number for number, _ in those]))
        yield OtherSoftmax(tuple(dict.fromkeys(each["layer"] for _, each in those)), lines, reason, share)


def _sum(name: str, numbers: Collection[int], call: Mapping[str, Any]) -> float:
    """Return the seconds of a call in some of its cores or other softmaxes."""
    return math.fsum(call[name][number] for number in numbers)


def kinds(looks: Sequence[Seen]) -> list[LayerKind]:
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
            _shares(looks, partial(_sum, "cores", [number for number, _ in group])),
        )
        for group in groups.values()
    ]
    return sorted(all_kinds, key=lambda kind: -kind.share)


def advised(
    before: Advice,
    looks: Sequence[Seen],
    table: pd.DataFrame,
    records: Sequence[Record],
    settings: Sequence[str],
) -> Advice:
    """Return the whole answer.

    `table` and `records` are those of the model's run. `settings` are all that were asked for, in their order.
    """
    rows: dict[str, dict[Any, Any]] = {str(row["implementation"]): row for row in table.to_dict("records")}
    by_name = grouped(records, lambda record: record.case.implementation)
    as_is = rows.get(AS_IS, {})
    gains, tried = speedups(table, settings), looks[0]["settings"]
    alternatives = tuple(
        replace(
            _alternative(name, rows.get(name), by_name.get(name, []), tried.get(name, {})),
            by=_way(by_name.get(name, [])) or tried.get(compiled_from(name) or name, {}).get("by", ""),
            speedup=interval(gains[name], PAIR).exp() if name in gains else UNKNOWN,
        )
        for name in settings
    )
    is_slower = as_is.get("standing") == SLOWER
    recommendation = _best(rows, {each.name: each.by for each in alternatives}, records) if is_slower else None
    return replace(
        before,
        alternatives=alternatives,
        as_is=as_is,
        recommendation=recommendation,
        chosen=rows.get(recommendation or AS_IS, {}),
        processes=len(by_name.get(AS_IS, [])),
    )


def _way(records: Sequence[Record]) -> str:
    """Return how the core of a setting was replaced, by its records."""
    return next((str(each.metrics["adapted_by"]) for each in records if each.metrics["adapted_by"]), "")


def _best(rows: Mapping[str, Mapping[Any, Any]], ways: Mapping[str, str], records: Sequence[Record]) -> str | None:
    """Return the fastest setting; none if it goes by the graph and isn't shown to be faster than that unchanged."""
    first = next(name for name, row in rows.items() if row["rank"] == 1)
    if not ways[first].startswith(GRAPH) or rows.get(GRAPH, {}).get("status") != "ok":
        return first
    of = of_records(records, AS_IS).contrasts(records[0].case.point)
    return first if interval(of.speedup(first, GRAPH), PAIR).low > 0 else None


@dataclass(frozen=True)
class PerItem:
    """A point and the setting to use there: the seconds for each item, and how many times as fast the fastest is."""

    point: Point
    setting: str
    item_s: float
    behind: Interval


def per_item(answers: Iterable[Advice], records: Iterable[Record]) -> list[PerItem]:
    """Return the points with a time, the one that is fastest for each item first.

    Points that differ in the dtype alone are compared round by round, others by their latencies.
    """
    measured = [answer for answer in answers if answer.chosen.get("status") == "ok"]
    measured.sort(key=lambda each: each.chosen["latency_s"] / each.point.batch)
    if not measured:
        return []
    rows = pd.DataFrame([each.chosen for each in measured]).astype(object)
    logs = log_latencies(rows.where(rows.notna(), None).to_dict("records"))  # type: ignore[arg-type]
    logs = replace(logs, value=logs.value - np.log([each.point.batch for each in measured]))
    weights = np.eye(len(measured)) - np.eye(len(measured))[0]
    behind = intervals(combined(weights, logs), PAIR)
    paired = across_precisions(records)

    def wide(of: Advice) -> Point:
        return replace(of.point, dtype=WIDEST)

    def name(of: Advice) -> str:
        return in_precision(str(of.chosen["implementation"]), of.point.dtype)

    for place, each in enumerate(measured):
        if place and wide(each) == wide(measured[0]) in paired:
            behind[place] = interval(paired[wide(each)].speedup(name(measured[0]), name(each)), PAIR)
    return [
        PerItem(each.point, str(each.chosen["implementation"]), float(np.exp(value)), ratio.exp())
        for each, value, ratio in zip(measured, logs.value, behind, strict=True)
    ]


def speedups(table: pd.DataFrame, names: Sequence[str]) -> dict[str, Estimates]:
    """Return the log speed-ups of those of the implementations that have one."""
    rows = table[table["speedup"].notna()].astype(object)
    of = log_speedups(rows.where(rows.notna(), None).to_dict("records"))  # type: ignore[arg-type]
    parts = zip(rows["implementation"], of.value, of.error, of.freedom, strict=True)
    by_name = {str(name): Estimates(*map(np.asarray, each)) for name, *each in parts}
    return {name: by_name[name] for name in names if name in by_name}


def _alternative(
    name: str, row: Mapping[Any, Any] | None, records: Sequence[Record], setting: Mapping[str, str]
) -> Alternative:
    """Return an alternative by its row of results, or by what the look says of a setting that was not measured."""
    if row is None:
        return Alternative(name, setting.get("status", "skipped"), setting.get("detail", ""))
    return Alternative(
        name,
        str(row["status"]),
        "" if pd.isna(row["detail"]) else str(row["detail"]),
        kernels=next((tuple(record.metrics["kernels"]) for record in records if record.metrics["kernels"]), ()),
        latency_s=_number(row["latency_s"]),
        peak_bytes=_number(row["peak_bytes"]),
        error=_number(row["error"]),
        compile_s=_number(row["compile_cold_s"]),
        slowdown_high=_number(row["slowdown_high"]),
    )


def _number(value: Any) -> float:
    return math.nan if pd.isna(value) else float(value)


def _objections(looks: Sequence[Seen]) -> Iterator[str]:
    """Yield how the graph differs from a plain call, and which switches of the model stay as they are."""
    plain, in_graph = ({*looks[0][name]} for name in ("kernels", "graph_kernels"))
    if plain != in_graph and not looks[0]["untraced"]:
        its, plain_ones = (", ".join(sorted(each)) or "no attention operator" for each in (in_graph, plain))
        yield (
            f"the model's graph runs {its}, the model itself {plain_ones}: the layers and the share are those of the "
            "graph; gains are measured in the model as it is"
        )
    for flag in looks[0].get("flags", ()):
        yield (
            f"{flag} is a switch of the library that no setting here changes; build the model with another value and "
            "call advise again"
        )


def _share(looks: Sequence[Seen], part_s: Callable[[Mapping[str, Any]], float]) -> Interval:
    """Return the share of the time in a part of the calls, without what no share can be."""
    if looks[0]["untraced"]:
        return UNKNOWN
    share = interval(_shares(looks, part_s), PAIR)
    return Interval(*np.clip([share.value, share.low, share.high], 0.0, 1.0).tolist())


def _shares(looks: Sequence[Seen], part_s: Callable[[Mapping[str, Any]], float]) -> Estimates:
    return _over_processes([[part_s(call) / call["total_s"] for call in each["calls"]] for each in looks])


def _over_processes(values: Sequence[Sequence[float]]) -> Estimates:
    """Return the mean over processes of each process's median call; of one process it is that over its calls."""
    return mean([float(np.median(own)) for own in values] if len(values) > 1 else values[0])
