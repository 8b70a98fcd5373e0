"""Pictures of profiles: a bar of stages or operators for each of a point."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bench.analyse.profile import is_on_gpu, whole_s
from bench.analyse.rows import grouped
from bench.plan.case import Point
from bench.show.figures import layout
from bench.show.figures.page import text_width
from bench.show.palette import CATEGORY_COLOURS, OTHER, RESIDUAL_COLOUR, category, on, stage_colour
from bench.show.picture import Kind, Marks, Panel, Picture, Scale, Shape
from bench.show.rows import facts, origins
from bench.show.text import counted
from bench.store import units
from bench.store.profile import BACKWARD, Profile, ProfiledOperator

MOST_NAMED, LEAST_NAMED = 6, 0.01
"""The largest number of named operators in a bar, and the least share of an operator that is named."""

LONGEST = 34
"""An operator's name is cut to this number of characters."""

UNSAID = ("aten::", "_scaled_dot_product_")
"""Prefixes of operators' names that carry no meaning."""

WIDTH, TALL, OVERHANG, GAP, TICKS = 7.6, 0.46, 0.07, 0.2, 7
"""In inches: the width of the axes, the height of a bar, how far the mark of the whole reaches above it, and the gap
below it; the number of ticks."""

LINE, SQUARE, PAD, SMALL_SIZE = 0.18, 0.09, 0.06, 7.5
"""Under a bar, in inches: the height of a line of names, the side of a name's coloured square, and the room around
text; and the size of text in points."""


@dataclass(frozen=True)
class Segment:
    """A part of a bar; one of the backward pass is hatched."""

    name: str
    time_s: float
    colour: str
    is_backward: bool = False


@dataclass(frozen=True)
class Bar:
    """The time of one case by segments, and the whole: its latency without the profiler, on a GPU all kernels'."""

    implementation: str
    segments: tuple[Segment, ...]
    whole_s: float
    is_on_gpu: bool = False

    @property
    def sum_s(self) -> float:
        """The time of all segments."""
        return sum(segment.time_s for segment in self.segments)

    @property
    def residual_s(self) -> float:
        """The time of the whole beyond its segments; below 0 if the profiler slowed these down."""
        return self.whole_s - self.sum_s


def bars(profiles: Sequence[Profile]) -> list[Bar]:
    """Return a bar for each profile of a point: those in stages first, then the slowest first."""
    ordered = sorted(profiles, key=lambda profile: (not profile.stages, -whole_s(profile)))
    return [
        Bar(
            each.case.implementation,
            _stages(each) if each.stages else _operators(each.operators),
            whole_s(each),
            is_on_gpu(each),
        )
        for each in ordered
    ]


def _stages(profile: Profile) -> tuple[Segment, ...]:
    names = (f"{each.name}{', backward' * (each.direction == BACKWARD)}" for each in profile.stages)
    return tuple(
        Segment(name, each.time_s, stage_colour(each.name), each.direction == BACKWARD)
        for name, each in zip(names, profile.stages, strict=True)
    )


def _operators(operators: Sequence[ProfiledOperator]) -> tuple[Segment, ...]:
    """Return the largest operators in the order of the work they do, and all others with a time as one at the end.

    On a GPU those that launch nothing have none.
    """
    ordered = sorted(operators, key=lambda operator: -operator.time_s)
    least_s = LEAST_NAMED * sum(each.time_s for each in ordered)
    largest = [operator for operator in ordered[:MOST_NAMED] if operator.time_s >= least_s]
    rest = [operator for operator in ordered[len(largest) :] if operator.time_s]
    places = list(CATEGORY_COLOURS)
    largest.sort(key=lambda operator: places.index(category(operator.name)))
    segments = [Segment(short(each.name), each.time_s, CATEGORY_COLOURS[category(each.name)]) for each in largest]
    if rest:
        segments.append(Segment(f"{len(rest)} {OTHER}", sum(each.time_s for each in rest), CATEGORY_COLOURS[OTHER]))
    return tuple(segments)


def short(name: str) -> str:
    """Return an operator's name, short enough for a picture."""
    for beginning in UNSAID:
        name = name.removeprefix(beginning)
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


def pictures(profiles: Iterable[Profile]) -> Iterator[Picture]:
    """Yield the picture of each point that has profiles."""
    return (picture(point, of) for point, of in by_point(profiles).items())


def by_point(profiles: Iterable[Profile]) -> dict[Point, list[Profile]]:
    """Return the profiles of each point."""
    return grouped(profiles, lambda profile: profile.case.point)


def picture(point: Point, profiles: Sequence[Profile]) -> Picture:
    """Return the picture of the profiles of one point."""
    bars_of_point = bars(profiles)
    rows, height = segments(bars_of_point)
    origin = [vars(profile.origin) for profile in profiles]
    return Picture(
        name=f"stages-{point.name}",
        heading="Where the time of a call goes",
        facts=facts(point, origin),
        notes=[
            *_notes(profiles, bars_of_point),
            f"means over {counted([each.calls for each in profiles], 'call')} under the profiler",
            *origins(origin),
        ],
        stacks=[[stage_bars(bars_of_point, rows, height)]],
        width=WIDTH,
    )


