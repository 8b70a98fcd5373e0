"""The table of results from the records: one row per case."""

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from bench.analyse.rows import Row, grouped, known
from bench.analyse.standing import (
    Answer,
    Place,
    answer,
    behind,
    cost,
    is_to_use,
    places,
)
from bench.plan.case import CONTROL, Case, Point
from bench.plan.device import HOST
from bench.stats.contrasts import Common, Contrasts, Prior, Values, common, contrasts, own_errors, prior, values
from bench.stats.estimates import MEDIAN_EFFICIENCY, MOST_FACTOR, Array, Estimates, half_widths, t_quantile
from bench.store.journal import latest
from bench.store.metrics import combine, derive
from bench.store.record import SCHEMA_VERSION, STATUSES, Record, Samples
from bench.store.table import COLUMNS

FLAGGED_PER_S = 20
"""A sample with more involuntary context switches per second and thread is flagged. A switch may cost a millisecond, so
20 per second are the 2 % that a quick sweep aims at. An idle machine had 3 per second.

A sample with fewer switches than timings isn't flagged: its value is the least timing, and one is undisturbed."""

BUSY_SHARE = 0.25
"""A sample is also flagged if other processes kept more than this share of the cores that a run leaves free busy."""

DIED, ENOUGH = ("oom", "timeout", "crashed"), 2
"""If a process ends with one of these statuses after ENOUGH others were measured, the others still count."""

POOLED_ANEW = 1.05
"""The variances of a run are pooled again when the number of its replicates has grown by this factor."""


@dataclass(frozen=True)
class _PointSummary:
    """The rows of a point without the cells that need variances pooled over the run.

    `levels` has for each row the variance of the log medians of its processes, and its degrees of freedom.
    `effort_s` is the time spent on the point in seconds, `timed_s` the seconds in samples of each replicate, by its
    start time.
    """

    rows: Mapping[Case, dict[str, Any]]
    values: Values
    levels: Array  # [rows, 2]
    effort_s: float
    timed_s: Mapping[str, float]


class Summary:
    """The rows of a run, from the records of each of its `points`.

    The errors of a point use variances pooled over the whole run (`stats.contrasts.Prior`).
    `poolings` counts how often they were pooled; each time all errors change.
    """

    def __init__(self, baseline: str, points: Iterable[Iterable[Record]] = ()) -> None:
        self._baseline = baseline
        self._points: dict[Point, _PointSummary] = {}
        self._pooled = Prior(0.0, Common(1.0, 0.0, 0.0))
        self._level = Common(1.0, 0.0, 0.0)
        self._replicates = self._pooled_at = self.poolings = 0
        self._is_pooled = True
        for records in points:
            self.put(records)

    def __contains__(self, point: Point) -> bool:
        return point in self._points

    def __iter__(self) -> Iterator[Point]:
        return iter(self._points)

    def put(self, records: Iterable[Record]) -> None:
        """Set the records of a point, and replace earlier ones."""
        by_case = grouped(latest(records), lambda record: record.case)
        point = next(iter(by_case)).point
        cells_of = {case: {**row(case, own), "baseline": self._baseline} for case, own in by_case.items()}
        timed = {
            case.implementation: [record for record in by_case[case] if record.status == "ok"]
            for case, cells in cells_of.items()
            if cells["status"] == "ok"
        }
        levels = np.array([_level(timed.get(case.implementation, [])) for case in cells_of])
        before = self._points.get(point)
        after = _PointSummary(cells_of, values_of(timed), levels, *_seconds(by_case.values()))
        self._is_pooled = False
        self._replicates += after.values.logs.shape[1] - (before.values.logs.shape[1] if before else 0)
        self._points[point] = after

    def pool(self) -> None:
        """Pool the variances of all points, unless nothing is new."""
        if self._is_pooled:
            return
        points = [*self._points.values()]
        self._pooled = prior([each.values for each in points], (CONTROL, self._baseline))
        self._level = common(*np.concatenate([each.levels for each in points]).T)
        self._is_pooled, self._pooled_at = True, self._replicates
        self.poolings += 1

    def answer(self, point: Point, bound: float) -> Answer:
        """Return the answer at a point so far, with the candidates until its bound is at most `bound`."""
        if point not in self:
            return Answer()
        own = self._current(point)
        if not own.values.names:
            return Answer()
        costs = {case.implementation: cost(cells) for case, cells in own.rows.items()}
        return answer(self.contrasts(point), costs, bound, own.values.logs.shape[1])

    def contrasts(self, point: Point) -> Contrasts:
        """Return the contrasts of the implementations of a point, without the control."""
        return contrasts(self._current(point).values, self._pooled).without(CONTROL)

    def behind(self, point: Point) -> set[str]:
        """Return the implementations far behind in the first replicate of a point; never the baseline."""
        return behind(self._points[point].values, {self._baseline}) if point in self else set()

    def scatter(self, point: Point) -> float:
        """Return the variance from rounds in the latest replicate over the variance between processes, or 0."""
        latest = self._points[point].values.variances[:, -1:]
        return float(np.nanmedian(latest)) / (self._pooled.process_variance or math.inf) if latest.size else 0.0

    def measured_s(self) -> float:
        """Return the time in seconds spent on all points."""
        return sum(each.effort_s for each in self._points.values())

    def period(self) -> tuple[datetime, datetime] | None:
        """Return the start of the first replicate and the end of the last, estimated from starts and samples.

        None without records, or if their times can't be read.
        """
        took_s = defaultdict[str, float](float)
        for start, seconds in (item for each in self._points.values() for item in each.timed_s.items()):
            took_s[start] += seconds
        try:
            began = {datetime.fromisoformat(start): seconds for start, seconds in took_s.items()}
            return (min(began), max(start + timedelta(seconds=s) for start, s in began.items())) if began else None
        except (ValueError, TypeError):  # a journal that was written by hand
            return None

    def _current(self, point: Point) -> _PointSummary:
        """Return the summary of a point, and first pool the variances again if that is due."""
        if self._replicates > POOLED_ANEW * self._pooled_at:
            self.pool()
        return self._points[point]

    def rows(self, point: Point) -> list[Row]:
        """Return the rows of a point, with errors from all points so far."""
        own = self._current(point)
        variances, freedoms = self._level.moderate(*own.levels.T)
        variances = np.fmax(variances, own.levels.T[0])  # an interval covers the spread of its own processes
        cells_of = {
            case: {**cells, **(_latency_ends(cells, *level) if cells["status"] == "ok" else {})}
            for (case, cells), *level in zip(own.rows.items(), variances, freedoms, strict=True)
        }
        if own.values.names:
            of = contrasts(own.values, self._pooled)
            for case, cells in cells_of.items():
                if {case.implementation, self._baseline} <= {*of.names}:
                    cells.update(_ratio(of.speedup(case.implementation, self._baseline), self._pooled.factor))
            compared = of.without(CONTROL)
            for name, error in zip(compared.names, own_errors(compared).tolist(), strict=True):
                cells_of[Case(point, name)]["log_time_error"] = error
            for name, cells in _standings(compared, cells_of.values()).items():
                cells_of[Case(point, name)].update(cells)
        return [{name: known(cells.get(name)) for name in COLUMNS} for cells in cells_of.values()]

    def all_rows(self) -> list[Row]:
        """Return the rows of all points; the control has no rank, because it is no implementation."""
        return [cells for point in self for cells in self.rows(point)]


