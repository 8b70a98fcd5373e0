"""The metrics: the facts about a case besides its point and its status.

This table determines the fields that workers report and the journal keeps, the columns of tables and their types, how
a case's processes are combined, the pictures and their axes, and the table in results/README.md.
"""

import itertools
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from enum import Enum
from typing import Any

from bench.plan import lengths
from bench.plan.case import Case, Point
from bench.store import roofline

Values = Mapping[str, Any]
"""Metrics by name, of one process or one row; None or an empty tuple if not measured."""

Combine = Callable[[str, Sequence[Values]], Any]
"""Returns the value of a row for a metric's name and the metrics of each process in their order."""


class Unit(Enum):
    """The unit of a metric; it determines how values are printed, and the ticks of an axis."""

    NONE = ""
    SECONDS = "s"
    BYTES = "B"
    JOULES = "J"
    HERTZ = "Hz"
    WATTS = "W"
    CELSIUS = "°C"
    FLOPS = "FLOP/s"
    BYTE_RATE = "B/s"
    RATIO = "ratio"
    SHARE = "share"
    COUNT = "count"


@dataclass(frozen=True)
class VerticalAxis:
    """The vertical axis of pictures of a metric.

    `name` is the prefix of their file names. `over` names the horizontal axes.
    `low` and `high` name the metrics with the ends of its interval; empty if it has none.
    If it is `relative`, values are ratios to the baseline, which is 1; labels and titles may contain `{baseline}`.
    """

    name: str
    title: str
    label: str
    over: tuple[str, ...]
    low: str = ""
    high: str = ""
    relative: bool = False


@dataclass(frozen=True)
class Metric:
    """One metric of a case.

    `kind` is the type of its values: float, int, bool, str, or tuple for several texts.
    Workers send a `reported` metric, and the journal keeps it; a line without a value leaves it out.
    Tables have a column for each metric that is `in_table`; an `only_ok` metric is empty unless the case is ok.
    `combined` computes the row's value from the processes, `derived` from the case and the row's other cells.
    A metric that isn't reported, combined or derived is a statistic, which `bench.analyse.summary` computes.
    """

    name: str
    _: KW_ONLY
    meaning: str
    kind: type = float
    unit: Unit = Unit.NONE
    reported: bool = False
    in_table: bool = True
    only_ok: bool = False
    combined: Combine | None = None
    derived: Callable[[Case, Values], Any] | None = None
    axis: VerticalAxis | None = None

    @property
    def empty(self) -> Any:
        """The value of a metric that was not measured."""
        return () if self.kind is tuple else None


def _memory(row: Values) -> Any:
    return None if row["peak_bytes"] is None else row["peak_bytes"] + (row["held_bytes"] or 0)


def _padding(point: Point) -> float | None:
    return lengths.padding(point.lengths, point.batch, point.num_tokens) if point.is_padded else None


def _measured(name: str, processes: Sequence[Values]) -> list[Any]:
    return [values[name] for values in processes if values[name] not in (None, ())]


def _first(name: str, processes: Sequence[Values]) -> Any:
    return next(iter(_measured(name, processes)), None)


def _median(name: str, processes: Sequence[Values]) -> Any:
    values = _measured(name, processes)
    return statistics.median(values) if values else None


def _of_worst_error(name: str, processes: Sequence[Values]) -> Any:
    judged = [values for values in processes if values["error"] is not None]
    if not judged:
        return _first(name, processes)
    return max(judged, key=lambda values: values["error"] / (values["tolerance"] or 1.0))[name]


def _largest(name: str, processes: Sequence[Values]) -> Any:
    return max(_measured(name, processes), default=None)


def _smallest(name: str, processes: Sequence[Values]) -> Any:
    return min(_measured(name, processes), default=None)


def _all(name: str, processes: Sequence[Values]) -> bool:
    return all(values[name] for values in processes)


def _each_once(name: str, processes: Sequence[Values]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(itertools.chain.from_iterable(_measured(name, processes))))


def _cold(_: str, processes: Sequence[Values]) -> Any:
    return _first("compile_s", [values for values in processes if values["compile_cached"] is False])


