"""Pictures of profiles: a bar of stages or operators for each of a point."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from bench.analyse.profile import is_on_gpu, whole_s
from bench.analyse.rows import grouped
from bench.plan.case import Point
from bench.show.charts.sheet import SMALL_SIZE, Picture, finished, sheet, wrapped
from bench.show.palette import CATEGORY_COLOURS, OTHER, RESIDUAL_COLOUR, category, on, stage_colour
from bench.show.rows import facts, origins
from bench.show.text import counted, cut
from bench.store import units
from bench.store.profile import BACKWARD, Profile, ProfiledOperator

MOST_NAMED, LEAST_NAMED = 6, 0.01
"""The largest number of named operators in a bar, and the least share of an operator that is named."""

LONGEST = 34
"""An operator's name is cut to this number of characters."""

UNSAID = ("aten::", "_scaled_dot_product_")
"""Prefixes of operators' names that carry no meaning."""

WIDTH, TALL, LETTER = 7.6, 0.62, 0.06
"""In inches: the width of the axes, the height of a bar with its room, and the width of a letter."""


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
    return cut(name, LONGEST)


def pictures(profiles: Iterable[Profile]) -> Iterator[Picture]:
    """Yield the picture of each point that has profiles."""
    return (picture(point, of) for point, of in by_point(profiles).items())


def by_point(profiles: Iterable[Profile]) -> dict[Point, list[Profile]]:
    """Return the profiles of each point."""
    return grouped(profiles, lambda profile: profile.case.point)


def picture(point: Point, profiles: Sequence[Profile]) -> Picture:
    """Return the picture of the profiles of one point: segments, the residual, and a mark at the whole of each."""
    of_point = bars(profiles)
    ((axes,),) = sheet([TALL * len(of_point)], width=WIDTH)
    end_s = max(max(bar.sum_s, bar.whole_s) for bar in of_point)
    for place, bar in enumerate(of_point):
        _draw(axes, place, bar, end_s)
    axes.set(xlim=(0, end_s), ylim=(len(of_point) - 0.3, -0.6), yticks=range(len(of_point)), xlabel="time of a call",
        yticklabels=[bar.implementation for bar in of_point])  # fmt: skip
    axes.grid(visible=False, axis="y")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: units.seconds(value, trim=True) or "0"))
    origin = [vars(profile.origin) for profile in profiles]
    return finished(
        axes,
        f"stages-{point.name}",
        "Where the time of a call goes",
        facts(point, origin),
        [
            *_notes(profiles, of_point),
            f"means over {counted([each.calls for each in profiles], 'call')} under the profiler",
            *origins(origin),
        ],
    )


def _draw(axes: Axes, place: int, bar: Bar, end_s: float) -> None:
    """Draw a bar with the names of its segments in them, and below it of those that are too short."""
    start_s = 0.0
    below: list[str] = []
    for each in bar.segments:
        axes.barh(place, each.time_s, 0.6, start_s, color=each.colour, edgecolor="white", linewidth=0.7,
            hatch="//" if each.is_backward else None)  # fmt: skip
        lines = [each.name, units.seconds(each.time_s)]
        if LETTER * max(map(len, lines)) < each.time_s / end_s * WIDTH:
            axes.text(start_s + each.time_s / 2, place, "\n".join(lines), ha="center", va="center", size=SMALL_SIZE,
                color=on(each.colour))  # fmt: skip
        else:
            below.append(" ".join(lines))
        start_s += each.time_s
    if bar.residual_s > 0:
        axes.barh(place, bar.residual_s, 0.6, start_s, color=RESIDUAL_COLOUR)
    axes.plot([bar.whole_s] * 2, [place - 0.4, place + 0.3], color="black", linewidth=2.5)
    axes.text(0, place + 0.34, "\n".join(wrapped(below)), va="top", size=SMALL_SIZE)
    share, how = units.percent(bar.residual_s / bar.whole_s), "in kernels" if bar.is_on_gpu else "timed"
    words = f"{units.seconds(bar.whole_s)} {how}\nresidual {units.seconds(bar.residual_s)} ({share})"
    axes.annotate(words, (max(bar.sum_s, bar.whole_s), place), (8, 0), textcoords="offset points", va="center",
        size=SMALL_SIZE, annotation_clip=False)  # fmt: skip


def _notes(profiles: Sequence[Profile], bars_of_point: Sequence[Bar]) -> Iterator[str]:
    on_gpu = any(map(is_on_gpu, profiles))
    whole = "all kernels of the call" if on_gpu else "latency of the whole, timed without the profiler"
    yield f"mark: {whole}; residual: the part of it in no segment"
    if any(segment.is_backward for bar in bars_of_point for segment in bar.segments):
        yield "hatched: backward"
    if any(not profile.stages for profile in profiles):
        yield "an operator has the colour of the stage that does such work"
