"""A profile in the terminal: time and memory of a case by operator and by stage."""

from collections.abc import Iterator, Sequence

import pandas as pd
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bench.analyse.profile import (
    HEAVY,
    overhead,
    rate,
    residual_s,
    shares,
    slowdown,
    stage_shares,
    stage_sum_s,
    time_s,
    unnamed_s,
)
from bench.plan.case import Case
from bench.show.point_text import counted, parts
from bench.show.rows import Row, by_point
from bench.show.terminal.console import QUIET, WARNING, table
from bench.store import units
from bench.store.profile import BACKWARD, Operator, Profile

TOP = 10
"""Operators that are shown by default; those after them are mostly bookkeeping."""

PERCENT = 100


def row_of(table: pd.DataFrame, case: Case) -> Row | None:
    """Return the row of a case in the results of its run, None if the run didn't measure it."""
    rows = by_point(table).get(case.point, [])
    return next((row for row in rows if row["implementation"] == case.implementation), None)


def render(profile: Profile, row: Row | None, top: int = TOP) -> RenderableType:
    """Return a profile's times, operators and stages; `row` is the case's row in the run's results."""
    stages = [Text(), *_stages(profile)] if profile.stages else []
    return Group(*_times(profile, row), Text(), _operators(profile, top), *stages)


def _times(profile: Profile, row: Row | None) -> Iterator[Text]:
    case, share = profile.case, overhead(profile)
    yield Text(" · ".join([case.implementation, *parts(case.point)]), "bold")
    yield Text(
        f"latency {units.seconds(profile.timed_s)}, under the profiler {units.seconds(profile.profiled_s)} "
        f"({_signed(share)}); {_in_the_run(profile, row)}"
    )
    if row is not None and (factor := _slowdown(profile, row)):
        yield Text(
            f"Without the profiler too a call takes {factor:.2g} times as long here as in the run: it is another time, "
            "at which the machine may run at another speed or be busy, and the case is alone in its process. "
            "Compare times of this profile with each other, not with the run's.",
            WARNING,
        )
    if share > HEAVY:
        yield Text(
            f"The profiler slows it down by more than {HEAVY:.0%}: trust counts, bytes and the order of operators, "
            "not their times. A larger batch or more tokens make operators outlast their recording.",
            WARNING,
        )


def _slowdown(profile: Profile, row: Row) -> float | None:
    if row["latency_s"] is None or _elsewhere(profile, row):
        return None
    return slowdown(profile, row["latency_s"], row["latency_low_s"], row["latency_high_s"])


def _elsewhere(profile: Profile, row: Row) -> bool:
    return row["env_id"] is not None and row["env_id"] != profile.origin.env_id


def _in_the_run(profile: Profile, row: Row | None) -> str:
    if row is None or row["latency_s"] is None:
        return "not measured in the run"
    ends = [row["latency_low_s"], row["latency_high_s"]]
    interval = f" [{', '.join(map(units.seconds, ends))}]" if None not in ends else ""
    other = ", on another machine or software" if _elsewhere(profile, row) else ""
    return f"{units.seconds(row['latency_s'])}{interval} in the run{other}"


def _operators(profile: Profile, top: int) -> Table:
    on_gpu = any(operator.device_s is not None for operator in profile.operators)
    titles = ["GPU time" if on_gpu else "time", "share", "calls", "allocated", "FLOP/s", *["host time"] * on_gpu]
    lines = table("operator", numbers=titles)
    if on_gpu:
        lines.add_column("kernels", overflow="fold")
    operators = list(zip(profile.operators, shares(profile), strict=True))
    for operator, share in operators[:top]:
        lines.add_row(operator.name, *_cells([operator], share), *_on_gpu([operator]) * on_gpu)
    rest = operators[top:]
    if rest:
        others, share = [operator for operator, _ in rest], sum(share for _, share in rest)
        name = counted([len(rest)], "other", "others")
        lines.add_row(name, *_cells(others, share), *_on_gpu(others)[:1] * on_gpu, style=QUIET)
    if not on_gpu:
        lines.add_row("in no operator", units.seconds(unnamed_s(profile)), style=QUIET)
    return lines


def _cells(operators: Sequence[Operator], share: float) -> list[str]:
    spent_s = sum(time_s(operator) for operator in operators)
    counted_flops = [operator for operator in operators if operator.flops is not None]
    flops = sum(operator.flops or 0 for operator in counted_flops)
    worked_s = sum(time_s(operator) for operator in counted_flops)
    return [
        units.seconds(spent_s),
        units.percent(share),
        units.count(sum(operator.calls for operator in operators)),
        units.size(sum(operator.allocated_bytes for operator in operators)),
        units.rate(flops / worked_s if worked_s else None, "FLOP/s"),
    ]


def _on_gpu(operators: Sequence[Operator]) -> list[str]:
    kernels = dict.fromkeys(kernel for operator in operators for kernel in operator.kernels)
    return [units.seconds(sum(operator.self_s for operator in operators)), ", ".join(kernels)]


def _stages(profile: Profile) -> Iterator[RenderableType]:
    lines = table("stage", numbers=["time", "share", "FLOP/s", "moved at least", "allocated"])
    for stage, share in zip(profile.stages, stage_shares(profile), strict=True):
        lines.add_row(
            f"{stage.name}, {BACKWARD}" if stage.direction == BACKWARD else stage.name,
            units.seconds(stage.time_s),
            units.percent(share),
            units.rate(rate(stage), "FLOP/s"),
            "" if stage.moved_bytes is None else units.size(stage.moved_bytes),
            units.size(stage.allocated_bytes),
        )
    yield lines
    share = residual_s(profile) / profile.timed_s
    yield Text(
        f"stages {units.seconds(stage_sum_s(profile))} of {units.seconds(profile.timed_s)}; "
        f"residual {units.seconds(residual_s(profile))} ({_signed(share)})"
    )


def _signed(share: float) -> str:
    return f"{PERCENT * share:+.1f}%"
