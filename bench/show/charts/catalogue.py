"""The kinds of pictures, each with what it is drawn from.

A kind is a function of its material that yields each picture that the material has enough values for. An entry in KINDS
makes every command draw it that has the material.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import pandas as pd

from bench.plan.errors import WrongRequest, refusing
from bench.show.charts import changes, growth, lines, overview, points, scatter, stages, winners
from bench.show.comparison.report import Report
from bench.show.figures.page import save_as
from bench.show.picture import Picture
from bench.store.profile import Profile

PNG, SVG = ".png", ".svg"


class Needs(Enum):
    """What a picture is drawn from."""

    RESULTS = "the table of results"
    PROFILES = "profiles of cases"
    COMPARISON = "a comparison of two runs"


@dataclass(frozen=True)
class Kind:
    """A kind of picture; `pictures` takes what the kind needs."""

    name: str
    needs: Needs
    pictures: Callable[[Any], Iterator[Picture]]


KINDS = (
    Kind("lines", Needs.RESULTS, lines.pictures),
    Kind("rows", Needs.RESULTS, points.pictures),
    Kind("scaling", Needs.RESULTS, growth.pictures),
    Kind("winners", Needs.RESULTS, winners.pictures),
    Kind("overview", Needs.RESULTS, overview.pictures),
    Kind("roofline", Needs.RESULTS, scatter.rooflines),
    Kind("frontier", Needs.RESULTS, scatter.frontiers),
    Kind("stages", Needs.PROFILES, stages.pictures),
    Kind("changes", Needs.COMPARISON, changes.pictures),
)


def draw(
    folder: Path,
    kinds: Collection[str] | None = None,
    *,
    results: pd.DataFrame | None = None,
    profiles: Sequence[Profile] = (),
    svg: bool = False,
) -> list[Path]:
    """Write every picture of these kinds, of all by default, that the material has values for, and return the files.

    A picture is a PNG, with `svg` an SVG too. The folder is made if there is something to write.
    The same material gives the same SVG, byte for byte.
    Raises OSError if a file can't be written.
    """
    paths = []
    for picture in _pictures(kinds, {Needs.RESULTS: results, Needs.PROFILES: profiles or None}):
        folder.mkdir(parents=True, exist_ok=True)
        for suffix in (PNG, SVG) if svg else (PNG,):
            paths.append(folder / f"{picture.name}{suffix}")
            save_as(picture, paths[-1])
    return paths


def draw_comparison(report: Report, file: Path) -> bool:
    """Write the pictures of a comparison, the first into this file, others beside it; return whether there are any.

    Raises WrongRequest if the file can't be written, or if its name isn't that of a picture.
    """
    check_name(file)
    drawn = list(_pictures(None, {Needs.COMPARISON: report}))
    for number, picture in enumerate(drawn):
        path = file.with_stem(f"{file.stem}-{picture.name}") if number else file
        with refusing(f"{path} can't be written"):
            save_as(picture, path)
    return bool(drawn)


def check_name(file: Path) -> None:
    """Raise WrongRequest for a file name that is not that of a picture."""
    if file.suffix not in (PNG, SVG):
        raise WrongRequest(f"the picture {file} must end in {PNG} or {SVG}")


def _pictures(kinds: Collection[str] | None, material: dict[Needs, Any]) -> Iterator[Picture]:
    for kind in KINDS:
        if (kinds is None or kind.name in kinds) and material.get(kind.needs) is not None:
            yield from kind.pictures(material[kind.needs])