_TABLE = (
    Metric("point", kind=str, derived=lambda case, _: case.point.name, meaning="point as in file names"),
    # time
    Metric("latency_s", unit=Unit.SECONDS,
        axis=VerticalAxis("latency", "Latency", "time per call", ("tokens", "heads", "channels", "keys", "padding"),
            "latency_low_s", "latency_high_s"),
        meaning="time per call: median over processes of their median samples"),
    Metric("latency_low_s", unit=Unit.SECONDS, meaning="ends of the interval of `latency_s`"),
    Metric("latency_high_s", unit=Unit.SECONDS, meaning="ends of the interval of `latency_s`"),
    Metric("latency_min_s", unit=Unit.SECONDS, meaning="fastest sample"),
    Metric("rounds", kind=int, unit=Unit.COUNT, meaning="samples in all processes"),
    Metric("processes", kind=int, unit=Unit.COUNT, meaning="processes that measured the case"),
    Metric("calls_per_timing", kind=int, unit=Unit.COUNT, reported=True, only_ok=True, combined=_median,
        meaning="calls between two clock readings"),
    Metric("flagged_share", unit=Unit.SHARE,
        meaning="share of disturbed samples: over 20 involuntary context switches a second and thread, or other "
        "processes used over a quarter of the free cores"),
    Metric("settled", kind=bool, reported=True, only_ok=True, combined=_all,
        meaning="whether warm-up reached a steady state"),
    Metric("host_s", unit=Unit.SECONDS, reported=True, only_ok=True, combined=_median,
        meaning="host time to submit a call to a GPU"),
    Metric("event_s", unit=Unit.SECONDS, reported=True, only_ok=True, combined=_median,
        meaning="time between two CUDA events in a row, part of each device timing"),
    # work
    Metric("padding", unit=Unit.SHARE, derived=lambda case, _: _padding(case.point),
        meaning="share of padding if items are padded to the longest; empty for equal lengths"),
    Metric("flops", kind=int, reported=True, combined=_first,
        meaning="operations of the matrix products in a call, unmasked pairs only"),
    Metric("least_bytes", kind=int, unit=Unit.BYTES, reported=True, combined=_first,
        meaning="bytes of input, weights and output, each moved once"),
    Metric("flops_per_s", unit=Unit.FLOPS, derived=roofline.flops_per_s,
        meaning="`flops` / `latency_s`"),
    Metric("roofline_share", unit=Unit.SHARE, derived=roofline.roofline_share,
        axis=VerticalAxis("roofline", "Share of the roofline", "share of the roofline", ()),
        meaning="least time by both ceilings / `latency_s`; empty above 1"),
    Metric(roofline.CEILING_FLOPS, unit=Unit.FLOPS, reported=True, combined=_largest,
        meaning="highest measured rate of matrix products, with this dtype and threads"),
    Metric(roofline.CEILING_BYTES, unit=Unit.BYTE_RATE, reported=True, combined=_largest,
        meaning="highest measured rate of writes by a copy"),
    Metric("energy_j", unit=Unit.JOULES, reported=True, only_ok=True, combined=_median,
        axis=VerticalAxis("energy", "Energy", "energy of a call", ("tokens", "keys")),
        meaning="energy per call of the GPU's board (NVML), with idle power and other programs"),
    # ratio to the baseline
    Metric("baseline", kind=str, meaning="implementation that `speedup` refers to"),
    Metric("speedup", unit=Unit.RATIO,
        axis=VerticalAxis("speedup", "Speed-up over {baseline}", "times as fast as {baseline}",
            ("tokens", "heads", "channels", "keys", "padding"), "speedup_low", "speedup_high", relative=True),
        meaning="baseline time / this time, paired round by round; above 1 is faster"),
    Metric("speedup_low", unit=Unit.RATIO, meaning="ends of the interval of `speedup`"),
    Metric("speedup_high", unit=Unit.RATIO, meaning="ends of the interval of `speedup`"),
    Metric("log_ratio_error",
        meaning="standard error of log `speedup`, and its degrees of freedom"),
    Metric("log_ratio_freedom", meaning="standard error of log `speedup`, and its degrees of freedom"),
    Metric("log_time_error",
        meaning="this row's part of a ratio's standard error; two rows add in quadrature, nearly"),
    # among the rows of the point
    Metric("rank", kind=int,
        meaning="place among the ok rows of the point, by `standing`, then `slowdown`"),
    Metric("standing", kind=str,
        meaning="`fastest`, `named`, `open` or `slower`; empty if no other row is ok"),
    Metric("slowdown", unit=Unit.RATIO,
        meaning="time / time of the fastest row of the point; empty if they share no replicate"),
    Metric("slowdown_low", unit=Unit.RATIO, meaning="lower bound of `slowdown`"),
    Metric("slowdown_high", unit=Unit.RATIO, meaning="upper bound of `slowdown`: the most this row can cost"),
    # memory
    Metric("memory_bytes", kind=int, unit=Unit.BYTES, derived=lambda _, row: _memory(row),
        axis=VerticalAxis("memory", "Peak memory", "peak memory of a call", ("tokens", "keys", "padding")),
        meaning="peak memory of a call, and memory kept between calls"),
    Metric("peak_bytes", kind=int, unit=Unit.BYTES, reported=True, combined=_first,
        meaning="peak memory of a call beyond input and weights, by torch's allocator; empty for runtimes with "
        "their own"),
    Metric("held_bytes", kind=int, unit=Unit.BYTES, reported=True, combined=_first,
        meaning="tensors kept between calls, such as a copy of a weight"),
    Metric("saved_bytes", kind=int, unit=Unit.BYTES, reported=True, combined=_first,
        meaning="memory that autograd keeps for the backward pass beyond inputs and weights"),
    # compilation
    Metric("compile_s", unit=Unit.SECONDS, reported=True, in_table=False,
        meaning="the seconds that a case needs to be compiled in a process: its first call, or the building of another "
        "runtime"),
    Metric("compile_cached", kind=bool, reported=True, in_table=False,
        meaning="whether that call found the whole graph in the run's cache"),
    Metric("compile_cold_s", unit=Unit.SECONDS, combined=_cold,
        meaning="time of the first call of a compiled case, or to build another runtime"),
    Metric("graphs", kind=int, unit=Unit.COUNT, reported=True, combined=_first,
        meaning="graphs that torch.compile made of the call"),
    # truth
    Metric("kernels", kind=tuple, reported=True, combined=_first,
        meaning="CPU operators (`CompiledFxGraph` is Inductor's) or GPU kernels that ran, in order"),
    Metric("adapted_by", kind=str, reported=True, combined=_first,
        meaning="what was replaced in a module: `self.attend`, its library's switch, "
        "`F.scaled_dot_product_attention` or its `graph`"),
    Metric("error", reported=True, combined=_of_worst_error,
        meaning="largest deviation from the reference / its largest value"),
    Metric("tolerance", reported=True, combined=_of_worst_error, meaning="the largest `error` that is accepted"),
    # the GPU's state
    Metric("clock_low_hz", unit=Unit.HERTZ, reported=True, combined=_smallest,
        meaning="lowest and highest clock of the GPU's multiprocessors"),
    Metric("clock_high_hz", unit=Unit.HERTZ, reported=True, combined=_largest,
        meaning="lowest and highest clock of the GPU's multiprocessors"),
    Metric("power_w", unit=Unit.WATTS, reported=True, combined=_largest,
        meaning="highest power of the GPU's board"),
    Metric("temperature_c", unit=Unit.CELSIUS, reported=True, combined=_largest,
        meaning="highest temperature of the GPU"),
    Metric("throttle", kind=tuple, reported=True, combined=_each_once,
        meaning="why the GPU reduced its clock"),
)  # fmt: skip

METRICS: Mapping[str, Metric] = {metric.name: metric for metric in _TABLE}
"""All metrics by name."""

REPORTED: Mapping[str, Metric] = {name: metric for name, metric in METRICS.items() if metric.reported}
"""The metrics that a worker may report and that a journal's line holds."""

COLUMNS: Mapping[str, Metric] = {name: metric for name, metric in METRICS.items() if metric.in_table}
"""The metrics with a column in tables; `bench.store.table` says which are in results.csv."""


def combine(processes: Sequence[Values], *, is_ok: bool) -> dict[str, Any]:
    """Return the cells of a row that combine the reports of the case's processes."""
    return {
        name: _cell(metric, metric.combined(name, processes))
        for name, metric in COLUMNS.items()
        if metric.combined and (is_ok or not metric.only_ok)
    }


def derive(case: Case, row: Values) -> dict[str, Any]:
    """Return the cells of a row that are derived from its case and its other cells."""
    return {name: metric.derived(case, row) for name, metric in COLUMNS.items() if metric.derived}


def _cell(metric: Metric, value: Any) -> Any:
    """Return a value as a table cell; several texts are joined with semicolons."""
    if metric.kind is tuple:
        return ";".join(value or ()) or None
    return metric.kind(value) if value is not None else None
