"""Every kind of picture: its words, files and SVG; and the contents of the map, the rows, the roofline and stages."""

import dataclasses
import functools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.patches import Rectangle

from bench.analyse.rows import grouped, plain, point_of
from bench.analyse.standing import choice
from bench.plan.case import Case
from bench.show.charts import catalogue, stages
from bench.show.charts.catalogue import KINDS, PNG, SVG
from bench.show.charts.sheet import Picture
from bench.store import table
from bench.store.profile import Profile
from bench.store.roofline import CEILING_BYTES, CEILING_FLOPS
from bench.store.units import seconds
from tests.make.points import vit_s
from tests.make.profiles import STAGES, graph, profile
from tests.make.results import modelled, results, summarise
from tests.show.charts.drawn import made, main, overlaps, series, texts, words

TWO = ["eager", "sdpa"]


@functools.cache
def crossed() -> pd.DataFrame:
    """Return results at two token counts with two numbers of heads, under ceilings."""
    points = [vit_s(num_tokens=tokens, num_heads=heads) for tokens in (197, 577) for heads in (6, 12)]
    records = [modelled(Case(at, name), process) for at in points for name in TWO for process in range(3)]
    ceilings = {CEILING_FLOPS: 1e11, CEILING_BYTES: 1e9}
    return summarise([dataclasses.replace(each, metrics={**each.metrics, **ceilings}) for each in records], "eager")


def apart() -> pd.DataFrame:
    """Return results at points that no axis joins."""
    return results([Case(vit_s(batch=batch), name) for batch in (1, 8) for name in TWO])


def profiles() -> list[Profile]:
    """Return profiles at two points."""
    return [of(num_tokens=tokens) for tokens in (197, 577) for of in (graph, profile)]


EXPECTED: dict[str, tuple[set[str], Callable[[], Any], list[str]]] = {
    "lines": ({"latency", "speedup", "memory"}, crossed, [*TWO, "197", "577"]),
    "rows": ({"rows"}, apart, ["sdpa", "B=1", "B=8"]),
    "winners": ({"winners"}, crossed, ["197", "577", "6", "12"]),
    "roofline": ({"roofline"}, crossed, [*TWO, "100 GFLOP/s", "1.00 GB/s"]),
    "stages": ({"stages"}, profiles, ["graph", "sdpa", *STAGES]),
}
"""For each kind: the prefixes of its names, its data, and words in its pictures."""

KIND: dict[str, Callable[[Any], Iterator[Picture]]] = {**KINDS, "stages": stages.pictures}


@functools.cache
def of_kind(name: str) -> list[Picture]:
    """Return the pictures of a kind."""
    return made(KIND[name](EXPECTED[name][1]()))


@pytest.mark.parametrize("kind", KIND)
def test_a_kind_is_drawn_with_its_words(kind: str) -> None:
    """Under names that differ, in letters of a size that can be read, and no text lies on another."""
    begin, _, expected = EXPECTED[kind]
    pictures = of_kind(kind)
    assert {each.name.partition("-")[0] for each in pictures} == begin
    assert len({each.name for each in pictures}) == len(pictures)
    written = "\n".join(map(words, pictures))
    assert [word for word in expected if word not in written] == []
    assert [overlaps(each) for each in pictures] == [[]] * len(pictures)
    assert all(float(text.get_fontsize()) > 7 for each in pictures for text in texts(each))


@pytest.mark.parametrize("kind", EXPECTED)
def test_files_are_the_same_whatever_the_users_own_style_is(kind: str, tmp_path: Path) -> None:
    """They are the same byte for byte, even if one was drawn and saved in a style with other sizes and colours."""
    one, two = (tmp_path / f"{name}{PNG if kind == 'rows' else SVG}" for name in ("one", "two"))
    style: dict[Any, Any] = {"font.size": 30, "lines.linewidth": 9, "axes.facecolor": "red"}
    with mpl.rc_context(style):
        next(catalogue.drawn(KIND[kind](EXPECTED[kind][1]()))).save(two)
    of_kind(kind)[0].save(one)
    assert one.read_bytes() == two.read_bytes()


