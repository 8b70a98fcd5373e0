"""Pictures of profiles as files."""

from pathlib import Path

import matplotlib as mpl

from bench.show.stage_pictures import draw
from tests.profiles import profile, stepwise


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
