"""The data of one case on the page, in base units, as its template needs it."""

from collections.abc import Sequence
from dataclasses import dataclass

from bench.analyse.profile import HEAVY, overhead, residual_s, shares, stage_shares, stage_sum_s, time_s, unnamed_s
from bench.show.operator_categories import CATEGORY_COLOURS
from bench.show.palette import QUADRATIC, stage_colour, style
from bench.show.report.memory_chart import Band, MemoryChart, memory_chart
from bench.show.report.timeline import Timeline, categories, timeline
from bench.store import units
from bench.store.profile import Block, Operator, Profile, Stage

MOST_OPERATORS, MOST_BLOCKS = 30, 12
"""The largest numbers of rows in tables."""

LEAST_SHARE = 1e-3
"""An operator or block with less than this share is bookkeeping; it is summed up with the others."""

Legend = dict[str, str]
"""Meanings and their colours."""


@dataclass(frozen=True)
class OperatorLine:
    """A row of the table of operators: one operator, or the sum of several."""

    name: str
    time_s: float
    share: float
    calls: float
    self_s: float
    allocated_bytes: float
    flops: float | None
    kernels: tuple[str, ...]


@dataclass(frozen=True)
class StageLine:
    """A stage with its share in the time of all stages, and its left end and width as shares of the bar."""

    stage: Stage
    share: float
    left: float
    width: float
    colour: str
    is_quadratic: bool


@dataclass(frozen=True)
class BlockLine:
    """A block that is alive at the peak, its share in it, and its letter in the chart, empty if it has none."""

    block: Block
    share: float
    letter: str
    colour: str


@dataclass(frozen=True)
class CaseView:
    """The data of a case; `anchor` is its HTML id."""

    anchor: str
    profile: Profile
    colour: str
    on_gpu: bool
    operators: tuple[OperatorLine, ...]
    rest: OperatorLine | None
    unnamed_s: float
    stages: tuple[StageLine, ...]
    timeline: Timeline
    legend: Legend
    memory: MemoryChart | None
    peak_blocks: tuple[BlockLine, ...]

    @property
    def implementation(self) -> str:
        """The name of the implementation."""
        return self.profile.case.implementation

    @property
    def overhead(self) -> float:
        """The share of its latency by which the profiler slowed the case down."""
        return overhead(self.profile)

    @property
    def is_heavy(self) -> bool:
        """Whether the profiler slowed the case down too much for its times to be trusted."""
        return self.overhead > HEAVY

    @property
    def stage_sum_s(self) -> float:
        """The time of all stages together."""
        return stage_sum_s(self.profile)

    @property
    def residual_s(self) -> float:
        """The time of the whole beyond its stages."""
        return residual_s(self.profile)

    @property
    def quadratic_share(self) -> float:
        """The share of the N² stages in the time of all stages."""
        return sum(line.share for line in self.stages if line.is_quadratic)


def case_view(anchor: str, profile: Profile, most_spans: int) -> CaseView:
    """Return what the page shows of a profile, with at most this number of spans."""
    lines = [_line(each, share) for each, share in zip(profile.operators, shares(profile), strict=True)]
    lines.sort(key=lambda line: -line.time_s)
    largest = [line for line in lines if line.share >= LEAST_SHARE][:MOST_OPERATORS]
    call = timeline(profile.spans, most_spans)
    memory = memory_chart(profile, call.whole_s)
    return CaseView(
        anchor=anchor,
        profile=profile,
        colour=style(profile.case.implementation).colour,
        on_gpu=any(operator.device_s is not None for operator in profile.operators),
        operators=tuple(largest),
        rest=_sum(lines[len(largest) :]),
        unnamed_s=unnamed_s(profile),
        stages=_stages(profile),
        timeline=call,
        legend={name: CATEGORY_COLOURS[name] for name in categories(call.boxes)},
        memory=memory,
        peak_blocks=_peak_blocks(memory) if memory else (),
    )


def peak_words(view: CaseView) -> str:
    """Return in words where most of the peak was allocated, and how much of it in the N² stages."""
    if view.memory is None:
        return ""
    top = view.memory.peak
    places: dict[str, int] = {}
    for block in top.blocks:
        place = block.stage or block.operator or "no operator"
        places[place] = places.get(place, 0) + block.bytes
    largest = sorted(places.items(), key=lambda place: -place[1])[:3]
    names = _listed([f"{name} ({units.percent(size / top.bytes)})" for name, size in largest])
    quadratic = sum(block.bytes for block in top.blocks if block.stage in QUADRATIC)
    rest = f", {units.percent(quadratic / top.bytes)} of it in the N² stages" if quadratic else ""
    preposition = "in" if largest[0][0] in {block.stage for block in top.blocks} else "by"
    return f"Most of it was allocated {preposition} {names}{rest}."


def _line(operator: Operator, share: float) -> OperatorLine:
    return OperatorLine(
        operator.name,
        time_s(operator),
        share,
        operator.calls,
        operator.self_s,
        operator.allocated_bytes,
        operator.flops,
        operator.kernels,
    )


def _sum(lines: Sequence[OperatorLine]) -> OperatorLine | None:
    if not lines:
        return None
    known = [line.flops for line in lines if line.flops is not None]
    return OperatorLine(
        f"{len(lines)} others",
        sum(line.time_s for line in lines),
        sum(line.share for line in lines),
        sum(line.calls for line in lines),
        sum(line.self_s for line in lines),
        sum(line.allocated_bytes for line in lines),
        sum(known) if known else None,
        (),
    )


def _stages(profile: Profile) -> tuple[StageLine, ...]:
    """Return the stages one after another on a bar as long as the whole, or as their sum if that is longer."""
    whole_s = max(profile.timed_s, stage_sum_s(profile))
    lines, left = [], 0.0
    for stage, share in zip(profile.stages, stage_shares(profile), strict=True):
        width = stage.time_s / whole_s
        lines.append(StageLine(stage, share, left, width, stage_colour(stage.name), stage.name in QUADRATIC))
        left += width
    return tuple(lines)


def _peak_blocks(memory: MemoryChart) -> tuple[BlockLine, ...]:
    bands = {id(band.block): band for band in memory.bands}
    largest = [block for block in memory.peak.blocks if block.bytes >= LEAST_SHARE * memory.peak.bytes][:MOST_BLOCKS]
    return tuple(BlockLine(block, block.bytes / memory.peak.bytes, *_mark(bands.get(id(block)))) for block in largest)


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _mark(band: Band | None) -> tuple[str, str]:
    return (band.letter, band.colour) if band else ("", "")
