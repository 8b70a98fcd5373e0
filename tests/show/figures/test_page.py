"""What the page of any picture has."""

import dataclasses
from pathlib import Path

import pytest

from bench.show.figures import page
from bench.show.rows import origins
from tests.profiles import profile, stepwise


def test_text_and_panels_stand_below_each_other(tmp_path: Path) -> None:
    """The heading, the facts, the panels with their gaps, the footnotes; the same figure is the same file."""
    words = ["first " * 12, "second " * 12], ["note " * 18, "last note " * 18]
    figure = page.new_figure("Heading", *words, [3.0, 1.0], right=1.5, gap=0.25)
    heights = {text.get_text().split()[0]: text.get_position()[1] for text in figure.texts}
    assert sorted(heights, key=lambda text: -heights[text]) == ["Heading", "first", "second", "note", "last"]
    width, height = figure.get_size_inches()
    main, strip = (axes.get_position() for axes in figure.axes)
    assert heights["second"] > main.y1
    assert heights["note"] < strip.y0
    assert width == pytest.approx(page.LEFT + page.AXES_WIDTH + 1.5)
    assert [main.x0 * width, main.width * width] == pytest.approx([page.LEFT, page.AXES_WIDTH])
    assert [main.height * height, strip.height * height] == pytest.approx([3.0, 1.0])
    assert (main.y0 - strip.y1) * height == pytest.approx(0.25)
    for name in ("one.svg", "other.svg"):
        page.save_as(figure, tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "other.svg").read_bytes()


def test_numbers_without_room_are_left_out_but_for_the_ends() -> None:
    """The least and the rightmost that fit are named."""
    places = (50, 51, 52, 577, 1024)
    assert page.tick_labels(places, (45, 1100), 5.0) == ["50", "", "", "577", "1024"]
    assert page.tick_labels(places, (45, 1100), 0.5) == ["50", "", "", "", "1024"]


def test_text_beside_axes_keeps_its_place_in_inches() -> None:
    """The text is as far from the axes' lower right corner as it says."""
    figure = page.new_figure("Heading", [], [], [2.0], right=1.0)
    axes = figure.axes[0]
    page.write_beside(axes, 0.5, 1.5, "text", "#d55e00", "label text")
    (text,) = axes.texts
    box = axes.get_window_extent()
    x, y = text.get_transform().transform(text.get_position())
    assert [(x - box.x1) / figure.dpi, (y - box.y0) / figure.dpi] == pytest.approx([0.5, 1.5])


def test_facts_are_what_is_fixed_and_origins_how_it_was_profiled() -> None:
    """The device with its name, and no column that the picture shows; a range of calls, and each version once."""
    point = stepwise().case.point
    assert page.facts(point, page.origin_rows([stepwise(), profile()])) == [
        *("vit", "cpu (A CPU)", "float32", "inference", "B=8", "N=197", "C=384", "H=6", "1 thread"),
    ]
    assert "N=197" not in page.facts(point, page.origin_rows([stepwise()]), ["num_tokens"])
    other = dataclasses.replace(profile(), calls=7)
    assert page.calls([stepwise(), other]) == "means over 3 to 7 calls under the profiler"
    assert origins(page.origin_rows([stepwise(), other])) == ["torch 2.13.0", "commit 0123456789ab+"]
