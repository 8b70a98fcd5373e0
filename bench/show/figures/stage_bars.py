"""The picture of a point's profiles: a bar of stages or operators for each, on one axis. Lengths are in inches."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from bench.analyse.profile import time_s
from bench.plan.case import Point
from bench.show.figures import page
from bench.show.figures.captions import calls, facts, origin_rows
from bench.show.operators import CATEGORY_COLOURS, OTHER, category
from bench.show.palette import RESIDUAL_COLOUR, on, stage_colour
from bench.show.rows import origins
from bench.store import units
from bench.store.profile import BACKWARD, Operator, Profile

MOST_NAMED, LEAST_NAMED = 6, 0.01
"""The largest number of named operators in a bar, and the least share of an operator that is named."""

LONGEST = 34
"""An operator's name is cut to this number of characters."""

UNSAID = ("aten::", "_scaled_dot_product_")
"""Prefixes of operators' names that tell nothing."""

AXES_WIDTH = 7.2
TALL, OVERHANG, GAP = 0.4, 0.06, 0.2
"""The height of a bar, how far the mark of the whole reaches above it, and the gap between bars."""

LINE, SQUARE, PAD = 0.17, 0.09, 0.07
"""Under a bar: the height of a line of names, the side of a name's coloured square, and the room around text."""

BESIDE = 0.1
"""Between the axes and the text beside them."""

BEHIND = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
"""A background that keeps the grid from running through text."""

HATCH, HATCH_COLOUR = "////", "#ffffff90"


@dataclass(frozen=True)
class Segment:
    """A part of a bar; one of the backward pass is hatched."""

    name: str
    time_s: float
    colour: str
    is_backward: bool = False


@dataclass(frozen=True)
class Bar:
    """The time of one case by segments, and its latency without the profiler."""

    implementation: str
    segments: tuple[Segment, ...]
    timed_s: float

    @property
    def sum_s(self) -> float:
        """The time of all segments."""
        return sum(segment.time_s for segment in self.segments)

    @property
    def residual_s(self) -> float:
        """The time of the whole beyond its segments; below 0 if the profiler slowed these down."""
        return self.timed_s - self.sum_s


def bars(profiles: Sequence[Profile]) -> list[Bar]:
    """Return a bar for each profile of a point: those in stages first, then the slowest first."""
    ordered = sorted(profiles, key=lambda profile: (not profile.stages, -profile.timed_s))
    return [
        Bar(each.case.implementation, _stages(each) if each.stages else _operators(each.operators), each.timed_s)
        for each in ordered
    ]


def _stages(profile: Profile) -> tuple[Segment, ...]:
    return tuple(
        Segment(
            f"{stage.name}, backward" if stage.direction == BACKWARD else stage.name,
            stage.time_s,
            stage_colour(stage.name),
            stage.direction == BACKWARD,
        )
        for stage in profile.stages
    )


def _operators(operators: Sequence[Operator]) -> tuple[Segment, ...]:
    """Return the largest operators in the order of the work they do, and all others as one at the end."""
    ordered = sorted(operators, key=time_s, reverse=True)
    least_s = LEAST_NAMED * sum(map(time_s, ordered))
    largest = [operator for operator in ordered[:MOST_NAMED] if time_s(operator) >= least_s]
    rest = ordered[len(largest) :]
    places = list(CATEGORY_COLOURS)
    largest.sort(key=lambda operator: places.index(category(operator.name)))
    segments = [Segment(short(each.name), time_s(each), CATEGORY_COLOURS[category(each.name)]) for each in largest]
    if rest:
        segments.append(Segment(f"{len(rest)} {OTHER}", sum(map(time_s, rest)), CATEGORY_COLOURS[OTHER]))
    return tuple(segments)


def short(name: str) -> str:
    """Return an operator's name, short enough for a picture."""
    for beginning in UNSAID:
        name = name.removeprefix(beginning)
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


@dataclass(frozen=True)
class BarRow:
    """A bar with its place: the depth of its upper edge, and the names under it, line by line."""

    bar: Bar
    top: float
    named_below: tuple[tuple[tuple[float, Segment], ...], ...]

    @property
    def bottom(self) -> float:
        """The depth at which the row ends."""
        return self.top + TALL + LINE * len(self.named_below) + GAP


def figures(profiles: Iterable[Profile]) -> Iterator[page.Drawing]:
    """Yield a picture of each point that has profiles."""
    points: dict[Point, list[Profile]] = {}
    for profile in profiles:
        points.setdefault(profile.case.point, []).append(profile)
    return ((name(of), figure(of)) for of in points.values())


def name(profiles: Sequence[Profile]) -> str:
    """Return the picture in one word: a file name that stays the same whatever else was profiled."""
    return f"stages-{profiles[0].case.point.name}"


@page.styled()
def figure(profiles: Sequence[Profile]) -> Figure:
    """Return the picture of the profiles of one point as a figure."""
    bars_of_point = bars(profiles)
    end_s = max(max(bar.sum_s, bar.timed_s) for bar in bars_of_point)
    rows = list(_rows(bars_of_point, AXES_WIDTH / end_s))
    made = page.new_figure(
        "Where the time of a call goes",
        facts(profiles[0].case.point, origin_rows(profiles)),
        list(_notes(profiles, bars_of_point)),
        [rows[-1].bottom],
        left=page.EDGE + max(page.text_width(bar.implementation, bold=True) for bar in bars_of_point) + BESIDE,
        across=AXES_WIDTH,
        right=BESIDE + max(page.text_width(line) for bar in bars_of_point for line in whole(bar)) + page.EDGE,
    )
    axes = made.axes[0]
    _frame(axes, end_s, rows[-1].bottom)
    for row in rows:
        _draw(axes, row, AXES_WIDTH / end_s)
    return made