def test_pictures_of_a_page_follow_its_colours_and_do_not_meet() -> None:
    """Texts are texts, ink and surface are variables, other colours are readable in the dark, and ids are apart."""
    drawn = [each.svg() for kind in EXPECTED for each in of_kind(kind)]
    ids = [set(re.findall(r' id="([^"]+)"', svg)) for svg in drawn]
    assert sum(map(len, ids)) == len(set().union(*ids))
    for svg, own in zip(drawn, ids, strict=True):
        assert {*re.findall(r"url\(#([^)]+)\)", svg), *re.findall(r'href="#([^"]+)"', svg)} <= own
        assert all(part in svg for part in ("<text", "var(--ink)", "var(--surface)"))
        assert not re.search(r"#ffffff(?!\))|#1b1f24|<style|<image", svg)


def test_a_hostile_name_is_text() -> None:
    """Whatever a kernel is called, nothing of it becomes an element."""
    (picture,) = made(stages.pictures([profile("<script>alert(1)</script>")]))
    assert "<script" not in picture.svg()
    assert "&lt;script&gt;" in picture.svg()


def test_pictures_are_files_with_their_names(tmp_path: Path) -> None:
    """The folder is made; what lacks values writes nothing, and makes no folder."""
    cases = [Case(vit_s(num_tokens=tokens), name) for tokens in (50, 197) for name in TWO]
    for nothing in (results(cases[:2]), results(cases, dict.fromkeys(cases, ("oom", ""))), None):
        assert catalogue.draw(tmp_path / "none", results=nothing) == []
    assert not (tmp_path / "none").exists()
    files = catalogue.draw(tmp_path / "plots", results=apart(), profiles=profiles()[:2], svg=True)
    assert sorted(files) == sorted((tmp_path / "plots").iterdir())
    assert {file.name.partition("-")[0] for file in files} == {"rows", "stages"}


def test_a_cell_has_what_to_use_in_its_colour() -> None:
    """Each cell of the map has the words of its point's choice; one that isn't decided has no colour."""
    (picture,) = of_kind("winners")
    cells = {
        (round(text.get_position()[0]), round(text.get_position()[1])): text.get_text() for text in main(picture).texts
    }
    for point, rows in grouped(plain(crossed()), point_of).items():
        at = [197, 577].index(point.num_tokens), [6, 12].index(point.num_heads)
        assert cells[at].startswith(choice(rows).name)
    filled = [patch for patch in main(picture).patches if isinstance(patch, Rectangle) and patch.get_fill()]
    assert len(filled) == len(cells) == 4
    assert all(0.1 < float(patch.get_alpha() or 0) < 0.5 for patch in filled)
    (picture,) = made(KINDS["winners"](results(table.cases(crossed()), processes=1)))
    assert "not decided" in words(picture)
    assert not any(patch.get_fill() for patch in main(picture).patches if isinstance(patch, Rectangle))


def test_a_row_has_the_speedups_of_its_point() -> None:
    """A mark stands in the row of its point at its value."""
    (picture,) = of_kind("rows")
    labels = [label.get_text() for label in main(picture).get_yticklabels()]
    gains = {f"B={row['batch']}": row["speedup"] for row in plain(apart()) if row["implementation"] == "sdpa"}
    assert {labels[round(y)]: x for x, y in series(main(picture))["sdpa"]} == pytest.approx(gains)


def test_a_mark_lies_under_the_roof() -> None:
    """At the rate of its row, over its operations per byte; the roof is the lower of both ceilings."""
    (picture,) = of_kind("roofline")
    rates = sorted(row["flops_per_s"] for row in plain(crossed()))
    marks = series(main(picture))
    assert sorted(y for name in TWO for _, y in marks[name]) == pytest.approx(rates)
    roof = np.asarray(max(main(picture).lines, key=lambda line: line.get_linewidth()).get_xydata())
    assert roof[:, 1] == pytest.approx(np.minimum(1e11, 1e9 * roof[:, 0]))


def test_bars_add_up_to_the_whole() -> None:
    """Segments and the rest take the time of the profiled call, and the mark is at the time of a plain one."""
    of = graph(residual_s=2e-3)
    (picture,) = made(stages.pictures([of]))
    bars = [patch.get_width() for patch in main(picture).patches if isinstance(patch, Rectangle)]
    assert sum(bars) == pytest.approx(of.profiled_s)
    assert bars[-1] == pytest.approx(2e-3)
    assert f"graph: {seconds(of.profiled_s)} under the profiler, {seconds(2e-3)}" in words(picture)
    (mark,) = main(picture).lines
    assert {*np.asarray(mark.get_xdata())} == {of.timed_s}
    assert main(picture).get_xlim() == (0, max(of.timed_s, of.profiled_s))
