"""What attention is worth in a model: its share of the time, and each setting's gain, predicted and measured."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from bench.analyse.series import log_speedups
from bench.analyse.standing import SLOWER
from bench.plan.case import AS_IS, Point
from bench.stats.estimates import UNKNOWN, Estimates, Interval, combined, intervals, joined, mean
from bench.store.look import Seen
from bench.store.record import Record

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
class Kind:
    """Layers of a model that are alike: one path for all, their number, and what is known of a core in them."""

    path: str
    count: int
    core: Mapping[str, Any]
    share: float
    """The share of the time that all of them take."""

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


@dataclass(frozen=True)
class Advice:
    """The answer for a model at a point.

    `share` is that of the time in what settings replace: attention cores, or the whole layers if one operator computes
    a whole layer. `core_share` and `layer_share` are those of cores and of layers. `objections` say where what was
    observed differs from a plain call. `recommendation` is the setting to use, None if none is shown to be faster than
    the model as it is.
    """

    point: Point
    share: Interval
    core_share: Interval
    layer_share: Interval
    kinds: tuple[Kind, ...]
    library: str
    call_s: float
    objections: tuple[str, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    as_is: Mapping[Any, Any] = field(default_factory=dict)
    recommendation: str | None = None
    processes: int = 0
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
    core_share, layer_share = (_as_share(_interval(_share(looks, name))) for name in ("core_s", "layers"))
    found = tuple(kinds(looks))
    share = layer_share if any(kind.is_whole for kind in found) else core_share
    call_s = float(np.median([call["plain_s"] for each in looks for call in each["calls"]]))
    objections = tuple(_objections(looks))
    return Advice(
        point,
        share,
        core_share,
        layer_share,
        found,
        str(looks[0]["library"]),
        call_s,
        objections,
        rewritten=_rewritten(looks, found),
    )


def _rewritten(looks: Sequence[Seen], found: Sequence[Kind]) -> Interval:
    """Return the gain of a fused core in a model that can't be switched to one, unknown if not all cores are plain."""
    is_switched = looks[0]["settings"].get("sdpa", {}).get("status") in ("ok", "same")
    if is_switched or not all(kind.core.get("is_plain") for kind in found):
        return UNKNOWN
    logs: list[list[float]] = []
    for each in looks:
        medians = [np.median(each["written"][kind.path], axis=0) * kind.count for kind in found]
        kept = sum(fused for _, fused in medians) / sum(written for written, _ in medians)
        shares = [call["core_s"] / call["total_s"] for call in each["calls"]]
        logs.append([-math.log(1 - min(share, MOST_SHARE) * (1 - kept)) for share in shares])
    return _interval(_over_processes(logs)).exp()


