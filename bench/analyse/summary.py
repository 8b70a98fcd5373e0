"""The table of results from the records: one row per case."""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from bench.analyse.ranking import Place, ranked
from bench.plan.case import CONTROL, Case, Point
from bench.stats.replicates import Estimate, latency, paired_log_ratio, ratio, round_differences, standard_error
from bench.store.metrics import combine, derive
from bench.store.record import STATUSES, Record, latest
from bench.store.table import SCHEMA_VERSION, of_rows

FLAGGED_PER_S = 20
"""A sample is flagged if more involuntary context switches a second interrupt it. A switch may cost a millisecond, so
20 a second are the 2 % that a quick sweep aims at. A quiet machine had 3 a second.

It isn't flagged if it has fewer switches than timings: one timing is undisturbed, and its value is the least."""

BUSY_SHARE = 0.25
"""A sample is flagged too if other processes kept more than this share of the cores that we leave free busy."""


FULL_SPEED = 0.92
"""At this share of the highest known speed, or more, a sample was taken at full speed."""


def summarise(records: Iterable[Record], baseline: str) -> pd.DataFrame:
    """Return the table of results of the records, a row per case in the order of their first record."""
    return of_rows(rows(records, baseline))


def rows(records: Iterable[Record], baseline: str) -> list[dict[str, Any]]:
    """Return the rows of the table of results of the records, with the cells that have a value or None.

    The control has no rank: it is no implementation.
    """
    by_case: dict[Case, list[Record]] = {}
    for record in latest(records):
        by_case.setdefault(record.case, []).append(record)
    found = {case: row(case, group, by_case.get(Case(case.point, baseline), [])) for case, group in by_case.items()}
    places = _places(found, by_case)
    return [
        {**values, "baseline": baseline, **(_place(places[case]) if case in places else {})}
        for case, values in found.items()
    ]


def row(case: Case, records: Sequence[Record], baseline: Sequence[Record]) -> dict[str, Any]:
    """Return the row of one case: statistics over its processes, and the ratio to the baseline's processes.

    If the case was measured with the baseline, only those processes count: all columns are over the same ones.
    """
    worst = max(records, key=lambda record: STATUSES.index(record.status))
    if worst.status == "ok" and all(record.status == "ok" for record in baseline):
        paired = {record.process for record in baseline}
        records = [record for record in records if record.process in paired] or records
    values = {
        **case.columns(),
        "status": worst.status,
        "detail": _detail(worst, records),
        **(_time(records) | _ratio(records, baseline) if worst.status == "ok" else {}),
        "processes": len(records),
        **combine([record.metrics for record in records], is_ok=worst.status == "ok"),
        **vars(records[0].origin),
        "schema_version": SCHEMA_VERSION,
    }
    return {**values, **derive(case, values)}


def _places(rows: Mapping[Case, Mapping[str, Any]], records: Mapping[Case, Sequence[Record]]) -> dict[Case, Place]:
    """Return the place of each case that is ok among those of its point, without the control."""
    points: dict[Point, list[str]] = {}
    for case, values in rows.items():
        if values["status"] == "ok" and case.implementation != CONTROL:
            points.setdefault(case.point, []).append(case.implementation)
    return {
        Case(point, name): place
        for point, names in points.items()
        for name, place in _ranked(
            {name: rows[Case(point, name)] for name in names}, {name: records[Case(point, name)] for name in names}
        ).items()
    }


def _ranked(rows: Mapping[str, Mapping[str, Any]], records: Mapping[str, Sequence[Record]]) -> dict[str, Place]:
    pairs = {
        (one, other): log_ratios(records[one], records[other])
        for one, other in itertools.combinations_with_replacement(records, 2)
    }
    paired = all("speedup" in values for values in rows.values())
    times = {name: 1 / values["speedup"] if paired else values["latency_s"] for name, values in rows.items()}
    return ranked(list(rows), pairs, {name: math.log(time) for name, time in times.items()})


def _place(place: Place) -> dict[str, Any]:
    cells = {"rank": place.rank, "standing": place.standing, "further_processes": place.further_processes}
    return cells | (_interval("relative", place.relative) if place.relative else {})


def _interval(name: str, of: Estimate) -> dict[str, float]:
    return {name: of.value, f"{name}_low": of.low, f"{name}_high": of.high}


