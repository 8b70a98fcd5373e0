"""A profile in the terminal: time and memory of a case by operator and by stage."""

from collections.abc import Iterator, Sequence

import pandas as pd

from bench.analyse import profile as analyse
from bench.plan.case import Case
from bench.show.blocks import GAP, HEAD, PLAIN, QUIET, WARNING, Block, Lines, Table, of_texts
from bench.show.palette import short_name
from bench.show.rows import Row, by_point
from bench.show.text import counted, parts
from bench.store import units
from bench.store.profile import BACKWARD, Profile, ProfiledOperator


def row_of(table: pd.DataFrame, case: Case) -> Row | None:
    """Return the row of a case in the results of its run, None if the run didn't measure it."""
    rows = by_point(table).get(case.point, [])
    return next((row for row in rows if row["implementation"] == case.implementation), None)


def blocks(profile: Profile, row: Row | None, top: int) -> list[Block]:
    """Return a profile's times, operators, kernels and stages; `row` is the case's row in the run's results."""
    stages = [GAP, *_stages(profile)] if profile.stages else []
    kernels = [GAP, *_kernels(ran, top)] if (ran := analyse.kernels(profile)) else []
    return [*_times(profile, row), GAP, _operators(profile, top), *kernels, *stages]


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


def _operators(profile: Profile, top: int) -> Table:
    on_gpu = analyse.is_on_gpu(profile)
    pairs = list(zip(profile.operators, analyse.shares(profile), strict=True))
    top = min(top, sum(operator.time_s > 0 for operator in profile.operators)) if on_gpu else top
    rows = [[operator.name, operator.line, *_cells([operator], share, on_gpu)] for operator, share in pairs[:top]]
    if rest := pairs[top:]:
        cells = _cells([operator for operator, _ in rest], sum(share for _, share in rest), on_gpu)
        rows.append([counted(len(rest), "other"), "", *cells[:-1], ""])
    if not on_gpu:
        rows.append(["in no operator", "", units.seconds(analyse.unnamed_s(profile)), *[""] * 6])
    numbers = ["GPU time" if on_gpu else "time", "share", "calls", "allocated", "FLOP/s", "host time"]
    names = {operator.name for operator in profile.operators}
    return of_texts(
        ["operator", "line", *numbers, "kernels"],
        rows,
        numbers=numbers,
        tone=lambda row: PLAIN if row[0] in names else QUIET,
    )


def _cells(operators: Sequence[ProfiledOperator], share: float, on_gpu: bool) -> list[str]:
    """Return what operators took together; the host's time and the kernels only of those on a GPU."""
    with_flops = [operator for operator in operators if operator.flops is not None]
    flops, worked_s = sum(operator.flops or 0 for operator in with_flops), sum(each.time_s for each in with_flops)
    kernels = dict.fromkeys(kernel for operator in operators for kernel in operator.kernels)
    return [
        units.seconds(sum(operator.time_s for operator in operators)),
        units.percent(share),
        units.count(sum(operator.calls for operator in operators)),
        units.size(sum(operator.allocated_bytes for operator in operators)),
        units.rate(flops / worked_s if worked_s else None, "FLOP/s"),
        units.seconds(sum(operator.self_s for operator in operators)) if on_gpu else "",
        ", ".join(kernels) if on_gpu else "",
    ]


def _kernels(ran: Sequence[analyse.Kernel], top: int) -> Iterator[Block]:
    """Yield the first kernels in their order, and the time in which none ran; streams only if there are several."""
    are_several = len({kernel.span.lane for kernel in ran}) > 1
    rows = [
        (
            short_name(kernel.span.name),
            units.seconds(kernel.start_s),
            units.seconds(kernel.span.duration_s),
            units.seconds(kernel.gap_s) if kernel.gap_s else "",
            kernel.span.lane if are_several else "",
        )
        for kernel in ran[:top]
    ]
    if rest := ran[top:]:
        took_s = sum(kernel.span.duration_s for kernel in rest)
        rows.append(
            (counted(len(rest), "later kernel"), "", units.seconds(took_s), units.seconds(analyse.gaps_s(rest)), "")
        )
    numbers = ("begins", "takes", "gap before")
    yield of_texts(["kernel", *numbers, "stream"], rows, numbers=numbers)
    span_s, gaps_s = analyse.device_span_s(ran), analyse.gaps_s(ran)
    yield Lines([
        f"{counted(len(ran), 'kernel')} in {units.seconds(span_s)} of one call under the profiler; "
        f"gaps between them {units.seconds(gaps_s)} ({gaps_s / span_s:.1%})"
    ])  # fmt: skip


def _stages(profile: Profile) -> Iterator[Block]:
    rows = [
        (
            f"{stage.name}, {BACKWARD}" if stage.direction == BACKWARD else stage.name,
            units.seconds(stage.time_s),
            units.percent(share),
            units.rate(analyse.rate(stage), "FLOP/s"),
            "" if stage.moved_bytes is None else units.size(stage.moved_bytes),
            units.size(stage.allocated_bytes),
        )
        for stage, share in zip(profile.stages, analyse.stage_shares(profile), strict=True)
    ]
    numbers = ("time", "share", "FLOP/s", "moved at least", "allocated")
    yield of_texts(["stage", *numbers], rows, numbers=numbers)
    residual_s = analyse.residual_s(profile)
    whole_s, of = analyse.whole_s(profile), " of all kernels" if analyse.is_on_gpu(profile) else ""
    whole, stages = units.seconds(whole_s), units.seconds(analyse.stage_sum_s(profile))
    share = residual_s / whole_s
    yield Lines([f"stages {stages} of {whole}{of}; residual {units.seconds(residual_s)} ({share:+.1%})"])
    if cores := analyse.core_share(profile):
        yield Lines([f"attention cores take {units.percent(cores)} of the time of all stages"])