def row(case: Case, records: Sequence[Record]) -> dict[str, Any]:
    """Return the row of one case, with statistics over its processes but no cells that depend on other rows."""
    remark = ""
    *measured, last = records
    if last.status in DIED and len(measured) >= ENOUGH and all(record.status == "ok" for record in measured):
        records, remark = measured, f"{last.status} after {len(measured)} processes that succeeded: {last.detail}"
    worst = max(records, key=lambda record: STATUSES.index(record.status))
    cells = {
        **case.columns(),
        "status": worst.status,
        "detail": remark or _detail(worst, records),
        **(_time(records) if worst.status == "ok" else {}),
        "processes": len(records),
        **combine([record.metrics for record in records], is_ok=worst.status == "ok"),
        **vars(records[0].origin),
        "schema_version": SCHEMA_VERSION,
    }
    return {**cells, **derive(case, cells)}


def values_of(records: Mapping[str, Sequence[Record]]) -> Values:
    """Return the values of implementations that were measured in the same rounds, from records by name."""
    return values({name: rounds_of(own) for name, own in records.items()})


def rounds_of(records: Iterable[Record]) -> dict[tuple[int, int], dict[int, float]]:
    """Return the seconds of each round by replicate (number and seed); replicates without rounds are left out."""
    return {
        (record.process, record.seed or 0): dict(zip(record.samples.rounds, record.samples.values_s, strict=True))
        for record in records
        if record.samples.rounds
    }


def timed_s(record: Record) -> float:
    """Return the seconds that the samples of a record took."""
    return sum(map(sum, record.samples.timings_s)) * _calls_per_timing(record)


def _ratio(log: Estimates, factor: float) -> dict[str, Any]:
    """Return the cells of a speed-up; its error is stored without the control's widening factor."""
    value, half = float(log.value), float(half_widths(log))
    is_told = half <= math.log(MOST_FACTOR)
    return {
        "speedup": math.exp(value),
        "speedup_low": math.exp(value - half) if is_told else None,
        "speedup_high": math.exp(value + half) if is_told else None,
        "log_ratio_error": float(log.error) / factor,
        "log_ratio_freedom": float(log.freedom),
    }


