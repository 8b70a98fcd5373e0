"""The page of a run's profiles: stages, the timeline and the memory of a call, its peak, and the operators."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from bench.analyse import profile as analyse
from bench.analyse.profile import Kernel, Peak, shares, stage_shares, whole_s
from bench.plan.errors import WrongRequest
from bench.plan.invocation import suite
from bench.show import palette
from bench.show.charts import call
from bench.show.charts.stages import by_point
from bench.show.pages import shell
from bench.show.text import differences, listed, parts, varying
from bench.store import units
from bench.store.profile import Block, Profile, ProfiledOperator, Stage

PAGE = "profile.html"
"""The name of the page in a run's folder."""

MOST_SPANS, FEWEST_SPANS, SPANS_OF_A_PAGE = 400, 60, 4000
"""Most spans of a timeline, fewest if many cases share a page, and most of a page, which stays below 2 MB."""

ONE_LINE = 32
"""Names of at most this number of characters fit into a line of a table."""

MOST_OPERATORS, MOST_BLOCKS, MOST_KERNELS = 30, 12, 60
"""The largest numbers of rows in tables."""

LEAST_SHARE = 1e-3
"""An operator or block with less than this share is bookkeeping; it is summed up with the others."""

OperatorLine = tuple[ProfiledOperator, float]
"""A row of the table of operators: one operator, or the sum of several, and its share in the time of all."""


@dataclass(frozen=True)
class CaseView:
    """The data of a case; `anchor` is its HTML id. Stages have their share in the time of all stages.

    The largest blocks at the peak have their band in the chart beside them, None if they have none.
    """

    anchor: str
    profile: Profile
    operators: tuple[OperatorLine, ...]
    rest: OperatorLine | None
    stages: tuple[tuple[Stage, float], ...]
    timeline: call.Timeline
    memory: call.MemoryChart | None
    peak_blocks: tuple[tuple[Block, call.Band | None], ...]

    @property
    def implementation(self) -> str:
        """The name of the implementation."""
        return self.profile.case.implementation

    @property
    def on_gpu(self) -> bool:
        """Whether operators have the GPU's times."""
        return analyse.is_on_gpu(self.profile)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels of the call on a GPU, in their order."""
        return analyse.kernels(self.profile)

    @property
    def has_lines(self) -> bool:
        """Whether lines of source are known."""
        return any(operator.line for operator, _ in self.operators)

    @property
    def core_words(self) -> str:
        """The share of the N² stages in the time of all stages, or of attention cores, in words."""
        quadratic = sum(share for stage, share in self.stages if stage.name in palette.QUADRATIC)
        if quadratic:
            return f"N² stages {units.percent(quadratic)}"
        return f"attention cores {units.percent(analyse.core_share(self.profile))}"


def write(profiles: Sequence[Profile], run: Path, warning: str = "") -> Path:
    """Write the page of a run's profiles into its folder, and return its file.

    `warning` says that identical code differs too much in the run; empty if it doesn't.
    Raises WrongRequest if there are no profiles, or if the file can't be written.
    """
    if not profiles:
        raise WrongRequest(f"{run} has no profiles; {suite()} profile {run} makes them")
    return shell.write(run / PAGE, page(profiles, run.resolve().name, warning))


def page(profiles: Sequence[Profile], title: str, warning: str = "") -> str:
    """Return the page of some profiles, under a title; it begins with `warning`, if that isn't empty."""
    groups = _groups(profiles)
    cases: list[CaseView] = [case for group in groups for case in group["cases"]]
    operators = [operator for case in cases for operator, _ in case.operators]
    names = [name for operator in operators for name in (operator.name, *operator.kernels)]
    names += [kernel.span.name for case in cases for kernel in case.kernels[:MOST_KERNELS]]
    colours = [*palette.STAGE_COLOURS.values(), *palette.OTHER_STAGE_COLOURS, *palette.CATEGORY_COLOURS.values()]
    colours += [palette.RESIDUAL_COLOUR, *(palette.style(case.implementation).colour for case in cases)]
    charts = {"boxes": call.boxes("Spans of one call"), "memory": call.memory()}
    drawn = {case.anchor: _drawn(case) for case in cases}
    return shell.render(
        "profiles.html",
        f"Profiles of {title}",
        [],
        {"kind": "profiles", "charts": charts, "cases": shell.packed(shell.as_data(drawn))},
        colours=palette.page_variables(colours),
        filters=FILTERS,
        warning=warning,
        facts=_facts(profiles),
        groups=groups,
        analyse=analyse,
        most_kernels=MOST_KERNELS,
        quadratic=palette.QUADRATIC,
        long_names={name: f"name-{number}" for number, name in enumerate(palette.shortened_names(names))},
    )


