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
class Combined:
    """How the values of a case's processes are combined for its row, in words and as a function.

    The function takes the metric's name and the metrics of each process in order.
    """

    words: str
    of: Callable[[str, Sequence[Values]], Any]


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
    combined: Combined | None = None
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


def _compilations(processes: Sequence[Values], *, cached: bool) -> list[Values]:
    """Return the processes that read the compiled graph from the cache, or those that did not."""
    return [values for values in processes if values["compile_cached"] is cached]


FIRST = Combined("first", _first)
MEDIAN = Combined("median", _median)
LARGEST = Combined("largest", lambda name, all_: max(_measured(name, all_), default=None))
SMALLEST = Combined("smallest", lambda name, all_: min(_measured(name, all_), default=None))
EVERY = Combined("true if all are", lambda name, all_: all(values[name] for values in all_))
EACH_ONCE = Combined(
    "each once", lambda name, all_: tuple(dict.fromkeys(itertools.chain.from_iterable(_measured(name, all_))))
)
OF_WORST_ERROR = Combined("worst", _of_worst_error)
COLD = Combined("first", lambda _, all_: _first("compile_s", _compilations(all_, cached=False)))
WARM = Combined("median", lambda _, all_: _median("compile_s", _compilations(all_, cached=True)))

_TABLE = (
    Metric("point", kind=str, derived=lambda case, _: case.point.name, meaning="the point, as file names have it"),
    # time
    Metric("latency_s", unit=Unit.SECONDS,
        axis=VerticalAxis("latency", "Latency", "time per call", ("tokens", "heads", "channels", "keys", "padding"),
            "latency_low_s", "latency_high_s"),
        meaning="seconds per call: the median over processes of each process's median sample"),
    Metric("latency_low_s", unit=Unit.SECONDS, meaning="the lower end of its interval"),
    Metric("latency_high_s", unit=Unit.SECONDS, meaning="the upper end"),
    Metric("latency_min_s", unit=Unit.SECONDS, meaning="the fastest sample of all"),
    Metric("rounds", kind=int, unit=Unit.COUNT, meaning="samples of all processes together"),
    Metric("processes", kind=int, unit=Unit.COUNT, meaning="processes that measured the case"),
    Metric("calls_per_timing", kind=int, unit=Unit.COUNT, reported=True, only_ok=True, combined=MEDIAN,
        meaning="calls between two readings of the clock"),
    Metric("flagged_share", unit=Unit.SHARE,
        meaning="the share of disturbed samples: other work took the core more than 20 times a second during each "
        "timing, or kept more than a quarter of the cores that we leave free busy"),
    Metric("settled", kind=bool, reported=True, only_ok=True, combined=EVERY,
        meaning="whether warm-up reached a steady state"),
    Metric("host_s", unit=Unit.SECONDS, reported=True, only_ok=True, combined=MEDIAN,
        meaning="the host's time to submit a call; on a GPU with device timing"),
    Metric("event_s", unit=Unit.SECONDS, reported=True, only_ok=True, combined=MEDIAN,
        meaning="what two CUDA events with nothing between them show, which is part of each device timing"),
    # work
    Metric("real_tokens", kind=int, unit=Unit.COUNT,
        derived=lambda case, _: sum(case.point.items) if case.point.is_padded else None,
        meaning="the tokens of all items of a call, without padding; empty if all items have the same length"),
    Metric("padding", unit=Unit.SHARE, derived=lambda case, _: _padding(case.point),
        meaning="the share of padding if items are padded to the longest; empty if all have the same length"),
    Metric("flops", kind=int, reported=True, combined=FIRST,
        meaning="operations of the matrix products in a call, with a mask those of visible pairs; empty if unknown"),
    Metric("least_bytes", kind=int, unit=Unit.BYTES, reported=True, combined=FIRST,
        meaning="the bytes of input, weights and output, each moved once"),
    Metric("flops_per_s", unit=Unit.FLOPS, derived=roofline.flops_per_s,
        meaning="`flops` over `latency_s`"),
    Metric("roofline_share", unit=Unit.SHARE, derived=roofline.roofline_share,
        axis=VerticalAxis("roofline", "Share of the roofline", "share of the roofline", ()),
        meaning="the least time that `flops` and `least_bytes` take by the two ceilings below, over `latency_s`; empty "
        "above 1: a cache holds the bytes, or the ceilings were measured in a slower state"),
    Metric(roofline.CEILING_FLOPS, unit=Unit.FLOPS, reported=True, combined=LARGEST,
        meaning="the most that matrix products had reached on the device, with this dtype and these threads"),
    Metric(roofline.CEILING_BYTES, unit=Unit.BYTE_RATE, reported=True, combined=LARGEST,
        meaning="the most that a copy had written there"),
    Metric("energy_j", unit=Unit.JOULES, reported=True, only_ok=True, combined=MEDIAN,
        axis=VerticalAxis("energy", "Energy", "energy of a call", ("tokens", "keys")),
        meaning="joules per call of the GPU's board by NVML, idle power and other programs included, over calls "
        "without pauses after the rounds; empty without a counter, and in mode backward"),
    # ratio to the baseline
    Metric("baseline", kind=str, meaning="the implementation that `speedup` refers to"),
    Metric("speedup", unit=Unit.RATIO,
        axis=VerticalAxis("speedup", "Speed-up over {baseline}", "times as fast as {baseline}",
            ("tokens", "heads", "channels", "keys", "padding"), "speedup_low", "speedup_high", relative=True),
        meaning="the baseline's time over this one's, paired round by round in the same processes; above 1 is faster"),
    Metric("speedup_low", unit=Unit.RATIO, meaning="the lower end of its interval"),
    Metric("speedup_high", unit=Unit.RATIO, meaning="the upper end"),
    Metric("log_ratio_error",
        meaning="the standard error of the logarithm of `speedup`; the interval is wider if the control says so"),
    Metric("log_ratio_freedom", meaning="its degrees of freedom"),
    Metric("log_time_error",
        meaning="this row's part in the error of a ratio, whose square is about the sum of the squares of both parts"),
    # among the rows of the point
    Metric("rank", kind=int,
        meaning="the place among the ok rows of the point: first `fastest` or `named`, then `open`, then `slower`, "
        "each by `slowdown`"),
    Metric("standing", kind=str,
        meaning="`fastest`, `named`, `open` or `slower`, as below; empty if no other row is ok"),
    Metric("slowdown", unit=Unit.RATIO,
        meaning="the time relative to the fastest row of the point, paired round by round; empty if both share no "
        "replicate"),
    Metric("slowdown_low", unit=Unit.RATIO, meaning="the lower bound of `slowdown`"),
    Metric("slowdown_high", unit=Unit.RATIO, meaning="the upper bound: the most that choosing this row costs"),
    # memory
    Metric("memory_bytes", kind=int, unit=Unit.BYTES, derived=lambda _, row: _memory(row),
        axis=VerticalAxis("memory", "Peak memory", "peak memory of a call", ("tokens", "keys", "padding")),
        meaning="the peak memory of a call, and what is kept between calls: `peak_bytes` and `held_bytes`"),
    Metric("peak_bytes", kind=int, unit=Unit.BYTES, reported=True, combined=FIRST,
        meaning="the most that a call held at once beyond input and weights, by the events of torch's allocator; empty "
        "if a runtime has its own"),
    Metric("held_bytes", kind=int, unit=Unit.BYTES, reported=True, combined=FIRST,
        meaning="the tensors that the implementation keeps between calls, such as a buffer or a copy of a weight"),
    Metric("saved_bytes", kind=int, unit=Unit.BYTES, reported=True, combined=FIRST,
        meaning="the bytes that autograd keeps for the backward pass, in the modes that have one"),
    Metric("reserved_bytes", kind=int, unit=Unit.BYTES, reported=True, combined=FIRST,
        meaning="what a GPU's caching allocator reserved for a call"),
    Metric("device_used_bytes", kind=int, unit=Unit.BYTES, reported=True, combined=FIRST,
        meaning="by how much the used memory of a GPU grew over the first call: what the caching allocator reserved, "
        "and what bypasses it, such as kernels, graphs, and what cuBLAS and cuDNN keep"),
    # compilation
    Metric("compile_s", unit=Unit.SECONDS, reported=True, in_table=False,
        meaning="the seconds that a case needs to be compiled in a process: its first call, or the building of another "
        "runtime"),
    Metric("compile_cached", kind=bool, reported=True, in_table=False,
        meaning="whether that call found the whole graph in the run's cache"),
    Metric("compile_cold_s", unit=Unit.SECONDS, combined=COLD,
        meaning="the first call of a case in the run, which compiles, or the building of another runtime; kernels that "
        "an earlier case of the run compiled are found"),
    Metric("compile_warm_s", unit=Unit.SECONDS, combined=WARM,
        meaning="the same if the whole graph came from the run's cache, as in later processes"),
    Metric("graphs", kind=int, unit=Unit.COUNT, reported=True, combined=FIRST,
        meaning="graphs that torch.compile made of the call"),
    # truth
    Metric("kernels", kind=tuple, reported=True, combined=FIRST,
        meaning="the operators that did the work on a CPU (`CompiledFxGraph` for Inductor's), or the kernels on a GPU, "
        "in order; of another runtime what it reports, with its precision"),
    Metric("adapted_by", kind=str, reported=True, combined=FIRST,
        meaning="how the implementation got into a module of a package: by its `self.attend`, the switch of its "
        "library, `F.scaled_dot_product_attention`, or its `graph`, with the softmaxes that stay there; and what "
        "counts as its input and output"),
    Metric("error", reported=True, combined=OF_WORST_ERROR,
        meaning="the deviation from the reference, relative to the largest value, that came nearest to its tolerance"),
    Metric("tolerance", reported=True, combined=OF_WORST_ERROR, meaning="the largest that is accepted there"),
    # the GPU's state
    Metric("clock_low_hz", unit=Unit.HERTZ, reported=True, combined=SMALLEST,
        meaning="the lowest clock of the GPU's multiprocessors, read after each sample"),
    Metric("clock_high_hz", unit=Unit.HERTZ, reported=True, combined=LARGEST, meaning="the highest one"),
    Metric("power_w", unit=Unit.WATTS, reported=True, combined=LARGEST,
        meaning="the most that the GPU's board drew, read after each sample; newer GPUs say the average of the last "
        "second, pauses included"),
    Metric("temperature_c", unit=Unit.CELSIUS, reported=True, combined=LARGEST,
        meaning="the highest temperature of the GPU in degrees, read after each sample"),
    Metric("throttle", kind=tuple, reported=True, combined=EACH_ONCE,
        meaning="why the GPU's clock was reduced, read after each sample"),
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
        name: _cell(metric, metric.combined.of(name, processes))
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