def _detail(worst: Record, records: Sequence[Record]) -> str | None:
    if worst.status == "ok":
        return next((record.detail for record in records if record.detail), None)
    same = sum(record.status == worst.status for record in records)
    return f"in {same} of {len(records)} processes: {worst.detail}" if same < len(records) else worst.detail or None


def _time(records: Sequence[Record]) -> dict[str, Any]:
    values = [record.samples.values_s for record in records]
    medians = latency([float(np.median(process)) for process in values])
    count = sum(len(process) for process in values)
    calls = sum(len(timings) * _calls_per_timing(record) for record in records for timings in record.samples.timings_s)
    product = _relative_speeds(records, "product_s", "products_per_s")
    copy = _relative_speeds(records, "copy_s", "copies_per_s")
    disturbed = sum(sum(flagged(record)) for record in records)
    return {
        "latency_s": medians.value,
        "latency_low_s": medians.low,
        "latency_high_s": medians.high,
        "latency_min_s": min(itertools.chain.from_iterable(values)),
        "rounds": count,
        "flagged_share": disturbed / count,
        "compute_speed": float(np.median(product)) if product else None,
        "memory_speed": float(np.median(copy)) if copy else None,
        "full_speed_share": float(np.mean(np.array(product) >= FULL_SPEED)) if product else None,
        "page_faults": sum(sum(record.samples.faults) for record in records) / calls,
        "slow_start": _slow_start(values),
    }


def _slow_start(processes: Sequence[Sequence[float]]) -> float | None:
    """Return how much longer the first quarter of samples took than the others, at least; None if it is unknown.

    That is the lower end of the 95 % interval over processes, 0 if it is lower.
    """
    parts = [(values[: math.ceil(len(values) / 4)], values[math.ceil(len(values) / 4) :]) for values in processes]
    if len(parts) < 2 or not all(rest for _, rest in parts):
        return None
    return max(0.0, ratio([math.log(np.median(first) / np.median(rest)) for first, rest in parts]).low - 1)


def _relative_speeds(records: Sequence[Record], column: str, best: str) -> list[float]:
    """Return the machine's speed around each sample over the highest that the records know; empty without a probe."""
    highest = max((record.metrics[best] for record in records if record.metrics[best]), default=None)
    if highest is None:
        return []
    return [1 / seconds / highest for record in records for seconds in getattr(record.samples, column)]


def _calls_per_timing(record: Record) -> int:
    return record.metrics["calls_per_timing"] or 1


def flagged(record: Record) -> Iterator[bool]:
    """Yield of each sample whether it was disturbed; a GPU's timing isn't disturbed by switches of the host."""
    samples, on_host = record.samples, record.case.point.timing == "host"
    others = samples.others or (0.0,) * len(samples.rounds)
    for timings, switches, share in zip(samples.timings_s, samples.switches, others, strict=True):
        seconds = sum(timings) * _calls_per_timing(record)
        interrupted = switches >= len(timings) and switches > FLAGGED_PER_S * seconds
        yield (on_host and interrupted) or share > BUSY_SHARE


def log_ratios(records: Sequence[Record], baseline: Sequence[Record]) -> list[float]:
    """Return the log ratio to the baseline in each process that measured both, in the records' order.

    There are none if a record of the baseline is not ok.
    """
    if any(record.status != "ok" for record in baseline):
        return []
    base = {record.process: record.samples for record in baseline}
    logs = [
        paired_log_ratio(record.samples.values_s, record.samples.rounds, samples.values_s, samples.rounds)
        for record in records
        if (samples := base.get(record.process)) is not None
    ]
    return [value for value in logs if not math.isnan(value)]


def round_errors(records: Sequence[Record], baseline: Sequence[Record]) -> list[float]:
    """Return the standard error that rounds give the log ratio of each process that measured both."""
    base = {record.process: record.samples for record in baseline}
    return [
        standard_error(round_differences(own.values_s, own.rounds, other.values_s, other.rounds))
        for record in records
        if (own := record.samples).rounds and (other := base.get(record.process)) is not None
    ]


def _ratio(records: Sequence[Record], baseline: Sequence[Record]) -> dict[str, Any]:
    logs = log_ratios(records, baseline)
    if not logs:
        return {}
    speedup = ratio(logs)
    return {**_interval("speedup", speedup), "log_ratio_sd": speedup.sd}