def _drawn(case: CaseView) -> dict[str, Any]:
    """Return the rows of a case's charts, with what they show in words, by the kind of chart."""
    charts: dict[str, Any] = {}
    if case.stages:
        charts["stages"] = {
            "description": f"Time of each stage of {case.implementation}, one after another",
            "rows": shell.columns(_stage_rows(case.profile)),
        }
    if case.timeline.rows:
        charts["timeline"] = {
            "description": f"Timeline of one call of {case.implementation}: {len(case.timeline.rows)} spans on "
            f"{', '.join(case.timeline.lanes)}; what called another span stands above it",
            "rows": shell.columns(case.timeline.rows),
        }
    if case.memory:
        top = case.memory.peak
        ys = [0, top.bytes / 2, top.bytes]
        charts["memory"] = {
            "description": f"Live memory over one call of {case.implementation}. It peaks at {units.size(top.bytes)}, "
            f"{units.seconds(top.at_s)} into the call. The largest blocks: "
            f"{', '.join(band.words for band in case.memory.bands)}",
            "rows": call.memory_rows(case.memory),
            "signals": {"ys": ys, "labels": [units.size(y) or "0" for y in ys]},
        }
    return charts


def _stage_rows(profile: Profile) -> list[dict[str, Any]]:
    """Return the stages one after another, a row for each direction, and the residual if it is above 0."""
    start_s, rows, directions = 0.0, [], [*dict.fromkeys(stage.direction for stage in profile.stages)]
    for stage, share in zip(profile.stages, stage_shares(profile), strict=True):
        row = f"{directions.index(stage.direction)}|{stage.direction if len(directions) > 1 else ''}"
        words = [units.seconds(stage.time_s), units.percent(share)]
        rows.append(
            call.box_row(stage.name, start_s, start_s + stage.time_s, row, palette.stage_colour(stage.name), words)
        )
        start_s += stage.time_s
    if start_s < (end_s := whole_s(profile)):
        words = [units.seconds(end_s - start_s)]
        rows.append(call.box_row("residual", start_s, end_s, rows[-1]["row"], palette.RESIDUAL_COLOUR, words))
    return rows


def _case_view(anchor: str, profile: Profile, most_spans: int) -> CaseView:
    """Return what the page shows of a profile, with at most this number of spans."""
    lines = sorted(zip(profile.operators, shares(profile), strict=True), key=lambda line: -line[0].time_s)
    largest = [line for line in lines if line[1] >= LEAST_SHARE][:MOST_OPERATORS]
    spans = call.timeline(profile.spans, most_spans)
    of_memory = call.memory_chart(profile, spans.whole_s)
    return CaseView(
        anchor=anchor,
        profile=profile,
        operators=tuple(largest),
        rest=_sum(lines[len(largest) :]),
        stages=tuple(zip(profile.stages, stage_shares(profile), strict=True)),
        timeline=spans,
        memory=of_memory,
        peak_blocks=_peak_blocks(of_memory) if of_memory else (),
    )