def segments(bars_of_point: Sequence[Bar]) -> tuple[list[dict[str, Any]], float]:
    """Return what is drawn of the bars, and the height of them all in inches.

    Seconds go to the right and inches down. A `segment` has its name in it, or none if a `name` stands below the bar,
    in one of several lines; then there is the `residual`, if it is above 0, and the `whole` with its texts.
    """
    rows: list[dict[str, Any]] = []
    top, scale = GAP / 2, WIDTH / _end_s(bars_of_point)
    for bar in bars_of_point:
        place = {"implementation": bar.implementation, "top": top, "middle": top + TALL / 2, "bottom": top + TALL}
        start_s = 0.0
        below = []
        for each in bar.segments:
            end_s, words = start_s + each.time_s, [each.name, units.seconds(each.time_s)]
            wide = max(text_width(word, SMALL_SIZE) for word in words) + PAD
            is_crossed = abs((start_s + end_s) / 2 - bar.whole_s) * scale < wide / 2  # by the mark of the whole
            has_room = wide <= each.time_s * scale and not is_crossed
            below += [] if has_room else [each]
            edges = {"upper": top + 0.04, "lower": top + TALL - 0.04} if each.is_backward else {}
            rows.append({**place, "kind": "segment", "start": start_s, "end": end_s, "center": (start_s + end_s) / 2,
                "name": each.name, "text": words if has_room else None, "fill": each.colour, "ink": on(each.colour),
                **edges})  # fmt: skip
            start_s = end_s
        if bar.residual_s > 0:
            rows.append({**place, "kind": "residual", "start": start_s, "end": bar.whole_s, "fill": RESIDUAL_COLOUR})
        share, how = units.percent(bar.residual_s / bar.whole_s), "in kernels" if bar.is_on_gpu else "timed"
        rows.append({**place, "kind": "whole", "top": top - OVERHANG, "start": bar.whole_s,
            "text": f"{units.seconds(bar.whole_s)} {how}", "end": max(start_s, bar.whole_s),
            "residual": f"residual {units.seconds(bar.residual_s)} ({share})"})  # fmt: skip
        lines = _lines(below)
        for number, line in enumerate(lines):
            down = top + TALL + LINE * (number + 0.6)
            rows += [{"kind": "name", "implementation": bar.implementation, "start": across / scale, "top": down,
                "text": _words(each), "fill": each.colour} for across, each in line]  # fmt: skip
        top += TALL + LINE * len(lines) + GAP
    return rows, top


def _end_s(bars_of_point: Sequence[Bar]) -> float:
    return max(max(bar.sum_s, bar.whole_s) for bar in bars_of_point)


def stage_bars(bars_of_point: Sequence[Bar], rows: Sequence[dict[str, Any]], height: float) -> Panel:
    """Return the bars: their segments, the residual, and a mark at the latency of the whole."""
    end_s = _end_s(bars_of_point)
    at = layout.even(0, end_s, TICKS)
    wholes = [row for row in rows if row["kind"] == "whole"]
    box: dict[str, Any] = {"shape": Shape.CELL, "x": "start", "x2": "end", "y": "top", "y2": "bottom", "fill": "fill"}
    text: dict[str, Any] = {"shape": Shape.TEXT, "size": SMALL_SIZE}
    beside: dict[str, Any] = {**text, "kind": "whole", "x": "end", "y": "middle", "align": "left"}
    edges = (
        Marks(shape=Shape.RULE, kind="segment", x="start", x2="end", y=edge, colour="#ffffff", dash=(4, 2))
        for edge in ("upper", "lower")
    )
    return Panel(
        x=Scale(title="time of a call", kind=Kind.LINEAR, ends=(0, end_s), ticks=at,
            labels=[units.seconds(tick, trim=True) if tick else "0" for tick in at]),
        y=Scale(title="", kind=Kind.LINEAR, ends=(height, 0), ticks=[row["middle"] for row in wholes],
            labels=[row["implementation"] for row in wholes]),
        marks=[
            Marks(kind="residual", width=0.0, **box),
            Marks(kind="segment", width=0.7, **box),
            *edges,
            Marks(kind="segment", x="center", y="middle", text="text", fill="ink", **text),
            Marks(shape=Shape.RULE, kind="whole", x="start", y="top", y2="bottom", width=2.5),
            Marks(text="text", shift=(8, 6), **beside),
            Marks(text="residual", shift=(8, -6), colour="quiet", **beside),
            Marks(shape=Shape.POINT, kind="name", x="start", y="top", fill="fill", marker="s", size=6),
            Marks(kind="name", x="start", y="top", text="text", align="left", shift=(6, 0), **text),
        ],
        height=height,
        rows=rows,
    )  # fmt: skip


def _notes(profiles: Sequence[Profile], bars_of_point: Sequence[Bar]) -> Iterator[str]:
    on_gpu = any(map(is_on_gpu, profiles))
    whole = "all kernels of the call" if on_gpu else "latency of the whole, timed without the profiler"
    yield f"mark: {whole}; residual: the part of it in no segment"
    if any(segment.is_backward for bar in bars_of_point for segment in bar.segments):
        yield "dashed white lines: backward"
    if any(not profile.stages for profile in profiles):
        yield "an operator has the colour of the stage that does such work"


def _words(of: Segment) -> str:
    return f"{of.name} {units.seconds(of.time_s)}"


def _lines(below: Sequence[Segment]) -> list[list[tuple[float, Segment]]]:
    """Return the names under a bar in lines, each with its distance from the left in inches."""
    lines: list[list[tuple[float, Segment]]] = []
    across = WIDTH
    for each in below:
        long = SQUARE + PAD / 2 + text_width(_words(each), SMALL_SIZE)
        if across + long > WIDTH:
            lines.append([])
            across = 0.0
        lines[-1].append((across, each))
        across += long + 2 * PAD
    return lines
