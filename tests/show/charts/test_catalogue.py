"""What is drawn of which material, as files."""

import dataclasses
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
import pytest
from matplotlib.figure import Figure

from bench.analyse.summary import summarise
from bench.plan.case import Case
from bench.plan.layers import CEILING_BYTES, CEILING_FLOPS
from bench.show.charts import catalogue
from bench.show.charts.catalogue import KINDS, PNG, Kind, Needs
from bench.show.comparison.report import Report
from bench.store.profile import Profile
from tests.profiles import profile, stepwise
from tests.show.comparison.example_comparisons import every_verdict
from tests.show.example_results import point, quick, record, results


@functools.cache
def material(*heads: int) -> dict[str, Any]:
    """Return results at two token counts with each number of heads, under ceilings, and profiles of two series."""
    points = [point(num_tokens=tokens, num_heads=number) for tokens in (197, 577) for number in heads]
    cases = [Case(at, name) for at in points for name in ("eager", "sdpa")]
    ceilings = {CEILING_FLOPS: 1e11, CEILING_BYTES: 1e9}
    records = [record(case, process) for case in cases for process in range(2)]
    records = [dataclasses.replace(each, metrics={**each.metrics, **ceilings}) for each in records]
    profiles = [made for tokens in (197, 577) for made in (stepwise(num_tokens=tokens), profile(num_tokens=tokens))]
    return {"results": summarise(records, "eager"), "profiles": profiles}


@pytest.mark.parametrize(
    ("kind", "begin"),
    [
        ("lines", {"latency", "speedup", "memory"}),
        ("scaling", {"scaling"}),
        ("winners", {"winners"}),
        ("roofline", {"roofline"}),
        ("stages", {"stages"}),
        ("shares", {"shares"}),
    ],
)
def test_a_kind_is_drawn_and_the_same_again_whatever_the_users_style(
    kind: str, begin: set[str], tmp_path: Path
) -> None:
    """A file of each picture lies in a folder that is made, an SVG too if it is asked for, the same byte for byte."""
    given = material(6, 12) if kind == "winners" else material(6)
    with mpl.rc_context({"font.size": 30, "lines.linewidth": 9, "axes.facecolor": "red", "hatch.linewidth": 5}):
        files = catalogue.draw(tmp_path / "run" / "plots", [kind], svg=True, **given)
    again = catalogue.draw(tmp_path / "again", [kind], svg=True, **given)
    assert sorted(files) == sorted((tmp_path / "run" / "plots").iterdir())
    assert [file.suffix for file in files] == [".png", ".svg"] * (len(files) // 2)
    assert {file.stem.partition("-")[0] for file in files} == begin
    for one, other in zip(files[1::2], again[1::2], strict=True):
        assert one.read_bytes() == other.read_bytes()


CASES = [Case(point(num_tokens=tokens), name) for tokens in (50, 197) for name in ("eager", "sdpa")]


@pytest.mark.parametrize(
    ("results", "profiles"),
    [
        (results(CASES[:2]), []),
        (results(CASES, dict.fromkeys(CASES, ("oom", ""))), []),
        (None, []),
    ],
    ids=["a single point", "nothing measured", "nothing at all"],
)
def test_what_lacks_values_writes_nothing(
    results: pd.DataFrame | None, profiles: list[Profile], tmp_path: Path
) -> None:
    """A kind without points is left out, and no folder is made for nothing."""
    assert catalogue.draw(tmp_path / "plots", results=results, profiles=profiles) == []
    assert not (tmp_path / "plots").exists()


@pytest.mark.parametrize("profiles", [[stepwise()], [profile(num_tokens=tokens) for tokens in (197, 577)]])
def test_without_a_series_of_stages_there_are_no_shares(profiles: list[Profile], tmp_path: Path) -> None:
    """Neither a single point nor points without stages have any."""
    assert catalogue.draw(tmp_path / "plots", ["shares"], profiles=profiles) == []


def test_names_are_unique() -> None:
    """A kind is asked for by its name."""
    assert len({kind.name for kind in KINDS}) == len(KINDS)


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
    """One file is asked for: the first picture has its name, the others begin with it."""
    changes = next(kind for kind in KINDS if kind.needs is Needs.COMPARISON)
    second = Kind("second", Needs.COMPARISON, lambda _report: iter([("second", Figure())]))
    monkeypatch.setattr(catalogue, "KINDS", [changes, second])
    assert catalogue.draw_comparison(Report(every_verdict()), tmp_path / "of.svg")
    assert {path.name for path in tmp_path.iterdir()} == {"of.svg", "of-second.svg"}
