"""The metrics: what is known of a case beside its point and its outcome, each declared here and nowhere else.

From this table follow the fields that a worker may report and the journal keeps, the columns of results.csv with their
types, how the processes of a case are combined, the columns in the terminal, the pictures with their axes, and the
table in results/README.md.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from bench.plan.case import Case
from bench.store import roofline

Values = Mapping[str, Any]
"""Metrics by name: those of one process, or the cells of a row. What was not measured is None, or an empty tuple."""


class Unit(Enum):
    """The unit of a metric; it decides how a value is written for people, and where the ticks of an axis stand."""

    NONE = ""
    SECONDS = "s"
    BYTES = "B"
    JOULES = "J"
    HERTZ = "Hz"
    FLOPS = "FLOP/s"
    BYTE_RATE = "B/s"
    RATIO = "ratio"
    SHARE = "share"
    COUNT = "count"


@dataclass(frozen=True)
class Combined:
    """How the values of a case's processes become the value of its row, in words and as a function.

    The function gets the metric's name and the metrics of each process, in the order in which they were measured.
    """

    words: str
    of: Callable[[str, Sequence[Values]], Any]


@dataclass(frozen=True)
class Heading:
    """A column of the table in the terminal.

    Columns stand in the order of `place`. The highest `rank` leaves a narrow terminal first; 0 never leaves it.
    """

    text: str
    place: int
    rank: int


@dataclass(frozen=True)
class Axis:
    """The vertical axis of pictures of a metric.

    `name` begins their file names. `over` names the axes against which the metric is drawn.
    `low` and `high` name the metrics that are the ends of its interval; empty if it has none.
    If it is `relative`, values are ratios to the baseline, which is 1; labels and titles may name it as `{baseline}`.
    """

    name: str
    title: str
    label: str
    over: tuple[str, ...]
    low: str = ""
    high: str = ""
    relative: bool = False
    by_allocator: bool = False


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One metric of a case.

    `kind` is the type of its values: float, int, bool, str, or tuple for several texts.
    If it is `reported`, workers may report it, and each line of the journal has it; a line from before the metric was
    declared doesn't. If it is not `in_table`, results.csv has no column for it.
    `combined` says how the row's value follows from what processes reported, `derived` how it follows from the case and
    the other cells of the row. A metric with neither is a statistic of the timings: `bench.analyse.summary` has it.
    A metric that is `only_ok` has no value in the row of a case that ended otherwise.
    """

    name: str
    meaning: str
    kind: type = float
    unit: Unit = Unit.NONE
    reported: bool = False
    in_table: bool = True
    only_ok: bool = False
    combined: Combined | None = None
    derived: Callable[[Case, Values], Any] | None = None
    heading: Heading | None = None
    axis: Axis | None = None

    @property
    def empty(self) -> Any:
        """What stands for a value that was not measured."""
        return () if self.kind is tuple else None


def _known(name: str, processes: Sequence[Values]) -> list[Any]:
    return [values[name] for values in processes if values[name] not in (None, ())]


def _first(name: str, processes: Sequence[Values]) -> Any:
    return next(iter(_known(name, processes)), None)


def _median(name: str, processes: Sequence[Values]) -> Any:
    known = _known(name, processes)
    return statistics.median(known) if known else None


def _largest(name: str, processes: Sequence[Values]) -> Any:
    return max(_known(name, processes), default=None)


def _every(name: str, processes: Sequence[Values]) -> bool:
    return all(values[name] for values in processes)


def _each_once(name: str, processes: Sequence[Values]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for texts in _known(name, processes) for text in texts))


def _of_worst_error(name: str, processes: Sequence[Values]) -> Any:
    judged = [values for values in processes if values["error"] is not None]
    if not judged:
        return _first(name, processes)
    return max(judged, key=lambda values: values["error"] / (values["tolerance"] or 1.0))[name]


