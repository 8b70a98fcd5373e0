"""The kinds of pictures, each with what it is drawn from.

A kind is a module with `figures(material)`, which yields the name and the figure of each picture that the material has
enough values for. An entry in KINDS makes every command draw it that has the material.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import pandas as pd

from bench.plan.errors import WrongRequest
from bench.show.comparison.report import Report
from bench.show.figures import (
    changes,
    frontier,
    lines,
    page,
    roofline,
    scaling,
    stage_areas,
    stage_bars,
    winner_map,
)
from bench.show.figures.page import Drawing
from bench.store.profile import Profile


class Needs(Enum):
    """What a picture is drawn from."""

    RESULTS = "the table of results"
    PROFILES = "profiles of cases"
    COMPARISON = "a comparison of two runs"


@dataclass(frozen=True)
class Kind:
    """A kind of picture; `figures` takes what the kind needs."""

    name: str
    needs: Needs
    figures: Callable[[Any], Iterator[Drawing]]


KINDS = (
    Kind("lines", Needs.RESULTS, lines.figures),
    Kind("scaling", Needs.RESULTS, scaling.figures),
    Kind("winners", Needs.RESULTS, winner_map.figures),
    Kind("roofline", Needs.RESULTS, roofline.figures),
    Kind("frontier", Needs.RESULTS, frontier.figures),
    Kind("stages", Needs.PROFILES, stage_bars.figures),
    Kind("shares", Needs.PROFILES, stage_areas.figures),
    Kind("changes", Needs.COMPARISON, changes.figures),
)


def draw(
    folder: Path,
    kinds: Collection[str] | None = None,
    *,
    results: pd.DataFrame | None = None,
    profiles: Sequence[Profile] = (),
) -> list[Path]:
    """Write every picture of these kinds, of all by default, that the material has values for.

    Returns a PNG and an SVG for each picture. The folder is made if there is something to write.
    The same material gives the same SVG, byte for byte.
    Raises OSError if a file can't be written.
    """
    drawings = _drawings(kinds, {Needs.RESULTS: results, Needs.PROFILES: profiles or None})
    return [path for name, figure in drawings for path in page.save(figure, name, folder)]


def draw_comparison(report: Report, file: Path) -> bool:
    """Write the pictures of a comparison, the first into this file, others beside it; return whether there are any.

    Raises WrongRequest if the file can't be written, or if its name isn't that of a picture.
    """
    page.check_name(file)
    drawings = list(_drawings(None, {Needs.COMPARISON: report}))
    for number, (name, figure) in enumerate(drawings):
        path = file.with_stem(f"{file.stem}-{name}") if number else file
        try:
            page.save_as(figure, path)
        except OSError as error:
            raise WrongRequest(f"{path} can't be written: {error.strerror}") from None
    return bool(drawings)


def _drawings(kinds: Collection[str] | None, material: dict[Needs, Any]) -> Iterator[Drawing]:
    for kind in KINDS:
        if (kinds is None or kind.name in kinds) and material.get(kind.needs) is not None:
            yield from kind.figures(material[kind.needs])
