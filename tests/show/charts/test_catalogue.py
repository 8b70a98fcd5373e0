"""What is drawn of which material, as files."""

import dataclasses
import functools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
import pytest

from bench.analyse.rows import grouped, point_of
from bench.analyse.summary import summarise
from bench.plan.case import Case
from bench.show.answer import choice_of, short
from bench.show.charts import catalogue, stages
from bench.show.charts.catalogue import KINDS, PNG, SVG
from bench.show.charts.sheet import Picture
from bench.show.rows import plain
from bench.store.profile import Profile
from bench.store.roofline import CEILING_BYTES, CEILING_FLOPS
from bench.store.units import seconds
from tests.make.points import vit_s
from tests.make.profiles import profile, stepwise
from tests.make.results import modelled, results
from tests.show.charts.drawn import made, texts
from tests.show.charts.test_overview import kinds_of_attention
from tests.show.charts.test_scatter import table_of_frontier

TWO = ["eager", "sdpa"]


@functools.cache
def along_tokens(*heads: int) -> pd.DataFrame:
    """Return results at two token counts with each number of heads, under ceilings."""
    points = [vit_s(num_tokens=tokens, num_heads=number) for tokens in (197, 577) for number in heads]
    records = [modelled(Case(at, name), process) for at in points for name in TWO for process in range(2)]
    ceilings = {CEILING_FLOPS: 1e11, CEILING_BYTES: 1e9}
    return summarise([dataclasses.replace(each, metrics={**each.metrics, **ceilings}) for each in records], "eager")


def points_apart() -> pd.DataFrame:
    """Return results at points that no axis joins."""
    return results([Case(vit_s(batch=batch), name) for batch in (1, 8) for name in TWO])


def profiles() -> list[Profile]:
    """Return profiles at two points."""
    return [of(num_tokens=tokens) for tokens in (197, 577) for of in (stepwise, profile)]


def in_cells(table: pd.DataFrame) -> list[str]:
    """Return what stands in the cells of a map: the implementation to use at each point, and its bound or its lead."""
    by_point = grouped(plain(table), point_of).values()
    return [line for rows in by_point for line in short(choice_of(rows))]


def of_profiles(of: Sequence[Profile]) -> list[str]:
    """Return the implementations of profiles, and how long a call took."""
    return [words for each in of for words in (each.case.implementation, f"{seconds(each.timed_s)} timed")]


EXPECTED: dict[str, tuple[set[str], Callable[[], Any], Callable[[Any], list[str]]]] = {
    "lines": ({"latency", "speedup", "memory"}, lambda: along_tokens(6), lambda _: [*TWO, "197", "577"]),
    "rows": ({"rows"}, points_apart, lambda _: ["sdpa", "B=1", "B=8"]),
    "scaling": ({"scaling"}, lambda: along_tokens(6), lambda _: [*TWO, "197", "577"]),
    "winners": ({"winners"}, lambda: along_tokens(6, 12), lambda of: [*in_cells(of), "197", "577", "6", "12"]),
    "overview": (
        {"overview"},
        kinds_of_attention,
        lambda of: [f"{each:.2f}" for each in of.loc[of["rank"] == 1, "speedup"].fillna(1)],
    ),
    "roofline": ({"roofline"}, lambda: along_tokens(6), lambda _: [*TWO, "100 GFLOP/s", "1.00 GB/s"]),
    "frontier": ({"frontier"}, table_of_frontier, lambda _: [*TWO, "float32", "bfloat16"]),
    "stages": ({"stages"}, profiles, of_profiles),
}
"""Of each kind: how its names begin, what it is drawn from, and the texts that all its pictures have at least."""


def of_kind(name: str) -> tuple[Any, list[Picture]]:
    """Return the material of a kind, and its pictures."""
    of: dict[str, Callable[[Any], Iterator[Picture]]]
    of = {**KINDS, "stages": stages.pictures}
    material = EXPECTED[name][1]()
    return material, made(of[name](material))


def test_every_kind_is_expected() -> None:
    """A kind that is added is tested."""
    assert {*EXPECTED} == {*KINDS, "stages"}


@pytest.mark.parametrize("kind", EXPECTED)
def test_a_kind_is_drawn_with_all_its_words_and_the_same_again(kind: str, tmp_path: Path) -> None:
    """Each text as often as it is to stand there, and large enough; byte for byte, whatever the user's own style is."""
    begin, _, expected = EXPECTED[kind]
    material, pictures = of_kind(kind)
    assert {each.name.partition("-")[0] for each in pictures} == begin
    assert len({each.name for each in pictures}) == len(pictures)
    written = [text for each in pictures for text in texts(each)]
    assert all(float(text.get_fontsize()) > 5 for text in written)
    for words, number in Counter(expected(material)).items():
        assert sum(words in text.get_text() for text in written) >= number, words
    for number, name in enumerate((f"one{PNG}", f"one{SVG}", f"two{PNG}", f"two{SVG}")):
        style: dict[Any, Any] = {"font.size": 30, "lines.linewidth": 9, "axes.facecolor": "red"} if number > 1 else {}
        with mpl.rc_context(style):
            of_kind(kind)[1][0].save(tmp_path / name)
    for suffix in (PNG, SVG):
        assert (tmp_path / f"one{suffix}").read_bytes() == (tmp_path / f"two{suffix}").read_bytes()


CASES = [Case(vit_s(num_tokens=tokens), name) for tokens in (50, 197) for name in TWO]


@pytest.mark.parametrize(
    "results",
    [results(CASES[:2]), results(CASES, dict.fromkeys(CASES, ("oom", ""))), None],
    ids=["a single point", "nothing measured", "nothing at all"],
)
def test_what_lacks_values_writes_nothing(results: pd.DataFrame | None, tmp_path: Path) -> None:
    """A kind without points is left out, and no folder is made for nothing."""
    assert catalogue.draw(tmp_path / "plots", results=results) == []
    assert not (tmp_path / "plots").exists()


def test_pictures_are_files_with_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is made."""
    _, (picture, *_) = of_kind("frontier")

    def two(_material: object) -> Iterator[Picture]:
        return (dataclasses.replace(picture, name=name) for name in ("mine", "second"))

    monkeypatch.setattr(catalogue, "KINDS", {"two": two})
    drawn = catalogue.draw(tmp_path / "plots", results=points_apart(), svg=True)
    assert drawn == [tmp_path / "plots" / f"{name}{end}" for name in ("mine", "second") for end in (PNG, SVG)]
    assert sorted(drawn) == sorted((tmp_path / "plots").iterdir())
    assert [path.suffix for path in catalogue.draw(tmp_path, profiles=[profile()])] == [PNG]