def _compilations(processes: Sequence[Values], *, cached: bool) -> list[Values]:
    """Return the processes that read the compiled graph from the cache, or those that did not.

    Before schema 2 the journal doesn't say which: then all but the first did.
    """
    return [
        {"compile_s": values["compile_s"]}
        for number, values in enumerate(processes)
        if (number > 0 if values["compile_cached"] is None else values["compile_cached"]) is cached
    ]


FIRST = Combined("the first process that has one", _first)
MEDIAN = Combined("median", _median)
LARGEST = Combined("the largest", _largest)
EVERY = Combined("true if it is in every process", _every)
EACH_ONCE = Combined("each of them once", _each_once)
OF_WORST_ERROR = Combined("the process whose error is the largest part of its tolerance", _of_worst_error)
COLD = Combined("the first that found nothing", lambda _, all_: _first("compile_s", _compilations(all_, cached=False)))
WARM = Combined("median of the others", lambda _, all_: _median("compile_s", _compilations(all_, cached=True)))


_TABLE = (
    # time
    Metric(
        name="latency_s",
        unit=Unit.SECONDS,
        meaning="seconds per call: the median over processes of each process's median sample",
        heading=Heading("latency", place=20, rank=0),
        axis=Axis(
            "latency", "Latency", "time per call", ("tokens", "heads", "channels"), "latency_low_s", "latency_high_s",
            by_allocator=True,
        ),
    ),
    Metric(name="latency_low_s", unit=Unit.SECONDS, meaning="the lower end of the 95 % interval of `latency_s`"),
    Metric(name="latency_high_s", unit=Unit.SECONDS, meaning="the upper end of the 95 % interval of `latency_s`"),
    Metric(name="latency_min_s", unit=Unit.SECONDS, meaning="the fastest sample of all"),
    Metric(name="rounds", kind=int, unit=Unit.COUNT, meaning="samples of all processes together"),
    Metric(name="processes", kind=int, unit=Unit.COUNT, meaning="processes that measured the case"),
    Metric(
        name="calls_per_timing",
        kind=int,
        unit=Unit.COUNT,
        meaning="calls between two readings of the clock",
        reported=True,
        only_ok=True,
        combined=MEDIAN,
    ),
    Metric(
        name="flagged_share",
        unit=Unit.SHARE,
        meaning="the share of disturbed samples: other work took the core more than 20 times a second and left no "
        "timing of the sample undisturbed, or kept more than a quarter of the cores that we leave free busy",
        heading=Heading("flagged", place=90, rank=4),
    ),
    Metric(
        name="page_faults",
        unit=Unit.COUNT,
        meaning="minor page faults per call: above a handful, the row times the system's memory management too",
        heading=Heading("faults/call", place=80, rank=5),
    ),
    Metric(
        name="settled",
        kind=bool,
        meaning="whether warm-up reached a steady state",
        reported=True,
        only_ok=True,
        combined=EVERY,
    ),
    Metric(
        name="host_s",
        unit=Unit.SECONDS,
        meaning="what one call costs the host that submits it, beside the device's time; on a GPU with device timing",
        reported=True,
        only_ok=True,
        combined=MEDIAN,
    ),
    # work
    Metric(
        name="flops",
        kind=int,
        meaning="floating-point operations of the layer's matrix products in a call; a causal mask halves those of the "
        "scores; empty if a layer of your own doesn't tell",
        reported=True,
        combined=FIRST,
    ),
    Metric(
        name="least_bytes",
        kind=int,
        unit=Unit.BYTES,
        meaning="the bytes of input, weights and output, each moved once",
        reported=True,
        combined=FIRST,
    ),
    Metric(
        name="flops_per_s",
        unit=Unit.FLOPS,
        meaning="`flops` over `latency_s`",
        derived=roofline.flops_per_s,
        heading=Heading("rate", place=112, rank=11),
    ),
    Metric(
        name="roofline_share",
        unit=Unit.SHARE,
        meaning="the least time that `flops` and `least_bytes` can take by the two ceilings below, the longer of both, "
        "over `latency_s`; above 1 if a cache holds the bytes",
        derived=roofline.share,
        heading=Heading("of roofline", place=114, rank=10),
    ),
    Metric(
        name=roofline.CEILING_FLOPS,
        unit=Unit.FLOPS,
        meaning="the most that matrix products have reached on the device, with this dtype and these threads, up to "
        "the time of the measurement",
        reported=True,
        combined=LARGEST,
    ),
    Metric(
        name=roofline.CEILING_BYTES,
        unit=Unit.BYTE_RATE,
        meaning="the most that a copy has written there",
        reported=True,
        combined=LARGEST,
    ),
    Metric(
        name="energy_j",
        unit=Unit.JOULES,
        meaning="joules per call, of calls that follow each other without a pause after the rounds: of all CPU "
        "packages by RAPL, or of the GPU's board by NVML, idle power and other programs included; empty if there is no "
        "counter that can be read",
        reported=True,
        only_ok=True,
        combined=MEDIAN,
        heading=Heading("energy", place=116, rank=12),
        axis=Axis("energy", "Energy", "energy of a call", ("tokens",)),
    ),
    # ratio to the baseline
    Metric(
        name="baseline",
        kind=str,
        meaning="the implementation that `speedup` refers to",
    ),
    Metric(
        name="speedup",
        unit=Unit.RATIO,
        meaning="the baseline's time over this one's, paired round by round in the same processes; above 1 is faster",
        heading=Heading("speed-up", place=30, rank=0),
        axis=Axis(
            "speedup", "Speed-up over {baseline}", "times as fast as {baseline}", ("tokens", "heads", "channels"),
            "speedup_low", "speedup_high", relative=True, by_allocator=True,
        ),
    ),
    Metric(
        name="speedup_low",
        unit=Unit.RATIO,
        meaning="the lower end of the 95 % interval of `speedup` over processes",
    ),
    Metric(
        name="speedup_high",
        unit=Unit.RATIO,
        meaning="the upper end of the 95 % interval of `speedup` over processes",
    ),
    Metric(
        name="log_ratio_sd",
        meaning="the standard deviation over processes of the logarithm of the ratio to the baseline",
    ),
    # among the rows of the point
    Metric(
        name="rank",
        kind=int,
        meaning="the place among the rows of the point that are ok, by ratios paired round by round; 1 is the fastest, "
        "which is faster than each other row in the rounds that both were in",
    ),
    Metric(
        name="standing",
        kind=str,
        meaning="`winner`, `tie`, `slower` or `not decided`: what is shown of the row (below); empty if no other row "
        "of the point is ok",
    ),
    Metric(
        name="further_processes",
        kind=int,
        unit=Unit.COUNT,
        meaning="about how many more processes would decide the point, if means and scatter stay as they are; empty if "
        "it is decided, if nothing is known of the scatter, or if 50 would not do",
    ),
    Metric(
        name="relative",
        unit=Unit.RATIO,
        meaning="the time of this row relative to the fastest row of its point, paired round by round: 1 for the "
        "fastest, above 1 for a slower one; empty if both were never in the same round",
    ),
    Metric(name="relative_low", unit=Unit.RATIO, meaning="the lower end of the 95 % interval of `relative`"),
    Metric(name="relative_high", unit=Unit.RATIO, meaning="the upper end of the 95 % interval of `relative`"),
    # memory
    Metric(
        name="peak_bytes",
        kind=int,
        unit=Unit.BYTES,
        meaning="the most that one call held at once beyond its input and weights",
        reported=True,
        combined=FIRST,
        heading=Heading("peak memory", place=50, rank=2),
        axis=Axis("memory", "Peak memory", "peak memory of a call", ("tokens",)),
    ),
    Metric(
        name="saved_bytes",
        kind=int,
        unit=Unit.BYTES,
        meaning="what autograd keeps for the backward pass, in the modes that have one",
        reported=True,
        combined=FIRST,
        heading=Heading("kept for backward", place=70, rank=3),
    ),
    Metric(
        name="reserved_bytes",
        kind=int,
        unit=Unit.BYTES,
        meaning="what a GPU's caching allocator took for it at most",
        reported=True,
        combined=FIRST,
    ),
    Metric(
        name="system_peak_bytes",
        kind=int,
        unit=Unit.BYTES,
        meaning="the same peak as the operating system saw it, if `check_memory` asked for it",
        reported=True,
        combined=FIRST,
    ),
    # compilation
    Metric(
        name="compile_s",
        unit=Unit.SECONDS,
        meaning="the first call of a case in a process, which compiles",
        reported=True,
        in_table=False,
    ),
    Metric(
        name="compile_cached",
        kind=bool,
        meaning="whether that call found the whole graph in the run's cache",
        reported=True,
        in_table=False,
    ),
    Metric(
        name="compile_cold_s",
        unit=Unit.SECONDS,
        meaning="the first call of a case in the run, which compiles; kernels that an earlier case of the run compiled "
        "are found",
        combined=COLD,
        heading=Heading("first compile", place=100, rank=8),
    ),
    Metric(
        name="compile_warm_s",
        unit=Unit.SECONDS,
        meaning="the same if the whole graph came from the run's cache, as in later processes",
        combined=WARM,
    ),
    Metric(
        name="graphs",
        kind=int,
        unit=Unit.COUNT,
        meaning="graphs that torch.compile made of the call",
        reported=True,
        combined=FIRST,
    ),
    # truth
    Metric(
        name="kernels",
        kind=tuple,
        meaning="what did the work, in order: operators on a CPU (`CompiledFxGraph` for Inductor's kernels), kernels "
        "on a GPU",
        reported=True,
        combined=FIRST,
        heading=Heading("ran", place=40, rank=6),
    ),
    Metric(
        name="error",
        meaning="the deviation from the float64 reference that came nearest to what is tolerated, relative to the "
        "largest value",
        reported=True,
        combined=OF_WORST_ERROR,
    ),
    Metric(
        name="tolerance",
        meaning="the deviation that is tolerated there",
        reported=True,
        combined=OF_WORST_ERROR,
    ),
    # the GPU's state
    Metric(
        name="clock_hz",
        unit=Unit.HERTZ,
        meaning="the GPU's clock after the rounds",
        reported=True,
        combined=MEDIAN,
    ),
    Metric(
        name="throttle",
        kind=tuple,
        meaning="what held the GPU's clock down after the rounds",
        reported=True,
        combined=EACH_ONCE,
    ),
)  # fmt: skip

METRICS: Mapping[str, Metric] = {metric.name: metric for metric in _TABLE}
"""All metrics by name, in the order of results.csv."""

REPORTED: Mapping[str, Metric] = {name: metric for name, metric in METRICS.items() if metric.reported}
"""Those that a worker may report, and that a line of the journal has."""

COLUMNS: Mapping[str, Metric] = {name: metric for name, metric in METRICS.items() if metric.in_table}
"""Those that are a column of results.csv."""


def combine(processes: Sequence[Values], *, is_ok: bool) -> dict[str, Any]:
    """Return the cells of a row that follow from what the processes of a case reported."""
    return {
        name: _cell(metric, metric.combined.of(name, processes))
        for name, metric in COLUMNS.items()
        if metric.combined and (is_ok or not metric.only_ok)
    }


def derive(case: Case, row: Values) -> dict[str, Any]:
    """Return the cells of a row that follow from its case and its other cells."""
    return {name: metric.derived(case, row) for name, metric in COLUMNS.items() if metric.derived}


def _cell(metric: Metric, value: Any) -> Any:
    """Return a value as a cell holds it: several texts with semicolons between them."""
    if metric.kind is tuple:
        return ";".join(value or ()) or None
    return metric.kind(value) if value is not None else None
