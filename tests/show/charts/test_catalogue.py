"""What is drawn of which material, as files."""

import dataclasses
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import altair as alt
import matplotlib as mpl
import pandas as pd
import pytest
from matplotlib.figure import Figure

from bench.analyse.summary import summarise
from bench.plan.case import Case
from bench.show.charts import catalogue
from bench.show.charts.base import Sheet, specification
from bench.show.charts.catalogue import KINDS, PNG, SVG, Kind, Needs
from bench.show.comparison.report import Report
from bench.store.roofline import CEILING_BYTES, CEILING_FLOPS
from tests.make.comparisons import every_verdict
from tests.make.points import vit_s
from tests.make.profiles import profile, stepwise
from tests.make.results import modelled, quick, results
from tests.show.charts.test_overview import kinds_of_attention
from tests.show.charts.test_scatter import table_of_frontier as precisions


@functools.cache
def material(*heads: int) -> dict[str, Any]:
    """Return results at two token counts with each number of heads, under ceilings, and profiles at two points."""
    points = [vit_s(num_tokens=tokens, num_heads=number) for tokens in (197, 577) for number in heads]
    cases = [Case(at, name) for at in points for name in ("eager", "sdpa")]
    ceilings = {CEILING_FLOPS: 1e11, CEILING_BYTES: 1e9}
    records = [modelled(case, process) for case in cases for process in range(2)]
    records = [dataclasses.replace(each, metrics={**each.metrics, **ceilings}) for each in records]
    profiles = [of(num_tokens=tokens) for tokens in (197, 577) for of in (stepwise, profile)]
    return {"results": summarise(records, "eager"), "profiles": profiles}


BEGIN = {
    "lines": {"latency", "speedup", "memory"},
    "rows": {"rows"},
    "scaling": {"scaling"},
    "winners": {"winners"},
    "overview": {"overview"},
    "roofline": {"roofline"},
    "frontier": {"frontier"},
    "stages": {"stages"},
    "changes": {"changes"},
}
"""The beginning of the file names of each kind, which is asked for by its name."""


def test_every_kind_has_its_files() -> None:
    """Names are unique."""
    assert [kind.name for kind in KINDS] == list(BEGIN)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_kind_is_drawn_and_the_same_again_whatever_the_users_style(kind: Kind, tmp_path: Path) -> None:
    """A file of each picture lies in a folder that is made, an SVG too if it is asked for, the same byte for byte.

    A chart follows Vega-Lite's schema.
    """
    given = material(6, 12) if kind.name == "winners" else material(6)
    if kind.name == "rows":
        given = {"results": results([Case(vit_s(batch=batch), name) for batch in (1, 8) for name in ("eager", "sdpa")])}
    if kind.name == "overview":
        given = {"results": kinds_of_attention()}
    if kind.name == "frontier":
        given = {"results": precisions(tokens=(50,))}
    of = {
        Needs.RESULTS: given["results"],
        Needs.PROFILES: given.get("profiles"),
        Needs.COMPARISON: Report(every_verdict()),
    }
    pictures = dict(kind.pictures(of[kind.needs]))
    if kind.needs is not Needs.COMPARISON:
        with mpl.rc_context({"font.size": 30, "lines.linewidth": 9, "axes.facecolor": "red", "hatch.linewidth": 5}):
            files = catalogue.draw(tmp_path / "run" / "plots", [kind.name], svg=True, **given)
        assert sorted(files) == sorted((tmp_path / "run" / "plots").iterdir())
        assert files == [tmp_path / "run" / "plots" / f"{name}{end}" for name in pictures for end in (PNG, SVG)]
        for file in files[1::2]:
            catalogue.save(pictures[file.stem], tmp_path / "again.svg")
            assert file.read_bytes() == (tmp_path / "again.svg").read_bytes()
    assert {name.partition("-")[0] for name in pictures} == BEGIN[kind.name]
    for picture in pictures.values():
        if isinstance(picture, Sheet):
            alt.VConcatChart.from_dict(specification(picture), validate=True)


CASES = [Case(vit_s(num_tokens=tokens), name) for tokens in (50, 197) for name in ("eager", "sdpa")]


@pytest.mark.parametrize(
    "results",
    [results(CASES[:2]), results(CASES, dict.fromkeys(CASES, ("oom", ""))), None],
    ids=["a single point", "nothing measured", "nothing at all"],
)
def test_what_lacks_values_writes_nothing(results: pd.DataFrame | None, tmp_path: Path) -> None:
    """A kind without points is left out, and no folder is made for nothing."""
    assert catalogue.draw(tmp_path / "plots", results=results) == []
    assert not (tmp_path / "plots").exists()


def test_a_kind_that_is_added_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function that yields figures and an entry are all that a kind takes, whatever it is drawn from."""

    def figures(_material: object) -> Iterator[tuple[str, Figure]]:
        yield "mine", Figure()

    kinds = [Kind(f"mine {needs.name}", needs, figures) for needs in Needs]
    monkeypatch.setattr(catalogue, "KINDS", kinds)
    for folder, material in (("results", {"results": quick()}), ("profiles", {"profiles": [profile()]})):
        drawn = catalogue.draw(tmp_path / folder, **material)
        assert {path.name for path in drawn} == {f"mine{PNG}"}
    assert catalogue.draw_comparison(Report(every_verdict()), tmp_path / "compared.png")
    assert (tmp_path / "compared.png").exists()


def test_a_second_kind_of_comparison_lies_beside_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A single file is asked for: the first picture has its name, the others begin with it."""
    changes = next(kind for kind in KINDS if kind.needs is Needs.COMPARISON)
    second = Kind("second", Needs.COMPARISON, lambda _report: iter([("second", Figure())]))
    monkeypatch.setattr(catalogue, "KINDS", [changes, second])
    assert catalogue.draw_comparison(Report(every_verdict()), tmp_path / "of.svg")
    assert {path.name for path in tmp_path.iterdir()} == {"of.svg", "of-second.svg"}