def whole(bar: Bar) -> tuple[str, str]:
    """Return the texts beside a bar: the latency of the whole, and the part of it in no segment."""
    share = units.percent(bar.residual_s / bar.timed_s)
    return f"{units.seconds(bar.timed_s)} timed", f"residual {units.seconds(bar.residual_s)} ({share})"


def _notes(profiles: Sequence[Profile], bars_of_point: Sequence[Bar]) -> Iterator[str]:
    yield "mark: latency of the whole, timed without the profiler; residual: the part of it in no segment"
    if any(segment.is_backward for bar in bars_of_point for segment in bar.segments):
        yield "hatched: backward"
    if any(not profile.stages for profile in profiles):
        yield "an operator has the colour of the stage that does such work"
    yield calls(profiles)
    yield from origins(origin_rows(profiles))


def _rows(bars_of_point: Sequence[Bar], scale: float) -> Iterator[BarRow]:
    top = GAP / 2
    for bar in bars_of_point:
        row = BarRow(bar, top, tuple(map(tuple, _lines([each for each in bar.segments if not _has_room(each, scale)]))))
        yield row
        top = row.bottom


def _lines(segments: Sequence[Segment]) -> list[list[tuple[float, Segment]]]:
    """Return the names under a bar in lines, each with its distance from the left."""
    lines: list[list[tuple[float, Segment]]] = []
    across = AXES_WIDTH
    for segment in segments:
        long = SQUARE + PAD / 2 + page.text_width(" ".join(_words(segment)), page.SMALL_SIZE)
        if across + long > AXES_WIDTH:
            lines.append([])
            across = 0.0
        lines[-1].append((across, segment))
        across += long + 2 * PAD
    return lines


def _words(segment: Segment) -> tuple[str, str]:
    return segment.name, units.seconds(segment.time_s)


def _has_room(segment: Segment, scale: float) -> bool:
    return max(page.text_width(word, page.SMALL_SIZE) for word in _words(segment)) + PAD <= segment.time_s * scale


def _frame(axes: Axes, end_s: float, tall: float) -> None:
    """Scale axes in seconds to the right and in inches downwards."""
    axes.set_xlim(0, end_s)
    axes.set_ylim(tall, 0)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    locator = MaxNLocator(nbins=7, steps=[1, 2, 2.5, 5, 10])
    ticks = [float(tick) for tick in locator.tick_values(0, end_s) if tick <= end_s]
    axes.set_xticks(ticks, labels=[units.seconds(tick, trim=True) if tick else "0" for tick in ticks])
    axes.set_xlabel("time of a call")


def _draw(axes: Axes, row: BarRow, scale: float) -> None:
    bar, middle, start_s = row.bar, row.top + TALL / 2, 0.0
    axes.text(-BESIDE / scale, middle, bar.implementation, ha="right", va="center_baseline", weight="bold")
    for segment in bar.segments:
        _segment(axes, row, segment, start_s, scale)
        start_s += segment.time_s
    if bar.residual_s > 0:
        gid = f"residual {bar.implementation}"
        corner = (bar.sum_s, row.top)
        axes.add_patch(Rectangle(corner, bar.residual_s, TALL, facecolor=RESIDUAL_COLOUR, linewidth=0, gid=gid))
    ends = [row.top - OVERHANG, row.top + TALL]
    axes.plot([bar.timed_s] * 2, ends, color=page.INK, linewidth=2, gid=f"whole {bar.implementation}", clip_on=False)
    beside = max(bar.sum_s, bar.timed_s) + BESIDE / scale
    for text, down, colour in zip(whole(bar), (-LINE / 2, LINE / 2), (page.INK, page.GREY), strict=True):
        axes.text(beside, middle + down, text, color=colour, size=page.SMALL_SIZE, va="center_baseline", bbox=BEHIND)
    for number, line in enumerate(row.named_below):
        down = row.top + TALL + LINE * (number + 0.6)
        for across, segment in line:
            _below(axes, segment, across, down, scale)


def _segment(axes: Axes, row: BarRow, segment: Segment, start_s: float, scale: float) -> None:
    gid = f"segment {row.bar.implementation} {segment.name}"
    _patch(axes, (start_s, row.top), segment.time_s, TALL, segment, gid=gid)
    if not _has_room(segment, scale):
        return
    # the background keeps hatching and the mark of the whole from running through text
    box = {"facecolor": segment.colour, "edgecolor": "none", "pad": 0.6}
    middle, colour = start_s + segment.time_s / 2, on(segment.colour)
    for text, down in zip(_words(segment), (-LINE / 2, LINE / 2), strict=True):
        at = (middle, row.top + TALL / 2 + down)
        axes.text(*at, text, color=colour, size=page.SMALL_SIZE, ha="center", va="center_baseline", bbox=box, zorder=4)


def _below(axes: Axes, segment: Segment, across: float, down: float, scale: float) -> None:
    _patch(axes, (across / scale, down - SQUARE / 2), SQUARE / scale, SQUARE, segment)
    text = " ".join(_words(segment))
    axes.text((across + SQUARE + PAD / 2) / scale, down, text, size=page.SMALL_SIZE, va="center_baseline", bbox=BEHIND)


def _patch(
    axes: Axes, corner: tuple[float, float], wide: float, tall: float, segment: Segment, gid: str | None = None
) -> None:
    axes.add_patch(Rectangle(corner, wide, tall, facecolor=segment.colour, edgecolor="white", linewidth=0.5, gid=gid))
    if segment.is_backward:
        hatched = Rectangle(corner, wide, tall, facecolor="none", edgecolor=HATCH_COLOUR, hatch=HATCH, linewidth=0)
        axes.add_patch(hatched)
