"""The kinds of pictures of results, and the files that are drawn of them, of profiles and of comparisons.

A kind is a function of a table of results that yields each picture that the table has enough values for. An entry in
KINDS makes every command draw it.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain
from pathlib import Path

import pandas as pd

from bench.plan.errors import WrongRequest, refusing
from bench.show.charts import changes, growth, lines, overview, points, scatter, stages, winners
from bench.show.charts.sheet import Picture, styled
from bench.show.comparison.report import Report
from bench.store.profile import Profile

PNG, SVG = ".png", ".svg"

KINDS: dict[str, Callable[[pd.DataFrame], Iterator[Picture]]] = {
    "lines": lines.pictures,
    "rows": points.pictures,
    "scaling": growth.pictures,
    "winners": winners.pictures,
    "overview": overview.pictures,
    "roofline": scatter.rooflines,
    "frontier": scatter.frontiers,
}


def of_results(results: pd.DataFrame, kinds: Collection[str] | None = None) -> Iterator[Picture]:
    """Yield the pictures of a table of results of these kinds, of all by default."""
    return drawn(chain.from_iterable(of(results) for name, of in KINDS.items() if kinds is None or name in kinds))


def drawn(pictures: Iterator[Picture]) -> Iterator[Picture]:
    """Yield pictures, each of which is drawn in the suite's own style."""
    while True:
        with styled():
            picture = next(pictures, None)
        if picture is None:
            return
        yield picture


def draw(
    folder: Path,
    kinds: Collection[str] | None = None,
    *,
    results: pd.DataFrame | None = None,
    profiles: Sequence[Profile] = (),
    svg: bool = False,
) -> list[Path]:
    """Write every picture of profiles and of these kinds, of all by default, and return the files.

    A picture is a PNG, with `svg` an SVG too. The folder is made if there is something to write.
    The same material gives the same SVG, byte for byte.
    Raises OSError if a file can't be written.
    """
    paths = []
    for picture in chain(() if results is None else of_results(results, kinds), drawn(stages.pictures(profiles))):
        folder.mkdir(parents=True, exist_ok=True)
        for suffix in (PNG, SVG) if svg else (PNG,):
            paths.append(folder / f"{picture.name}{suffix}")
            picture.save(paths[-1])
    return paths


def draw_comparison(report: Report, file: Path) -> bool:
    """Write the pictures of a comparison, the first into this file, others beside it; return whether there are any.

    Raises WrongRequest if the file can't be written, or if its name isn't that of a picture.
    """
    check_name(file)
    pictures = [*drawn(changes.pictures(report))]
    for number, picture in enumerate(pictures):
        path = file.with_stem(f"{file.stem}-{picture.name}") if number else file
        with refusing(f"{path} can't be written"):
            picture.save(path)
    return bool(pictures)


def check_name(file: Path) -> None:
    """Raise WrongRequest for a file name that is not that of a picture."""
    if file.suffix not in (PNG, SVG):
        raise WrongRequest(f"the picture {file} must end in {PNG} or {SVG}")
