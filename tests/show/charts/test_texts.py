"""The texts of files: each name, bound and number that a picture is to show is in it, large enough, and inside."""

import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from matplotlib.figure import Figure

from bench.analyse.rows import grouped, point_of
from bench.plan.case import Case
from bench.show.answer import choice_of, short
from bench.show.charts.base import Sheet, save_as, text_px
from bench.show.charts.catalogue import KINDS, Kind
from bench.show.charts.changes import is_drawn
from bench.show.comparison.report import Report
from bench.show.rows import plain
from bench.store.profile import Profile
from bench.store.units import seconds
from tests.make.comparisons import every_verdict
from tests.make.points import vit_s
from tests.make.results import results
from tests.show.charts.test_catalogue import material
from tests.show.charts.test_overview import kinds_of_attention
from tests.show.charts.test_scatter import table_of_frontier
from tests.show.figures.legible import texts

TRANSFORM = re.compile(r"(translate|rotate)\((-?[\d.e-]+)[ ,]*(-?[\d.e-]+)?\)")
ANCHORS = {"start": 0.0, "middle": 0.5, "end": 1.0}

Text = tuple[str, float, tuple[float, float, float, float]]
"""Words, their size in pixels, and the ends that they have on the picture: left, top, right, bottom."""


def inside(transform: str, place: complex, turn: complex) -> tuple[complex, complex]:
    """Return the place and the direction of what has a transform, in something at a place with a direction."""
    for name, first, second in TRANSFORM.findall(transform):
        if name == "translate":
            place += turn * complex(float(first), float(second or 0))
        else:
            turn *= 1j ** (float(first) / 90)
    return place, turn


def of_svg(element: ET.Element, place: complex = 0j, turn: complex = 1 + 0j) -> Iterator[Text]:
    """Yield the texts of an SVG that can be seen."""
    place, turn = inside(element.get("transform", ""), place, turn)
    if element.tag.endswith("}text") and float(element.get("opacity", "1")) > 0:
        size = float(element.get("font-size", "0px").removesuffix("px"))
        for line in [*element] or [element]:
            place += turn * 1j * float(line.get("dy", "0"))
            wide = text_px(line.text or "", max(size, 1.0), bold=element.get("font-weight") in ("bold", "600"))
            begin = place - turn * wide * ANCHORS[element.get("text-anchor", "start")]
            ends = [begin, begin + turn * wide, begin - turn * 1j * size, begin + turn * (wide - 1j * size)]
            across, down = [each.real for each in ends], [each.imag for each in ends]
            yield line.text or "", size, (min(across), min(down), max(across), max(down))
        return
    for each in element:
        yield from of_svg(each, place, turn)


def shown(picture: Figure | Sheet, folder: Path) -> list[str]:
    """Return the texts of a picture's file, and see that each has a size and lies on it.

    A file of matplotlib is as large as what is drawn, and has its texts as paths.
    """
    if isinstance(picture, Figure):
        assert all(float(text.get_fontsize()) > 5 for text in texts(picture))
        return [text.get_text() for text in texts(picture)]
    save_as(picture, folder / "picture.svg")
    whole = ET.parse(folder / "picture.svg").getroot()  # noqa: S314 - it is our own
    width, height = float(whole.attrib["width"]), float(whole.attrib["height"])
    found = list(of_svg(whole))
    for words, size, (left, top, right, bottom) in found:
        assert size > 5, words
        assert min(left, top) > -1, words
        assert max(right - width, bottom - height) < 1, words
    return [words for words, _, _ in found]


def rows_of_points() -> pd.DataFrame:
    """Return results at points that no axis joins."""
    return results([Case(vit_s(batch=batch), name) for batch in (1, 8) for name in ("eager", "sdpa")])


def in_cells(table: pd.DataFrame) -> list[str]:
    """Return what stands in the cells of a map: the implementation to use at each point, and its bound or its lead."""
    by_point = grouped(plain(table), point_of).values()
    return [line for rows in by_point for line in short(choice_of(rows))]


def of_profiles(profiles: Sequence[Profile]) -> list[str]:
    """Return the implementations of profiles, and how long a call took."""
    return [words for each in profiles for words in (each.case.implementation, f"{seconds(each.timed_s)} timed")]


def of_comparison(report: Report) -> list[str]:
    """Return the implementation and the verdict of each row that has a change."""
    return [words for row in report.rows if is_drawn(row) for words in (row.case.implementation, row.verdict)]


TWO = ["eager", "sdpa"]
EXPECTED: dict[str, tuple[Callable[[], Any], Callable[[Any], list[str]]]] = {
    "lines": (lambda: material(6)["results"], lambda _: [*TWO, "197", "577"]),
    "rows": (rows_of_points, lambda _: [*TWO, "B=1", "B=8"]),
    "scaling": (lambda: material(6)["results"], lambda _: [*TWO, "197", "577"]),
    "winners": (lambda: material(6, 12)["results"], lambda of: [*in_cells(of), "197", "577", "6", "12"]),
    "overview": (
        kinds_of_attention,
        lambda of: [f"{each:.2f}" for each in of.loc[of["rank"] == 1, "speedup"].fillna(1)],
    ),
    "roofline": (lambda: material(6)["results"], lambda _: [*TWO, "100 GFLOP/s", "1.00 GB/s"]),
    "frontier": (lambda: table_of_frontier(tokens=(50,)), lambda _: [*TWO, "float32", "bfloat16"]),
    "stages": (lambda: material(6)["profiles"], of_profiles),
    "changes": (lambda: Report(every_verdict()), of_comparison),
}
"""By kind of picture what it is drawn from, and the texts that all of its pictures together have at least."""


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_file_has_the_text_of_each_mark(kind: Kind, tmp_path: Path) -> None:
    """Each as often as it is to stand there; none is too small to be read, and none is cut."""
    make, expected = EXPECTED[kind.name]
    material = make()
    written = [words for _, picture in kind.pictures(material) for words in shown(picture, tmp_path)]
    for words, number in Counter(expected(material)).items():
        assert sum(words in each for each in written) >= number, words
