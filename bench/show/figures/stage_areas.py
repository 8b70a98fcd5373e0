"""The picture of the share of each stage against tokens. Lengths are in inches."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke

from bench.analyse.scaling.series import TOKENS, moving
from bench.analyse.scaling.stage_growth import StageGrowth, stage_growths
from bench.show.figures import log_axis, page
from bench.show.figures.captions import calls, facts, origin_rows
from bench.show.figures.placement import spread
from bench.show.palette import QUADRATIC, stage_colour
from bench.show.rows import origins
from bench.store import units
from bench.store.profile import BACKWARD, Profile

LEFT, AXES_HEIGHT = 0.86, 3.7

LEADER, SQUARE, GAP = 0.18, 0.12, 0.06
"""From the axes to a label, the side of its coloured square, and from there to its text."""

ABOVE, HIGHEST = 0.08, 0.92
"""The distance from a mark to its share; shares from HIGHEST on are written below their mark."""

HALF = 0.5
TICKS = (0, 0.25, 0.5, 0.75, 1)


def figures(profiles: Iterable[Profile]) -> Iterator[page.Drawing]:
    """Yield a picture of each series of profiles along the tokens."""
    return ((name(of), figure(of)) for of in stage_growths(profiles))


def name(of: StageGrowth) -> str:
    """Return the picture in one word: a file name that stays the same whatever else was profiled."""
    first = of.profiles[0].case
    return f"shares-{TOKENS.name}-{first.point.short_name(moving(TOKENS, first.point))}-{first.implementation}".replace(
        ":", "."
    )


@page.styled()
def figure(of: StageGrowth) -> Figure:
    """Return the picture of a series as a figure."""
    labels = [_label(of, stage) for stage in of.stages]
    point, implementation = of.profiles[0].case.point, of.profiles[0].case.implementation
    made = page.new_figure(
        "Share of each stage against tokens",
        [*facts(point, origin_rows(of.profiles), moving(TOKENS, point)), implementation],
        list(_notes(of)),
        [AXES_HEIGHT],
        left=LEFT,
        right=LEADER + SQUARE + GAP + max(map(page.text_width, labels)) + page.EDGE,
    )
    axes = made.axes[0]
    _frame(axes, of.places)
    _areas(axes, of)
    _quadratic(axes, of)
    _labels(axes, of)
    return made


def stacked(of: StageGrowth) -> list[str]:
    """Return the stages from the bottom to the top: the quadratic ones first, then the others."""
    return sorted(of.stages, key=lambda stage: stage not in QUADRATIC)


def _notes(of: StageGrowth) -> Iterator[str]:
    quadratic = [stage for stage in of.stages if stage in QUADRATIC]
    yield f"black line: {', '.join(quadratic[:-1])} and {quadratic[-1]} together, whose work grows with N²"
    if any(stage.direction == BACKWARD for profile in of.profiles for stage in profile.stages):
        yield "forward and backward together"
    yield calls(of.profiles)
    yield from origins(origin_rows(of.profiles))


def _frame(axes: Axes, places: Sequence[int]) -> None:
    ends = places[0], places[-1]
    page.log_scale(axes.xaxis, ends, places, page.tick_labels(places, ends))
    axes.set_ylim(0, 1)
    axes.set_yticks(TICKS, labels=[f"{tick:.0%}" for tick in TICKS])
    axes.set_xlabel(f"{TOKENS.name} {TOKENS.symbol}")
    axes.set_ylabel("share of the time in stages")
    axes.grid(visible=False)


def _areas(axes: Axes, of: StageGrowth) -> None:
    stages = stacked(of)
    areas = axes.stackplot(
        of.places,
        [of.share_of([stage]) for stage in stages],
        colors=[stage_colour(stage) for stage in stages],
        edgecolor="white",
        linewidth=0.5,
    )
    for stage, area in zip(stages, areas, strict=True):
        area.set_gid(f"area {stage}")


def _quadratic(axes: Axes, of: StageGrowth) -> None:
    """Draw the total share of the quadratic stages with its value at each place, and a rule at one half."""
    shares = of.share_of(QUADRATIC)
    axes.axhline(HALF, color=page.INK, linewidth=0.8, linestyle=(0, (4, 3)))
    options: dict[str, Any] = {"color": page.INK, "linewidth": 2, "marker": "o", "markersize": 5, "clip_on": False}
    axes.plot(of.places, shares, gid="quadratic", **options)
    texts = [f"{share:.0%}" for share in shares]
    widths = [page.text_width(text, bold=True) + 2 * GAP for text in texts]
    length, ends = page.AXES_WIDTH, page.to_inches(axes, list(zip(of.places, shares, strict=True)))
    # moved if a text would cross an edge of the axes
    centres = [min(max(x, width / 2), length - width / 2) for x, width in zip(ends[:, 0], widths, strict=True)]
    last = len(texts) - 1
    for index in log_axis.spaced(centres, widths, [last, 0, *range(1, last)]):
        is_low = shares[index] < HIGHEST
        axes.text(
            centres[index],
            ends[index, 1] + (ABOVE if is_low else -ABOVE),
            texts[index],
            transform=page.inches(axes),
            ha="center",
            va="bottom" if is_low else "top",
            weight="bold",
            gid=f"share {of.places[index]}",
            path_effects=[withStroke(linewidth=2.4, foreground="white")],
        )


def _label(of: StageGrowth, stage: str) -> str:
    return f"{stage} {units.percent(of.share_of([stage])[-1])}"


def _labels(axes: Axes, of: StageGrowth) -> None:
    """Label every area beside the last place, with its share there, a leader and a coloured square."""
    stages = stacked(of)
    last = [of.share_of([stage])[-1] for stage in stages]
    middles = [(top - share / 2) * AXES_HEIGHT for top, share in zip(accumulate(last), last, strict=True)]
    places = spread(middles, page.LABEL_GAP, page.LABEL_GAP / 2, AXES_HEIGHT - page.LABEL_GAP / 2)
    options: dict[str, Any] = {"transform": page.inches(axes), "clip_on": False}
    square = page.AXES_WIDTH + LEADER
    for stage, start, place in zip(stages, middles, places, strict=True):
        colour = stage_colour(stage)
        axes.plot([page.AXES_WIDTH, square], [start, place], color=page.GREY, linewidth=0.7, **options)
        corner = (square, place - SQUARE / 2)
        axes.add_patch(Rectangle(corner, SQUARE, SQUARE, facecolor=colour, edgecolor="none", **options))
        page.write_beside(axes, LEADER + SQUARE + GAP, place, _label(of, stage), colour, f"label {stage}")
