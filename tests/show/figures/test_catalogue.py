"""What is drawn of which material, as files."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from bench.plan.case import Case
from bench.show.comparison.report import Report
from bench.show.figures import catalogue
from bench.show.figures.catalogue import KINDS, Kind, Needs
from bench.store.profile import Profile
from tests.profiles import profile, stepwise
from tests.show.comparison.example_comparisons import every_verdict
from tests.show.example_results import point, quick, results


def draw(profiles: Sequence[Profile], folder: Path) -> list[Path]:
    """Write the pictures of profiles, and return the files."""
    return catalogue.draw(folder, profiles=profiles)


def begin(files: Sequence[Path]) -> set[str]:
    """Return how the names of files begin."""
    return {file.stem.partition("-")[0] for file in files}


def test_names_are_unique() -> None:
    """A kind is asked for by its name."""
    assert len({kind.name for kind in KINDS}) == len(KINDS)


def test_results_are_drawn_in_every_way_that_they_have_values_for(tmp_path: Path) -> None:
    """One call writes lines, fits and maps of winners; without ceilings and profiles there is none of theirs."""
    tokens = [point(num_tokens=number, num_heads=heads) for number in (50, 197) for heads in (6, 12)]
    files = catalogue.draw(tmp_path, results=results([Case(at, name) for at in tokens for name in ("eager", "sdpa")]))
    assert begin(files) == {"latency", "speedup", "memory", "scaling", "winners"}
    assert sorted(files) == sorted(tmp_path.iterdir())


def test_a_single_point_is_no_picture(tmp_path: Path) -> None:
    """A kind that lacks points is left out, and no folder is made for nothing."""
    alone = results([Case(point(), name) for name in ("eager", "sdpa")])
    assert catalogue.draw(tmp_path / "plots", results=alone) == []
    assert not (tmp_path / "plots").exists()


def test_kinds_can_be_chosen(tmp_path: Path) -> None:
    """Only those that are named are drawn."""
    assert begin(catalogue.draw(tmp_path, ["winners"], results=quick())) == {"winners"}


def test_a_kind_that_is_added_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function that yields figures and an entry are all that a kind takes, whatever it is drawn from."""

    def figures(_material: object) -> Iterator[tuple[str, Figure]]:
        yield "mine", Figure()

    kinds = [Kind(f"mine {needs.name}", needs, figures) for needs in Needs]
    monkeypatch.setattr(catalogue, "KINDS", kinds)
    for folder, material in (("results", {"results": quick()}), ("profiles", {"profiles": [profile()]})):
        drawn = catalogue.draw(tmp_path / folder, **material)
        assert {path.name for path in drawn} >= {"mine.png", "mine.svg"}
    assert catalogue.draw_comparison(Report(every_verdict()), tmp_path / "compared.png")
    assert (tmp_path / "compared.png").exists()


def test_a_second_kind_of_comparison_lies_beside_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file is asked for: the first picture has its name, the others begin with it."""
    changes = next(kind for kind in KINDS if kind.needs is Needs.COMPARISON)
    second = Kind("second", Needs.COMPARISON, lambda _report: iter([("second", Figure())]))
    monkeypatch.setattr(catalogue, "KINDS", [changes, second])
    assert catalogue.draw_comparison(Report(every_verdict()), tmp_path / "of.svg")
    assert {path.name for path in tmp_path.iterdir()} == {"of.svg", "of-second.svg"}


def test_each_point_has_a_picture_and_each_series_one_more(tmp_path: Path) -> None:
    """A PNG and an SVG of each, in a folder that is made."""
    profiles = [made for tokens in (197, 577) for made in (stepwise(num_tokens=tokens), profile(num_tokens=tokens))]
    files = draw(profiles, tmp_path / "run" / "plots")
    assert sorted(files) == sorted((tmp_path / "run" / "plots").iterdir())
    assert [(path.stem.split("-")[0], path.suffix) for path in files] == [
        *[("stages", ".png"), ("stages", ".svg")] * 2,
        *[("shares", ".png"), ("shares", ".svg")],
    ]


def test_a_single_point_has_no_picture_of_shares(tmp_path: Path) -> None:
    """Nor have points without stages."""
    assert {path.stem.split("-")[0] for path in draw([stepwise(), profile()], tmp_path / "one")} == {"stages"}
    plain = [profile(num_tokens=tokens) for tokens in (197, 577)]
    assert {path.stem.split("-")[0] for path in draw(plain, tmp_path / "plain")} == {"stages"}


def test_nothing_profiled_writes_nothing(tmp_path: Path) -> None:
    """And leaves no folder behind."""
    assert draw([], tmp_path / "plots") == []
    assert not (tmp_path / "plots").exists()


def test_svg_files_are_the_same_for_the_same_profiles(tmp_path: Path) -> None:
    """Whatever the user's own style is."""
    profiles = [stepwise(num_tokens=tokens, mode="train") for tokens in (197, 577)]
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "black", "hatch.linewidth": 5}):
        one = draw(profiles, tmp_path / "one")
    other = draw(profiles, tmp_path / "other")
    for first, second in zip(one, other, strict=True):
        if first.suffix == ".svg":
            assert first.read_bytes() == second.read_bytes()
