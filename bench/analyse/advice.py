"""What attention is worth in a model: its share of the time, and each setting's gain, predicted and measured."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd

from bench.analyse.precision import WIDEST, across_precisions, in_precision
from bench.analyse.rows import grouped, log_latencies, log_speedups
from bench.analyse.standing import SLOWER
from bench.plan.case import AS_IS, Point
from bench.stats.estimates import PAIR, UNKNOWN, Estimates, Interval, combined, interval, intervals, joined, mean
from bench.store.record import Record
from bench.store.saved_run import Seen

LITTLE = 1.1
"""A bound below this is little: attention can't be worth much."""

MOST_SHARE = 0.999
"""A larger share is taken for this one, so that its bound is a number."""

MEASURED_SHARE, MOST_LAYERS = 0.9, 3
"""The layers that are measured by themselves: the largest, until they have this share of the time of all, but no more
kinds than MOST_LAYERS."""

REST_FREEDOM = 1e6
"""The degrees of freedom of what is taken for layers that were not measured."""

WHOLE_ENCODER = "_transformer_encoder_layer_fwd"
WHOLE = ("_native_multi_head_attention", WHOLE_ENCODER)
"""The operators that compute a whole layer: the fast paths of torch's own modules."""


@dataclass(frozen=True)
class LayerKind:
    """Layers of a model that are alike: one path for all, their number, and what is known of a core in them."""

    path: str
    count: int
    core: Mapping[str, Any]
    time: Estimates
    """The share of the time that all of them take."""

    @property
    def share(self) -> float:
        """The value of that share."""
        return float(self.time.value)

    @property
    def is_whole(self) -> bool:
        """Whether one operator computes the whole layer, so that a setting replaces more than the core."""
        return str(self.core["operator"]).startswith(WHOLE)


@dataclass(frozen=True)
class Alternative:
    """A setting beside the model as it is: how it ended, and its gain."""

    name: str
    status: str
    detail: str = ""
    speedup: Interval = UNKNOWN
    predicted: Interval = UNKNOWN
    kernels: tuple[str, ...] = ()
    latency_s: float = math.nan
    peak_bytes: float = math.nan
    error: float = math.nan
    compile_s: float = math.nan
    slowdown_high: float = math.nan
    """What it can cost, as in the table of the model's run."""
    unpredicted: str = ""
    """Why nothing is predicted: how a layer by itself ended."""