def _peak_words(top: Peak) -> str:
    """Return in words where most of the peak was allocated, and how much of it in the N² stages."""
    places: Counter[str] = Counter()
    for block in top.blocks:
        places[block.stage or block.operator or "no operator"] += block.bytes
    largest = places.most_common(3)
    names = listed([f"{name} ({units.percent(size / top.bytes)})" for name, size in largest])
    quadratic = sum(block.bytes for block in top.blocks if block.stage in palette.QUADRATIC)
    rest = f", {units.percent(quadratic / top.bytes)} of it in the N² stages" if quadratic else ""
    preposition = "in" if largest[0][0] in {block.stage for block in top.blocks} else "by"
    return f"Most of it was allocated {preposition} {names}{rest}."


def _sum(lines: Sequence[OperatorLine]) -> OperatorLine | None:
    if not lines:
        return None
    operators = [operator for operator, _ in lines]
    flops = [operator.flops for operator in operators if operator.flops is not None]
    total = ProfiledOperator(
        f"{len(lines)} others",
        calls=sum(operator.calls for operator in operators),
        self_s=sum(operator.self_s for operator in operators),
        allocated_bytes=sum(operator.allocated_bytes for operator in operators),
        device_s=sum(operator.time_s for operator in operators),
        flops=sum(flops) if flops else None,
    )
    return total, sum(share for _, share in lines)


def _peak_blocks(of: call.MemoryChart) -> tuple[tuple[Block, call.Band | None], ...]:
    bands = {id(band.block): band for band in of.bands}
    largest = [block for block in of.peak.blocks if block.bytes >= LEAST_SHARE * of.peak.bytes]
    return tuple((block, bands.get(id(block))) for block in largest[:MOST_BLOCKS])


def _groups(profiles: Sequence[Profile]) -> list[dict[str, Any]]:
    """Return the points with their cases; `label` names the values that differ from other points of the page."""
    points = by_point(profiles)
    columns = varying(points)
    most = min(MOST_SPANS, max(FEWEST_SPANS, SPANS_OF_A_PAGE // len(profiles)))
    groups = []
    for number, (point, members) in enumerate(points.items()):
        members.sort(key=lambda profile: profile.timed_s)
        cases = [_case_view(f"case-{number}-{place}", profile, most) for place, profile in enumerate(members)]
        words = parts(point)
        groups.append({"words": words, "label": differences(point, columns) or " · ".join(words), "cases": cases})
    return groups


def _facts(profiles: Sequence[Profile]) -> dict[str, list[str]]:
    """Return the origins of the profiles, each value once."""
    origins = [profile.origin for profile in profiles]
    facts = {
        "device": [origin.device_name for origin in origins],
        "torch": [origin.torch_version for origin in origins],
        "commit": [origin.commit for origin in origins],
        "environment": [origin.env_id for origin in origins],
        "profiled": [origin.started_at.partition("T")[0] for origin in origins],
    }
    return {name: [value for value in dict.fromkeys(values) if value] for name, values in facts.items()}


def _aligned(text: str) -> Markup:
    """Return a number with its unit in a column of its own, so that numbers align."""
    number, _, unit = text.partition(" ")
    return Markup("{} <u>{}</u>").format(number, unit) if unit else Markup("")


def _breakable(name: str) -> Markup:
    """Return a name with possible breaks between its words if it is too long for a column."""
    return Markup("<wbr>").join(
        re.split(r"(?<=_)(?=[a-z])|(?<=::)|(?<=\w[./])(?=\w)", name) if len(name) > ONE_LINE else [name]
    )


FILTERS: Mapping[str, Callable[..., Any]] = {
    "seconds": lambda value: _aligned(units.seconds(value)),
    "size": lambda value: _aligned(units.size(value)),
    "flops": lambda value: _aligned(units.rate(value, "FLOP")),
    "rate": lambda value: _aligned(units.rate(value, "FLOP/s")),
    "time": units.seconds,
    "bytes": units.size,
    "count": units.count,
    "percent": units.percent,
    "signed": lambda share: f"{100 * share:+.1f}%",
    "short": palette.short_name,
    "breakable": _breakable,
    "peak_words": _peak_words,
    "colour": lambda name: palette.page_variable(palette.stage_colour(name)),
    "variable": palette.page_variable,
    "implementation_colour": lambda name: palette.page_variable(palette.style(name).colour),
}
"""What the template does with values."""
