"""What is shown of a profile, in a terminal and on a page: its times, operators, kernels and stages."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pandas as pd

from bench.analyse import profile as analyse
from bench.plan.case import Case
from bench.show.blocks import GAP, HEAD, PLAIN, QUIET, WARNING, Block, Column, Lines, Table
from bench.show.palette import short_name
from bench.show.rows import Row, by_point
from bench.show.text import counted, parts
from bench.store import units
from bench.store.profile import BACKWARD, Kernel, Profile, ProfiledOperator


def row_of(table: pd.DataFrame, case: Case) -> Row | None:
    """Return the row of a case in the results of its run, None if the run didn't measure it."""
    rows = by_point(table).get(case.point, [])
    return next((row for row in rows if row["implementation"] == case.implementation), None)


def blocks(profile: Profile, row: Row | None, top: int) -> list[Block]:
    """Return a profile's times, operators, kernels and stages; `row` is the case's row in the run's results."""
    sections = ([operators(profile, top)], kernels(profile, top), stages(profile))
    return [*_times(profile, row), *(block for each in sections if each for block in (GAP, *each))]


def _times(profile: Profile, row: Row | None) -> Iterator[Lines]:
    case, share, factor = profile.case, analyse.overhead(profile), None
    where = "not measured in the run"
    if row is not None and row["latency_s"] is not None:
        times = row["latency_s"], row["latency_low_s"], row["latency_high_s"]
        latency, *ends = map(units.seconds, times)
        interval = f" [{', '.join(ends)}]" if None not in times else ""
        where = f"{latency}{interval} in the run"
        if row["env_id"] in (None, profile.origin.env_id):
            factor = analyse.slowdown(profile, *times)
        else:
            where += ", on another machine or software"
    timed, profiled = units.seconds(profile.timed_s), units.seconds(profile.profiled_s)
    yield Lines([" · ".join([case.implementation, *parts(case.point)])], HEAD)
    yield Lines([f"latency {timed}, under the profiler {profiled} ({share:+.1%}); {where}"])
    warnings = []
    if factor:
        what = "GPU" if analyse.is_on_gpu(profile) else "machine"
        warnings.append(
            f"Without the profiler too a call takes {factor:.2g} times as long here as in the run: it is another time, "
            f"at which the {what} may run at another speed or be busy, and the case is alone in its process. "
            "Compare times of this profile with each other, not with the run's."
        )
    if distorted := analyse.distortion(profile):
        warnings.append(distorted)
    yield Lines(warnings, WARNING)


def operators(profile: Profile, top: int) -> Table:
    """Return the table of the operators that took longest, with all others as one row."""
    on_gpu, all_s = analyse.is_on_gpu(profile), analyse.operator_sum_s(profile)
    top = min(top, sum(operator.time_s > 0 for operator in profile.operators)) if on_gpu else top
    rows = [*profile.operators[:top]]
    if rest := profile.operators[top:]:
        rows.append(_together(rest))
    if not on_gpu:
        rows.append(ProfiledOperator("in no operator", 0, analyse.unnamed_s(profile), 0))

    def number(heading: str, value: Callable[[ProfiledOperator], float | None], write: Callable[..., str]) -> Column:
        return _number(heading, lambda row: value(row) if row.calls else None, write)

    columns = [
        Column("operator", lambda row: str(row.name), folds=True),
        Column("line", lambda row: str(row.line), folds=True),
        _number("GPU time" if on_gpu else "time", lambda row: row.time_s, units.seconds),
        number("share", lambda row: analyse.share(row.time_s, all_s), units.percent),
        number("calls", lambda row: row.calls, units.count),
        number("allocated", lambda row: row.allocated_bytes, units.size),
        number("FLOP/s", analyse.rate, _flops_per_s),
        number("host time", lambda row: row.self_s if on_gpu else None, units.seconds),
        Column("kernels", lambda row: ", ".join(row.kernels), folds=True),
    ]
    names = {operator.name for operator in profile.operators}
    return Table(columns, rows, tone=lambda row: PLAIN if row.name in names else QUIET)


def _number(heading: str, value: Callable[[Any], float | None], write: Callable[..., str]) -> Column:
    return Column(heading, lambda row: write(value(row)), value)


def _flops_per_s(value: float | None) -> str:
    return units.rate(value, "FLOP/s")


def _together(operators: Sequence[ProfiledOperator]) -> ProfiledOperator:
    """Return several operators as one."""
    return ProfiledOperator(
        counted(len(operators), "other"),
        calls=sum(operator.calls for operator in operators),
        self_s=sum(operator.self_s for operator in operators),
        allocated_bytes=sum(operator.allocated_bytes for operator in operators),
        device_s=None if operators[0].device_s is None else sum(operator.time_s for operator in operators),
    )


def kernels(profile: Profile, top: int) -> list[Block]:
    """Return the first kernels in their order, and the time in which none ran; streams only if there are several.

    Empty on a CPU.
    """
    ran = analyse.in_order(profile.kernels)
    if not ran:
        return []
    are_several = len({each.kernel.lane for each in ran}) > 1
    rows = ran[:top]
    if rest := ran[top:]:
        took_s = sum(each.kernel.duration_s for each in rest)
        later = Kernel(counted(len(rest), "later kernel"), "", math.nan, took_s)
        rows.append(analyse.Ran(later, math.nan, analyse.gaps_s(rest)))
    columns = [
        Column("kernel", lambda row: short_name(row.kernel.name), folds=True),
        _number("begins", lambda row: row.start_s, units.seconds),
        _number("takes", lambda row: row.kernel.duration_s, units.seconds),
        _number("gap before", lambda row: row.gap_s or None, units.seconds),
        Column("stream", lambda row: row.kernel.lane if are_several else "", folds=True),
    ]
    span_s, gaps_s = analyse.device_span_s(ran), analyse.gaps_s(ran)
    summary = (
        f"{counted(len(ran), 'kernel')} in {units.seconds(span_s)} of one call under the profiler; "
        f"gaps between them {units.seconds(gaps_s)} ({gaps_s / span_s:.1%})"
    )
    return [Table(columns, rows), Lines([summary])]


def stages(profile: Profile) -> list[Block]:
    """Return the stages of a layer and what is left of the time of the whole; empty without stages."""
    if not profile.stages:
        return []
    stages_s = analyse.stage_sum_s(profile)
    columns = [
        Column("stage", lambda row: row.name + f", {BACKWARD}" * (row.direction == BACKWARD), folds=True),
        _number("time", lambda row: row.time_s, units.seconds),
        _number("share", lambda row: analyse.share(row.time_s, stages_s), units.percent),
        _number("FLOP/s", analyse.rate, _flops_per_s),
        _number("allocated", lambda row: row.allocated_bytes, units.size),
    ]
    residual_s = analyse.residual_s(profile)
    whole_s, of = analyse.whole_s(profile), " of all kernels" if analyse.is_on_gpu(profile) else ""
    whole, sum_of_stages = units.seconds(whole_s), units.seconds(stages_s)
    share = residual_s / whole_s
    lines = [f"stages {sum_of_stages} of {whole}{of}; residual {units.seconds(residual_s)} ({share:+.1%})"]
    if cores := analyse.core_share(profile):
        lines.append(f"attention cores take {units.percent(cores)} of the time of all stages")
    return [Table(columns, profile.stages), Lines(lines)]