def _latency_ends(cells: Mapping[str, Any], variance: float, freedom: float) -> dict[str, float]:
    """Return the interval of a latency: as for the mean of log medians, but wider because a median scatters more."""
    count = cells["processes"]
    if count < 2:
        return {}
    half = float(t_quantile(freedom)) * math.sqrt(variance / count) * (MEDIAN_EFFICIENCY if count > 2 else 1.0)
    if not half <= math.log(MOST_FACTOR):
        return {}
    latency_s = cells["latency_s"]
    return {"latency_low_s": latency_s * math.exp(-half), "latency_high_s": latency_s * math.exp(half)}


def _level(records: Sequence[Record]) -> tuple[float, float]:
    """Return the variance of the logarithms of the processes' medians, and its degrees of freedom."""
    logs = [math.log(np.median(record.samples.values_s)) for record in records]
    return (float(np.var(logs, ddof=1)), len(logs) - 1.0) if len(logs) > 1 else (math.nan, 0.0)


def _seconds(cases: Iterable[Sequence[Record]]) -> tuple[float, dict[str, float]]:
    """Return the seconds spent on a point, and the seconds in samples of each replicate, by its start time.

    The shortest time between two starts counts for each replicate, because the run may have been interrupted.
    """
    records = [record for own in cases for record in own]
    by_start = grouped(records, lambda record: record.origin.started_at)
    took_s = {start: sum(map(timed_s, own)) for start, own in by_start.items()}
    try:
        began = sorted(map(datetime.fromisoformat, {*took_s}))
    except ValueError:  # a journal that was written by hand
        began = []
    gaps_s = [(after - before).total_seconds() for before, after in itertools.pairwise(began)]
    least_s = sum(map(timed_s, records))
    return max(least_s, len({record.process for record in records}) * min(gaps_s, default=0.0)), took_s


def _standings(of: Contrasts, rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the cells with each implementation's rank, standing and slowdown at its point.

    Those that share no replicate with most others come last, without a slowdown, and so does the graph of a module.
    """
    by_name = {cells["implementation"]: cells for cells in rows}
    joined = _joined(of.only([*filter(is_to_use, of.names)]))
    ranked = places(joined, {name: cost(by_name[name]) for name in joined.names})
    alone = sorted((name for name in of.names if name not in ranked), key=lambda name: by_name[name]["latency_s"])
    last = {name: {"rank": rank} for rank, name in enumerate(alone, start=len(ranked) + 1)}
    return {name: _cells(place) for name, place in ranked.items()} | last


def _joined(of: Contrasts) -> Contrasts:
    """Return the contrasts of the largest group of implementations that a chain of shared replicates joins."""
    groups = [[of.names[at] for at in np.flatnonzero(row)] for row in ~np.isnan(of.difference)]
    return of.only(max(groups, key=len, default=[]))


def _cells(place: Place) -> dict[str, Any]:
    cells: dict[str, Any] = {"rank": place.rank, "standing": place.standing}
    if place.slowdown:
        ends = (place.slowdown.value, place.slowdown.low, place.slowdown.high)
        cells |= dict(zip(("slowdown", "slowdown_low", "slowdown_high"), ends, strict=True))
    return cells


def _detail(worst: Record, records: Sequence[Record]) -> str | None:
    if worst.status == "ok":
        return next((record.detail for record in records if record.detail), None)
    same = sum(record.status == worst.status for record in records)
    return f"in {same} of {len(records)} processes: {worst.detail}" if same < len(records) else worst.detail or None


def _time(records: Sequence[Record]) -> dict[str, Any]:
    values = [record.samples.values_s for record in records]
    count = sum(len(process) for process in values)
    disturbed = sum(sum(flagged(each.samples, each.case.point, _calls_per_timing(each))) for each in records)
    return {
        "latency_s": float(np.median([np.median(process) for process in values])),
        "latency_min_s": min(itertools.chain.from_iterable(values)),
        "rounds": count,
        "flagged_share": disturbed / count,
    }


def _calls_per_timing(record: Record) -> int:
    return record.metrics["calls_per_timing"] or 1


def flagged(samples: Samples, point: Point, calls: int = 1) -> Iterator[bool]:
    """Yield for each sample whether the host's other processes disturbed it; never with device timing.

    A timing of the samples is the mean of this many calls.
    """
    for timings, switches, share in zip(samples.timings_s, samples.switches, samples.others, strict=True):
        most = FLAGGED_PER_S * sum(timings) * calls * point.threads
        interrupted = switches >= len(timings) and switches > most
        yield point.timing == HOST and (interrupted or share > BUSY_SHARE)
