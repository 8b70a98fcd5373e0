"""Charts as files."""

import dataclasses
import struct
from pathlib import Path

import matplotlib as mpl
import pytest

from bench.show.charts import base
from bench.show.charts.base import SHAPES, Sheet, chart, save_as, spec, specification, swatch
from bench.show.palette import PAGE_COLOURS, style
from impls.catalogue import IMPLEMENTATIONS

NAMES = ["eager", "sdpa"]


def sheet() -> Sheet:
    """Return a picture of one mark, in the colour of sdpa."""
    drawn = spec("One mark", chart().mark_point(color="var(--i1)").encode(x="x:Q"))
    words = ["first " * 9, "second " * 9, "third " * 9]
    return Sheet(heading="Heading", facts=words, notes=["note " * 12], spec=drawn, rows=[{"x": 1}], names=NAMES)


def test_a_file_is_always_the_same_and_has_all_its_words(tmp_path: Path) -> None:
    """Whatever a user's own style is; facts are wrapped, and colours are those of a light page."""
    save_as(sheet(), tmp_path / "one.svg")
    with mpl.rc_context({"font.size": 30}):
        save_as(sheet(), tmp_path / "other.svg")
    text = (tmp_path / "one.svg").read_text()
    assert text == (tmp_path / "other.svg").read_text()
    assert all(word in text for word in ("Heading", "first", "second", "third", "note", style("sdpa").colour))
    assert "var(" not in text
    assert len(specification(sheet())["vconcat"][0]["title"]["text"]) > 1


def test_a_mixed_colour_is_mixed() -> None:
    """A third of black in white is light grey, and what depends on the scheme is that of a light page."""
    rows = [{"fill": "color-mix(in srgb, var(--black) 33%, var(--surface))", "ink": "light-dark(#000000, #ffffff)"}]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PAGE_COLOURS, "black", ("#000000", "#000000"))
        (row,) = specification(dataclasses.replace(sheet(), rows=rows))["datasets"]["rows"]
    assert row == {"fill": "#ababab", "ink": "#000000"}


def test_a_picture_that_grows_too_large_is_drawn_coarser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A PNG has a largest size; thousands of rows keep within it, and are not refused."""
    monkeypatch.setattr(base, "LARGEST_PIXELS", 500)
    save_as(sheet(), tmp_path / "one.png")
    assert 490 < max(struct.unpack(">II", (tmp_path / "one.png").read_bytes()[16:24])) <= 500


def test_every_marker_of_the_catalogue_has_a_shape() -> None:
    """And one that isn't there is a circle."""
    assert {entry.style.marker for entry in IMPLEMENTATIONS.values()} <= set(SHAPES)
    assert swatch("somebody:kernel")[1] in SHAPES.values()
