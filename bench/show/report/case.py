"""The data of one case on the page, in base units, as its template needs it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from bench.analyse.profile import Peak, shares, stage_shares, stage_sum_s, time_s
from bench.show.palette import QUADRATIC, style
from bench.show.report.memory_chart import Band, MemoryChart, memory_chart
from bench.show.report.timeline import Timeline, timeline
from bench.store import units
from bench.store.profile import Block, Operator, Profile, Stage

MOST_OPERATORS, MOST_BLOCKS = 30, 12
"""The largest numbers of rows in tables."""

LEAST_SHARE = 1e-3
"""An operator or block with less than this share is bookkeeping; it is summed up with the others."""

OperatorLine = tuple[Operator, float]
"""A row of the table of operators: one operator, or the sum of several, and its share in the time of all."""


@dataclass(frozen=True)
class StageLine:
    """A stage with its share in the time of all stages, and its left end and width as shares of the bar."""

    stage: Stage
    share: float
    left: float
    width: float


@dataclass(frozen=True)
class CaseView:
    """The data of a case; `anchor` is its HTML id.

    The largest blocks at the peak have their band in the chart beside them, None if they have none.
    """

    anchor: str
    profile: Profile
    colour: str
    on_gpu: bool
    operators: tuple[OperatorLine, ...]
    rest: OperatorLine | None
    stages: tuple[StageLine, ...]
    timeline: Timeline
    memory: MemoryChart | None
    peak_blocks: tuple[tuple[Block, Band | None], ...]

    @property
    def implementation(self) -> str:
        """The name of the implementation."""
        return self.profile.case.implementation

    @property
    def quadratic_share(self) -> float:
        """The share of the N² stages in the time of all stages."""
        return sum(line.share for line in self.stages if line.stage.name in QUADRATIC)


def case_view(anchor: str, profile: Profile, most_spans: int) -> CaseView:
    """Return what the page shows of a profile, with at most this number of spans."""
    lines = sorted(zip(profile.operators, shares(profile), strict=True), key=lambda line: -time_s(line[0]))
    largest = [line for line in lines if line[1] >= LEAST_SHARE][:MOST_OPERATORS]
    call = timeline(profile.spans, most_spans)
    memory = memory_chart(profile, call.whole_s)
    return CaseView(
        anchor=anchor,
        profile=profile,
        colour=style(profile.case.implementation).colour,
        on_gpu=any(operator.device_s is not None for operator in profile.operators),
        operators=tuple(largest),
        rest=_sum(lines[len(largest) :]),
        stages=_stages(profile),
        timeline=call,
        memory=memory,
        peak_blocks=_peak_blocks(memory) if memory else (),
    )


def peak_words(top: Peak) -> str:
    """Return in words where most of the peak was allocated, and how much of it in the N² stages."""
    places: Counter[str] = Counter()
    for block in top.blocks:
        places[block.stage or block.operator or "no operator"] += block.bytes
    largest = places.most_common(3)
    *others, last = [f"{name} ({units.percent(size / top.bytes)})" for name, size in largest]
    names = f"{', '.join(others)} and {last}" if others else last
    quadratic = sum(block.bytes for block in top.blocks if block.stage in QUADRATIC)
    rest = f", {units.percent(quadratic / top.bytes)} of it in the N² stages" if quadratic else ""
    preposition = "in" if largest[0][0] in {block.stage for block in top.blocks} else "by"
    return f"Most of it was allocated {preposition} {names}{rest}."


def _sum(lines: Sequence[OperatorLine]) -> OperatorLine | None:
    if not lines:
        return None
    operators = [operator for operator, _ in lines]
    known = [operator.flops for operator in operators if operator.flops is not None]
    total = Operator(
        f"{len(lines)} others",
        calls=sum(operator.calls for operator in operators),
        self_s=sum(operator.self_s for operator in operators),
        allocated_bytes=sum(operator.allocated_bytes for operator in operators),
        device_s=sum(map(time_s, operators)),
        flops=sum(known) if known else None,
    )
    return total, sum(share for _, share in lines)


def _stages(profile: Profile) -> tuple[StageLine, ...]:
    """Return the stages one after another on a bar as long as the whole, or as their sum if that is longer."""
    whole_s = max(profile.timed_s, stage_sum_s(profile))
    lines, left = [], 0.0
    for stage, share in zip(profile.stages, stage_shares(profile), strict=True):
        lines.append(StageLine(stage, share, left, stage.time_s / whole_s))
        left += stage.time_s / whole_s
    return tuple(lines)


def _peak_blocks(memory: MemoryChart) -> tuple[tuple[Block, Band | None], ...]:
    bands = {id(band.block): band for band in memory.bands}
    largest = [block for block in memory.peak.blocks if block.bytes >= LEAST_SHARE * memory.peak.bytes]
    return tuple((block, bands.get(id(block))) for block in largest[:MOST_BLOCKS])
