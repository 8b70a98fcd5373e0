"""A profile in a terminal and on a page: its times, operators, kernels and stages."""

import math
from collections.abc import Iterable, Sequence

from bench.analyse import profile as analyse
from bench.analyse.rows import Row, point_of
from bench.plan.case import Case
from bench.show.blocks import GAP, HEAD, WARNING, Block, Lines, Table, of_texts
from bench.show.palette import short_name
from bench.show.text import counted, parts
from bench.store import units
from bench.store.profile import BACKWARD, Kernel, Profile, ProfiledOperator


def row_of(rows: Iterable[Row], case: Case) -> Row | None:
    """Return the row of a case in the results of its run, None if the run didn't measure it."""
    own = (row for row in rows if row["implementation"] == case.implementation)
    return next((row for row in own if point_of(row) == case.point), None)


def blocks(profile: Profile, row: Row | None, top: int) -> list[Block]:
    """Return a profile's times, operators, kernels and stages; `row` is the case's row in the run's results."""
    case, share = profile.case, analyse.overhead(profile)
    in_run = "not measured in the run"
    if row is not None and row["latency_s"] is not None:
        elsewhere = row["env_id"] not in (None, profile.origin.env_id)
        in_run = f"{units.seconds(row['latency_s'])} in the run{', on another machine or software' * elsewhere}"
    timed, profiled = units.seconds(profile.timed_s), units.seconds(profile.profiled_s)
    sections = ([operators(profile, top)], kernels(profile, top), stages(profile))
    return [
        Lines([" · ".join([case.implementation, *parts(case.point)])], HEAD),
        Lines([f"latency {timed}, under the profiler {profiled} ({share:+.1%}); {in_run}"]),
        Lines([*filter(None, [analyse.distortion(profile)])], WARNING),
        *(block for section in sections if section for block in (GAP, *section)),
    ]


def operators(profile: Profile, top: int) -> Table:
    """Return the table of the operators that took longest, with the others in one row."""
    on_gpu, all_s = analyse.is_on_gpu(profile), analyse.operator_sum_s(profile)
    top = min(top, sum(operator.time_s > 0 for operator in profile.operators)) if on_gpu else top
    shown = [*profile.operators[:top]]
    if rest := profile.operators[top:]:
        shown.append(_together(rest))
    rows = [
        [
            each.name,
            each.line,
            units.seconds(each.time_s),
            units.percent(analyse.share(each.time_s, all_s)),
            units.count(each.calls),
            units.rate(analyse.rate(each), "FLOP/s"),
            units.seconds(each.self_s) if on_gpu else "",
            ", ".join(each.kernels),
        ]
        for each in shown
    ]
    if not on_gpu:
        rows.append(["in no operator", "", units.seconds(analyse.unnamed_s(profile)), *[""] * 5])
    numbers = ("GPU time" if on_gpu else "time", "share", "calls", "FLOP/s", "host time")
    return of_texts(("operator", "line", *numbers, "kernels"), rows, numbers=numbers)


def _together(operators: Sequence[ProfiledOperator]) -> ProfiledOperator:
    """Return several operators combined into one."""
    return ProfiledOperator(
        counted(len(operators), "other"),
        calls=sum(operator.calls for operator in operators),
        self_s=sum(operator.self_s for operator in operators),
        device_s=None if operators[0].device_s is None else sum(operator.time_s for operator in operators),
    )


def kernels(profile: Profile, top: int) -> list[Block]:
    """Return the first kernels in order, and the time in which none ran; streams only if there are several.

    Empty on a CPU.
    """
    ran = analyse.in_order(profile.kernels)
    if not ran:
        return []
    are_several = len({each.kernel.lane for each in ran}) > 1
    shown = ran[:top]
    if rest := ran[top:]:
        later = Kernel(counted(len(rest), "later kernel"), "", math.nan, sum(each.kernel.duration_s for each in rest))
        shown.append(analyse.Ran(later, math.nan, analyse.gaps_s(rest)))
    rows = [
        [
            short_name(each.kernel.name),
            units.seconds(each.start_s),
            units.seconds(each.kernel.duration_s),
            units.seconds(each.gap_s or None),
            each.kernel.lane if are_several else "",
        ]
        for each in shown
    ]
    numbers = ("begins", "takes", "gap before")
    span_s, gaps_s = analyse.device_span_s(ran), analyse.gaps_s(ran)
    summary = (
        f"{counted(len(ran), 'kernel')} in {units.seconds(span_s)} of one call under the profiler; "
        f"gaps between them {units.seconds(gaps_s)} ({gaps_s / span_s:.1%})"
    )
    return [of_texts(("kernel", *numbers, "stream"), rows, numbers=numbers), Lines([summary])]


def stages(profile: Profile) -> list[Block]:
    """Return the stages of a layer and the time outside them; empty without stages."""
    if not profile.stages:
        return []
    stages_s = analyse.stage_sum_s(profile)
    rows = [
        [
            each.name + f", {BACKWARD}" * (each.direction == BACKWARD),
            units.seconds(each.time_s),
            units.percent(analyse.share(each.time_s, stages_s)),
        ]
        for each in profile.stages
    ]
    numbers = ("time", "share")
    residual_s, whole_s = analyse.residual_s(profile), analyse.whole_s(profile)
    of = " of all kernels" if analyse.is_on_gpu(profile) else ""
    residual = f"{units.seconds(residual_s)} ({units.percent(analyse.share(residual_s, whole_s))}) in no stage"
    lines = [f"stages {units.seconds(stages_s)} of {units.seconds(whole_s)}{of}; {residual}"]
    if cores := analyse.core_share(profile):
        lines.append(f"attention cores take {units.percent(cores)} of the time of all stages")
    return [of_texts(("stage", *numbers), rows, numbers=numbers), Lines(lines)]
