"""Pictures of profiles: for each case at a point a bar of its stages or operators."""

from collections.abc import Iterable, Iterator, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from bench.analyse.profile import is_on_gpu, whole_s
from bench.analyse.rows import grouped
from bench.plan.case import Point
from bench.show.charts.sheet import SMALL_SIZE, Picture, finished, sheet, wrapped
from bench.show.palette import CATEGORY_COLOURS, COLOURS, OTHER, RESIDUAL_COLOUR, category, stage_colour
from bench.show.rows import facts, origins
from bench.show.text import LONGEST_NAME, counted, cut, middle
from bench.store import units
from bench.store.profile import BACKWARD, Profile

MOST_NAMED, LEAST_NAMED = 6, 0.01
"""The most named operators in a bar, and the least share of a named operator."""

UNSAID = ("aten::", "_scaled_dot_product_")
"""Prefixes of operators' names that carry no meaning."""

WIDTH, BAR, LINE, LETTER, LETTERS = 5.6, 0.32, 0.15, 0.064, 88
"""The width of the axes, the heights of a bar and a line, and a letter's width, in inches; the letters in a line."""

Segment = tuple[str, float, str, bool]
"""A part of a bar: its name, its seconds, its colour, and whether it belongs to the backward pass."""


def pictures(profiles: Iterable[Profile]) -> Iterator[Picture]:
    """Yield the picture of each point that has profiles."""
    return (picture(point, of) for point, of in by_point(profiles).items())


def by_point(profiles: Iterable[Profile]) -> dict[Point, list[Profile]]:
    """Return the profiles of each point."""
    return grouped(profiles, lambda profile: profile.case.point)


def picture(point: Point, profiles: Sequence[Profile]) -> Picture:
    """Return the picture of the profiles of one point, first the ones with stages, then by time, the slowest first.

    A bar has its segments and the remaining time, and on a CPU a mark at the latency without the profiler. Names are
    in the segments, or below for short segments.
    """
    ordered = sorted(profiles, key=lambda profile: (not profile.stages, -whole_s(profile)))
    end_s = max(max(whole_s(each), 0 if is_on_gpu(each) else each.timed_s) for each in ordered)
    below = [wrapped(_too_short(each, end_s), LETTERS) for each in ordered]
    heights = [LINE * (2.2 + len(lines)) + BAR for lines in below]
    axes = sheet(sum(heights), WIDTH)
    top = 0.0
    for profile, lines, height in zip(ordered, below, heights, strict=True):
        _draw(axes, top, profile, end_s, lines)
        top += height
    axes.set(xlim=(0, end_s), ylim=(sum(heights), 0), yticks=[], xlabel="time of a call")
    axes.spines["left"].set_visible(False)
    axes.grid(visible=False)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: units.seconds(value, trim=True) if value else "0"))
    origin = [vars(profile.origin) for profile in profiles]
    calls = counted([each.calls for each in profiles], "call")
    return finished(
        axes,
        f"stages-{point.name}",
        "Where the time of a call goes",
        facts(point, origin),
        [*_notes(ordered), f"means over {calls} under the profiler", *origins(origin)],
    )


def segments(profile: Profile) -> list[Segment]:
    """Return the stages of a profile; without stages, the largest operators ordered by category.

    All other operators with a time form one segment at the end. On a GPU operators that launch nothing have no time.
    """
    if profile.stages:
        return [
            (f"{each.name}{', backward' * (each.direction == BACKWARD)}", each.time_s, stage_colour(each.name),
             each.direction == BACKWARD)
            for each in profile.stages
        ]  # fmt: skip
    ordered = sorted(profile.operators, key=lambda operator: -operator.time_s)
    least_s = LEAST_NAMED * sum(each.time_s for each in ordered)
    largest = [operator for operator in ordered[:MOST_NAMED] if operator.time_s >= least_s]
    rest = [operator for operator in ordered[len(largest) :] if operator.time_s]
    places = list(CATEGORY_COLOURS)
    largest.sort(key=lambda operator: places.index(category(operator.name)))
    named: list[Segment] = [
        (short(each.name), each.time_s, CATEGORY_COLOURS[category(each.name)], False) for each in largest
    ]
    others: Segment = (f"{len(rest)} {OTHER}", sum(each.time_s for each in rest), CATEGORY_COLOURS[OTHER], False)
    return [*named, others] if rest else named


def short(name: str) -> str:
    """Return an operator's name, shortened for a picture."""
    for beginning in UNSAID:
        name = name.removeprefix(beginning)
    return cut(name, LONGEST_NAME)


def _has_room(name: str, time_s: float, end_s: float) -> bool:
    return LETTER * max(len(name), len(units.seconds(time_s))) < time_s / end_s * WIDTH


def _too_short(profile: Profile, end_s: float) -> list[str]:
    """Return the segments whose names don't fit into them."""
    return [
        f"{name} {units.seconds(time_s)}"
        for name, time_s, _, _ in segments(profile)
        if not _has_room(name, time_s, end_s)
    ]


def _draw(axes: Axes, top: float, profile: Profile, end_s: float, below: Sequence[str]) -> None:
    """Draw the bar of a profile, with its name and times above and segments too short for a name below."""
    all_s = whole_s(profile)
    rest_s = all_s - sum(time_s for _, time_s, _, _ in segments(profile))
    how = "in kernels" if is_on_gpu(profile) else "under the profiler"
    no_part = "no stage" if profile.stages else "no operator"
    rest = f"{units.seconds(rest_s)} ({units.percent(rest_s / all_s)}) in {no_part}"
    name = middle(profile.case.implementation, LONGEST_NAME)
    axes.text(0, top + LINE, f"{name}: {units.seconds(all_s)} {how}, {rest}", va="center", size=SMALL_SIZE,
        weight="bold")  # fmt: skip
    start_s, at = 0.0, top + LINE * 1.7 + BAR / 2
    for name, time_s, colour, is_backward in segments(profile):
        axes.barh(at, time_s, BAR, start_s, color=colour, edgecolor=COLOURS["surface"], linewidth=0.7,
            hatch="//" if is_backward else None)  # fmt: skip
        if _has_room(name, time_s, end_s):
            axes.text(start_s + time_s / 2, at, f"{name}\n{units.seconds(time_s)}", ha="center", va="center",
                size=SMALL_SIZE - 1, color="black")  # fmt: skip
        start_s += time_s
    if rest_s > 0:
        axes.barh(at, rest_s, BAR, start_s, color=RESIDUAL_COLOUR)
    if not is_on_gpu(profile):
        axes.plot([profile.timed_s] * 2, [at - BAR * 0.65, at + BAR * 0.65], color=COLOURS["ink"], linewidth=2.0)
    axes.text(0, at + BAR * 0.75, "\n".join(below), va="top", size=SMALL_SIZE, color=COLOURS["quiet"])


def _notes(profiles: Sequence[Profile]) -> Iterator[str]:
    if not any(map(is_on_gpu, profiles)):
        yield "mark: latency without the profiler"
    if any(each.direction == BACKWARD for profile in profiles for each in profile.stages):
        yield "hatched: backward"
