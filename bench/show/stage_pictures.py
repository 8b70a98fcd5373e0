"""Pictures of what profiled cases spend their time on, as PNG and SVG files."""

from collections.abc import Sequence
from pathlib import Path

from bench.analyse.stage_growth import stage_growths
from bench.plan.case import Point
from bench.show import stage_areas, stage_bars
from bench.show.page import save
from bench.store.profile import Profile


def draw(profiles: Sequence[Profile], folder: Path) -> list[Path]:
    """Write a picture of each point, and one of each series of tokens, and return the files."""
    points: dict[Point, list[Profile]] = {}
    for profile in profiles:
        points.setdefault(profile.case.point, []).append(profile)
    drawn = [(stage_bars.figure(of), stage_bars.name(of)) for of in points.values()]
    drawn += [(stage_areas.figure(of), stage_areas.name(of)) for of in stage_growths(profiles)]
    return [path for figure, name in drawn for path in save(figure, name, folder)]