@dataclass(frozen=True)
class Advice:
    """The answer for a model at a point.

    `share` is that of the time in what settings replace: attention cores, or the whole layers if one operator computes
    a whole layer. `core_share` and `layer_share` are those of cores and of layers. `objections` say where what was
    observed differs from a plain call, and which switches of the model are left as they are. `recommendation` is the
    setting to use, None if none is shown to be faster than the model as it is.
    """

    point: Point
    share: Interval
    core_share: Interval
    layer_share: Interval
    kinds: tuple[LayerKind, ...]
    library: str
    call_s: float
    objections: tuple[str, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    as_is: Mapping[Any, Any] = field(default_factory=dict)
    recommendation: str | None = None
    processes: int = 0
    chosen: Mapping[Any, Any] = field(default_factory=dict)
    """The row of the setting to use, or of the model as it is."""
    rewritten: Interval = UNKNOWN
    """The gain if `F.scaled_dot_product_attention` computed the cores that separate operators compute, from their times
    by themselves and from the share of cores; unknown if a setting does that."""

    @property
    def bound(self) -> Interval:
        """The most that any setting of attention can gain."""
        return Interval(
            *(1 / (1 - min(end, MOST_SHARE)) for end in (self.share.value, self.share.low, self.share.high))
        )

    @property
    def is_little(self) -> bool:
        """Whether the bound is too small to go on unasked."""
        return self.bound.value < LITTLE


def seen(point: Point, looks: Sequence[Seen]) -> Advice:
    """Return the answer as far as the looks of some processes at a model give it."""
    core_share = _share(looks, itemgetter("core_s"))
    layer_share = _share(looks, lambda call: sum(call["layers"].values()))
    all_kinds = tuple(kinds(looks))
    return Advice(
        point,
        layer_share if any(kind.is_whole for kind in all_kinds) else core_share,
        core_share,
        layer_share,
        all_kinds,
        str(looks[0]["library"]),
        float(np.median([call["plain_s"] for each in looks for call in each["calls"]])),
        tuple(_objections(looks)),
        rewritten=_rewritten(looks, all_kinds),
    )


def _rewritten(looks: Sequence[Seen], all_kinds: Sequence[LayerKind]) -> Interval:
    """Return the gain of fused cores in a model that can't be switched to them, unknown without a proposal for all."""
    if not all(kind.core.get("proposal") and kind.path in each["written"] for kind in all_kinds for each in looks):
        return UNKNOWN
    kept = list[float]()
    for each in looks:
        medians = [np.median(each["written"][kind.path], axis=0) * kind.count for kind in all_kinds]
        kept.append(sum(fused for _, fused in medians) / sum(written for written, _ in medians))
    parts = joined([_shares(looks, itemgetter("core_s")), mean(kept)])
    share, left = parts.value
    return _gain(1 - share * (1 - left), combined(np.array([left - 1, share]), parts))


def kinds(looks: Sequence[Seen]) -> list[LayerKind]:
    """Return the distinct layers of a model, those that take the most time first."""
    groups = grouped(looks[0]["cores"], lambda core: repr([core[name] for name in core if name != "layer"])).values()

    def time(paths: Collection[str]) -> Estimates:
        return _shares(looks, lambda call: sum(call["layers"].get(path, 0.0) for path in paths))

    all_kinds = [
        LayerKind(group[0]["layer"], len(group), group[0], time(dict.fromkeys(core["layer"] for core in group)))
        for group in groups
    ]
    return sorted(all_kinds, key=lambda kind: -kind.share)


def measured_kinds(all_kinds: Sequence[LayerKind]) -> list[LayerKind]:
    """Return the kinds of layers that are measured by themselves; none if the model has no layer of its own for it."""
    chosen: list[LayerKind] = []
    whole = sum(kind.share for kind in all_kinds)
    for kind in all_kinds:
        if not kind.path or len(chosen) == MOST_LAYERS or sum(each.share for each in chosen) >= MEASURED_SHARE * whole:
            break
        chosen.append(kind)
    return chosen


def advised(
    before: Advice,
    looks: Sequence[Seen],
    table: pd.DataFrame,
    records: Sequence[Record],
    layers: Mapping[str, pd.DataFrame],
    settings: Sequence[str],
) -> Advice:
    """Return the whole answer.

    `table` and `records` are those of the model's run. `layers` has by path the table of a layer by itself. `settings`
    are all that were asked for, in their order.
    """
    rows: dict[str, dict[Any, Any]] = {str(row["implementation"]): row for row in table.to_dict("records")}
    by_name = grouped(records, lambda record: record.case.implementation)
    as_is = rows.get(AS_IS, {})
    gains = speedups(table, settings)
    by_path = {path: speedups(of_layer, settings) for path, of_layer in layers.items()}
    alternatives = (
        replace(
            _alternative(name, rows.get(name), by_name.get(name, []), looks[0]["settings"].get(name, {})),
            speedup=interval(gains[name], PAIR).exp() if name in gains else UNKNOWN,
            predicted=predicted(before.kinds, by_path, name),
            unpredicted=_unpredicted(layers, name),
        )
        for name in settings
    )
    is_slower = as_is.get("standing") == SLOWER
    recommendation = next(name for name, row in rows.items() if row["rank"] == 1) if is_slower else None
    return replace(
        before,
        alternatives=tuple(alternatives),
        as_is=as_is,
        recommendation=recommendation,
        chosen=rows.get(recommendation or AS_IS, {}),
        processes=len(by_name.get(AS_IS, [])),
    )


def _unpredicted(layers: Mapping[str, pd.DataFrame], name: str) -> str:
    """Return how the first layer ended that has no time with a setting, or as it is; empty if all have one."""
    for path, table in layers.items():
        for row in table[table["implementation"].isin([AS_IS, name])].to_dict("records"):
            if row["status"] != "ok":
                return f"{path} is {row['status']}: {row['detail']}"
    return ""


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


def predicted(all_kinds: Sequence[LayerKind], layers: Mapping[str, Mapping[str, Estimates]], name: str) -> Interval:
    """Return the gain that follows from the layers' shares and their own gains, with an interval from both.

    A model takes 1 - Σ s (1 - 1/k) of its time if layers with the share s become k times as fast. Layers that were not
    measured are taken to gain half as much as the others do together; the interval has both no gain and all of it.
    """
    chosen = measured_kinds(all_kinds)
    if not chosen or not all(name in layers.get(kind.path, {}) for kind in chosen):
        return UNKNOWN
    shares = joined(kind.time for kind in chosen)
    gains = joined(layers[kind.path][name] for kind in chosen)
    times = np.exp(-gains.value)
    rest = max(0.0, sum(kind.share for kind in all_kinds) - shares.value.sum())
    lost = 1 - float((shares.value * times).sum() / shares.value.sum())
    values = np.append(times, 1 - lost / 2)
    parts = Estimates(
        np.array([*shares.value, rest, *values]),
        np.array([*shares.error, 0.0, *(times * gains.error), abs(lost) / 4]),
        np.array([*shares.freedom, REST_FREEDOM, *gains.freedom, REST_FREEDOM]),
    )
    around = combined(np.array([*(values - 1), *shares.value, rest]), parts)
    return _gain(1 + (np.append(shares.value, rest) * (values - 1)).sum(), around)


def _gain(time: float, around: Estimates) -> Interval:
    """Return the gain of a model that takes this share of its time, with the error of an estimate."""
    of = interval(Estimates(np.asarray(time), around.error, around.freedom), PAIR)
    return Interval(1 / of.value, 1 / of.high, 1 / of.low if of.low > 0 else math.inf)


def disagrees(alternative: Alternative) -> bool:
    """Return whether the predicted and the measured gain differ beyond both intervals."""
    one, other = alternative.speedup, alternative.predicted
    return one.is_known and other.is_known and (one.high < other.low or other.high < one.low)


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
    """Yield how an observed call differs from a plain one, and which switches of the model stay as they are."""
    plain, observed = ({*looks[0][name]} for name in ("kernels", "observed_kernels"))
    if plain != observed:
        other, usual = (", ".join(sorted(each)) or "nothing" for each in (observed - plain, plain - observed))
        yield (
            f"while it is observed, the model runs {other} in place of {usual}: the layers, the share and what is "
            "predicted may be wrong; gains are measured without it"
        )
    for flag in looks[0].get("flags", ()):
        yield (
            f"{flag} is a switch of the library that no setting here changes; build the model with another value and "
            "call advise again"
        )


def _share(looks: Sequence[Seen], part_s: Callable[[Mapping[str, Any]], float]) -> Interval:
    """Return the share of the time in a part of the calls, without what no share can be."""
    share = interval(_shares(looks, part_s), PAIR)
    return Interval(*np.clip([share.value, share.low, share.high], 0.0, 1.0).tolist())


def _shares(looks: Sequence[Seen], part_s: Callable[[Mapping[str, Any]], float]) -> Estimates:
    return _over_processes([[part_s(call) / call["total_s"] for call in each["calls"]] for each in looks])


def _over_processes(values: Sequence[Sequence[float]]) -> Estimates:
    """Return the mean over processes of each process's median call; of one process it is that over its calls."""
    return mean([float(np.median(own)) for own in values] if len(values) > 1 else values[0])