def kinds(looks: Sequence[Seen]) -> list[Kind]:
    """Return the distinct layers of a model, those that take the most time first."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for core in looks[0]["cores"]:
        key = repr([value for name, value in core.items() if name != "layer"])
        groups.setdefault(key, []).append(core)
    found = [
        Kind(
            path=group[0]["layer"],
            count=len(group),
            core=group[0],
            share=float(_shares_of(looks, [core["layer"] for core in group]).value),
        )
        for group in groups.values()
    ]
    return sorted(found, key=lambda kind: -kind.share)


def measured_kinds(found: Sequence[Kind]) -> list[Kind]:
    """Return the kinds of layers that are measured by themselves; none if the model has no layer of its own for it."""
    chosen: list[Kind] = []
    whole = sum(kind.share for kind in found)
    for kind in found:
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
    by_name: dict[str, list[Record]] = {}
    for record in records:
        by_name.setdefault(record.case.implementation, []).append(record)
    base, as_is = by_name.get(AS_IS, []), rows.get(AS_IS, {})
    gained = speedups(table, settings)
    gains = dict(zip(gained, (each.exp() for each in intervals(joined(gained.values()))), strict=True))
    found = looks[0]["settings"]
    alternatives = tuple(
        _alternative(name, rows.get(name), by_name.get(name, []), found.get(name, {}), gains.get(name))
        for name in settings
    )
    by_path = {path: speedups(rows_of, settings) for path, rows_of in layers.items()}
    alternatives = tuple(
        replace(each, predicted=predicted(looks, before.kinds, by_path, each.name)) for each in alternatives
    )
    return replace(
        before,
        alternatives=alternatives,
        as_is=as_is,
        recommendation=next(name for name, row in rows.items() if row["rank"] == 1)
        if as_is.get("standing") == SLOWER
        else None,
        processes=len(base),
    )


def speedups(table: pd.DataFrame, names: Sequence[str]) -> dict[str, Estimates]:
    """Return the log speed-ups of those of the implementations that have one."""
    known = table[table["speedup"].notna()].set_index("implementation")
    of = log_speedups(known.astype(object).where(known.notna(), None).to_dict("records"))  # type: ignore[arg-type]
    ends = zip(of.value.tolist(), of.error.tolist(), of.freedom.tolist(), strict=True)
    found = {str(name): Estimates(*map(np.asarray, each)) for name, each in zip(known.index, ends, strict=True)}
    return {name: found[name] for name in names if name in found}


def predicted(
    looks: Sequence[Seen], found: Sequence[Kind], layers: Mapping[str, Mapping[str, Estimates]], name: str
) -> Interval:
    """Return the gain that follows from the layers' shares and their own gains, with an interval from both.

    A model takes 1 - Σ s (1 - 1/k) of its time if layers with the share s become k times as fast. Layers that were not
    measured are taken to gain half as much as the others do together; the interval has both no gain and all of it.
    """
    chosen = [kind for kind in measured_kinds(found) if name in layers.get(kind.path, {})]
    if not chosen or len(chosen) < len(measured_kinds(found)):
        return UNKNOWN
    shares = [_shares_of(looks, _paths(looks, kind)) for kind in chosen]
    gains = joined(layers[kind.path][name] for kind in chosen)
    times = np.exp(-gains.value)
    held = np.array([float(share.value) for share in shares])
    rest = max(0.0, sum(kind.share for kind in found) - held.sum())
    lost = 1 - float((held * times).sum() / held.sum())
    values = np.append(times, 1 - lost / 2)
    parts = Estimates(
        np.array([*held, rest, *values]),
        np.array([*(share.error for share in shares), 0.0, *(times * gains.error), abs(lost) / 4]),
        np.array([*(share.freedom for share in shares), REST_FREEDOM, *gains.freedom, REST_FREEDOM]),
    )
    weights = np.array([*(values - 1), *held, rest])
    around = combined(weights[None, :], parts)
    value = 1 + float((np.append(held, rest) * (values - 1)).sum())
    time = _interval(Estimates(np.array(value), around.error[0], around.freedom[0]))
    return Interval(1 / time.value, 1 / time.high, 1 / time.low if time.low > 0 else math.inf)


def disagrees(alternative: Alternative) -> bool:
    """Return whether the predicted and the measured gain differ beyond both intervals."""
    one, other = alternative.speedup, alternative.predicted
    return one.is_known and other.is_known and (one.high < other.low or other.high < one.low)


def _alternative(
    name: str,
    row: Mapping[Any, Any] | None,
    records: Sequence[Record],
    found: Mapping[str, str],
    gain: Interval | None,
) -> Alternative:
    """Return an alternative by its row of results, or by what the look says of a setting that was not measured."""
    if row is None:
        return Alternative(name, found.get("status", "skipped"), found.get("detail", ""))
    return Alternative(
        name,
        str(row["status"]),
        "" if pd.isna(row["detail"]) else str(row["detail"]),
        speedup=gain or UNKNOWN,
        kernels=next((tuple(record.metrics["kernels"]) for record in records if record.metrics["kernels"]), ()),
        latency_s=_number(row["latency_s"]),
        peak_bytes=_number(row["peak_bytes"]),
        error=_number(row["error"]),
        compile_s=_number(row["compile_cold_s"]),
        slowdown_high=_number(row["slowdown_high"]),
    )


def _number(value: Any) -> float:
    return math.nan if pd.isna(value) else float(value)


def _objections(looks: Sequence[Seen]) -> list[str]:
    """Return how an observed call differs from a plain one, empty if it doesn't."""
    plain, observed = ({*looks[0][name]} for name in ("kernels", "observed_kernels"))
    differing = sorted(plain ^ observed)
    return [f"a plain call and an observed one run other kernels: {', '.join(differing)}"] if differing else []


def _share(looks: Sequence[Seen], name: str) -> Estimates:
    """Return the share of the time in cores or in all layers, over processes."""

    def of(call: Mapping[str, Any]) -> float:
        part = call[name] if name == "core_s" else sum(call[name].values())
        return float(part / call["total_s"])

    return _over_processes([[of(call) for call in each["calls"]] for each in looks])


def _as_share(of: Interval) -> Interval:
    """Return an interval without what no share can be."""
    return Interval(*(end if math.isnan(end) else min(max(end, 0.0), 1.0) for end in (of.value, of.low, of.high)))


def _shares_of(looks: Sequence[Seen], paths: Sequence[str]) -> Estimates:
    """Return the share of the time in the layers at these paths, over processes."""

    def of(call: Mapping[str, Any]) -> float:
        return float(sum(call["layers"].get(path, 0.0) for path in dict.fromkeys(paths)) / call["total_s"])

    return _over_processes([[of(call) for call in each["calls"]] for each in looks])


def _paths(looks: Sequence[Seen], kind: Kind) -> list[str]:
    same = {name: value for name, value in kind.core.items() if name != "layer"}
    return [core["layer"] for core in looks[0]["cores"] if all(core[name] == value for name, value in same.items())]


def _over_processes(shares: Sequence[Sequence[float]]) -> Estimates:
    """Return the mean over processes of each process's median call; of one process it is that over its calls."""
    values = [float(np.median(own)) for own in shares] if len(shares) > 1 else [*shares[0]]
    return mean(values)


def _interval(of: Estimates) -> Interval:
    return intervals(joined([of]))[0]
