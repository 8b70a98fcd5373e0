"""The kinds of pictures, each with what it is drawn from.

A kind is a function of its material that yields the name and the picture of each picture that the material has enough
values for. An entry in KINDS makes every command draw it that has the material.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from bench.plan.errors import WrongRequest, refusing
from bench.show.charts import base, changes, overview, scatter, stages, winners
from bench.show.charts.base import Sheet
from bench.show.comparison.report import Report
from bench.show.figures import lines, page, rows, scaling
from bench.store.profile import Profile

PNG, SVG = ".png", ".svg"

Drawing = tuple[str, Figure | Sheet]
"""A picture's name, which is that of its files, and the picture: a figure of matplotlib, or a chart."""


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
    pictures: Callable[[Any], Iterator[Drawing]]


KINDS = (
    Kind("lines", Needs.RESULTS, lines.figures),
    Kind("rows", Needs.RESULTS, rows.figures),
    Kind("scaling", Needs.RESULTS, scaling.figures),
    Kind("winners", Needs.RESULTS, winners.sheets),
    Kind("overview", Needs.RESULTS, overview.figures),
    Kind("roofline", Needs.RESULTS, scatter.rooflines),
    Kind("frontier", Needs.RESULTS, scatter.frontiers),
    Kind("stages", Needs.PROFILES, stages.sheets),
    Kind("changes", Needs.COMPARISON, changes.sheets),
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
    for name, picture in _drawings(kinds, {Needs.RESULTS: results, Needs.PROFILES: profiles or None}):
        folder.mkdir(parents=True, exist_ok=True)
        for suffix in (PNG, SVG) if svg else (PNG,):
            paths.append(folder / f"{name}{suffix}")
            save(picture, paths[-1])
    return paths


def draw_comparison(report: Report, file: Path) -> bool:
    """Write the pictures of a comparison, the first into this file, others beside it; return whether there are any.

    Raises WrongRequest if the file can't be written, or if its name isn't that of a picture.
    """
    check_name(file)
    drawings = list(_drawings(None, {Needs.COMPARISON: report}))
    for number, (name, picture) in enumerate(drawings):
        path = file.with_stem(f"{file.stem}-{name}") if number else file
        with refusing(f"{path} can't be written"):
            save(picture, path)
    return bool(drawings)


def check_name(file: Path) -> None:
    """Raise WrongRequest for a file name that is not that of a picture."""
    if file.suffix not in (PNG, SVG):
        raise WrongRequest(f"the picture {file} must end in {PNG} or {SVG}")


def save(picture: Figure | Sheet, file: Path) -> None:
    """Write a picture in the format that the file's name ends with; raises OSError if it can't be written."""
    if isinstance(picture, Sheet):
        base.save_as(picture, file)
    else:
        page.save_as(picture, file)


def _drawings(kinds: Collection[str] | None, material: dict[Needs, Any]) -> Iterator[Drawing]:
    for kind in KINDS:
        if (kinds is None or kind.name in kinds) and material.get(kind.needs) is not None:
            yield from kind.pictures(material[kind.needs])
