"""The kinds of pictures of results, and the files of these pictures and of profiles'.

A kind is a function that yields each picture for which a table of results has enough values. Every command draws the
entries of KINDS.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path

import pandas as pd

from bench.show.charts import lines, points, roofline, stages, winners
from bench.show.charts.sheet import Picture, styled
from bench.store.profile import Profile

PNG, SVG = ".png", ".svg"

KINDS: dict[str, Callable[[pd.DataFrame], Iterator[Picture]]] = {
    "winners": winners.pictures,
    "lines": lines.pictures,
    "rows": points.pictures,
    "roofline": roofline.pictures,
}


def of_results(results: pd.DataFrame) -> Iterator[Picture]:
    """Yield the pictures of a table of results."""
    return drawn(chain.from_iterable(pictures(results) for pictures in KINDS.values()))


def of_profiles(profiles: Sequence[Profile]) -> Iterator[Picture]:
    """Yield the pictures of profiles."""
    return drawn(stages.pictures(profiles))


def drawn(pictures: Iterator[Picture]) -> Iterator[Picture]:
    """Yield pictures, each drawn in the suite's own style."""
    while True:
        with styled():
            picture = next(pictures, None)
        if picture is None:
            return
        yield picture


def draw(
    folder: Path, *, results: pd.DataFrame | None = None, profiles: Sequence[Profile] = (), svg: bool = False
) -> list[Path]:
    """Write every picture of results and of profiles, and return the files.

    A picture is a PNG, and with `svg` also an SVG. The folder is made if there is something to write.
    The same data gives the same SVG, byte for byte.
    Raises OSError if a file can't be written.
    """
    paths = []
    for picture in chain(() if results is None else of_results(results), of_profiles(profiles)):
        folder.mkdir(parents=True, exist_ok=True)
        for suffix in (PNG, SVG) if svg else (PNG,):
            paths.append(folder / f"{picture.name}{suffix}")
            picture.save(paths[-1])
    return paths
