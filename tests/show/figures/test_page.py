"""What the page of any picture has."""

import dataclasses
from pathlib import Path

import pytest

from bench.show.figures.page import (
    AXES_WIDTH,
    LEFT,
    calls,
    facts,
    new_figure,
    origin_rows,
    save_as,
    tick_labels,
    write_beside,
)
from bench.show.rows import origins
from tests.profiles import profile, stepwise


def test_heading_and_footnotes_stand_on_the_page() -> None:
    """Every line is there, the heading above, the footnotes below and in their order."""
    figure = new_figure("Heading", ["first " * 9, "second " * 9], ["note " * 12, "last note " * 12], [3.0], right=1.0)
    heights = {text.get_text().split()[0]: text.get_position()[1] for text in figure.texts}
    assert sorted(heights, key=lambda text: -heights[text]) == ["Heading", "first", "second", "note", "last"]
    axes = figure.axes[0].get_position()
    assert heights["second"] > axes.y1
    assert heights["note"] < axes.y0


def test_numbers_without_room_are_left_out_but_for_the_ends() -> None:
    """Where places crowd, the first, the last and the rightmost that fit are named."""
    places = (50, 51, 52, 577, 1024)
    assert tick_labels(places, (45, 1100), 5.0) == ["50", "", "", "577", "1024"]
    assert tick_labels(places, (45, 1100), 0.5) == ["50", "", "", "", "1024"]


def test_a_figure_is_always_the_same_file(tmp_path: Path) -> None:
    """Nothing of the time is in an SVG."""
    figure = new_figure("Heading", [], [], [1.0], right=0.2)
    for name in ("one.svg", "other.svg"):
        save_as(figure, tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "other.svg").read_bytes()


def test_panels_stand_below_each_other_with_gaps() -> None:
    """Heights, widths and gaps are in inches, from top to bottom."""
    figure = new_figure("Heading", [], [], [3.0, 1.0], right=1.5, gap=0.25)
    width, height = figure.get_size_inches()
    main, strip = (axes.get_position() for axes in figure.axes)
    assert width == pytest.approx(LEFT + AXES_WIDTH + 1.5)
    assert [main.x0 * width, main.width * width] == pytest.approx([LEFT, AXES_WIDTH])
    assert [main.height * height, strip.height * height] == pytest.approx([3.0, 1.0])
    assert (main.y0 - strip.y1) * height == pytest.approx(0.25)


def test_text_beside_axes_keeps_its_place_in_inches() -> None:
    """It is as far from the axes' lower right corner as it says."""
    figure = new_figure("Heading", [], [], [2.0], right=1.0)
    axes = figure.axes[0]
    write_beside(axes, 0.5, 1.5, "text", "#d55e00", "label text")
    (text,) = axes.texts
    box = axes.get_window_extent()
    x, y = text.get_transform().transform(text.get_position())
    assert [(x - box.x1) / figure.dpi, (y - box.y0) / figure.dpi] == pytest.approx([0.5, 1.5])


def test_facts_are_what_is_fixed() -> None:
    """The device with its name, and no column that the picture shows."""
    assert facts(stepwise().case.point, origin_rows([stepwise(), profile()])) == [
        *("vit", "cpu (A CPU)", "float32", "inference", "B=8", "N=197", "C=384", "H=6", "1 thread"),
    ]
    assert "N=197" not in facts(stepwise().case.point, origin_rows([stepwise()]), ["num_tokens"])


def test_origins_say_how_many_calls_and_with_what() -> None:
    """A range where profiles differ, and each version once."""
    other = dataclasses.replace(profile(), calls=7)
    assert calls([stepwise(), other]) == "means over 3 to 7 calls under the profiler"
    assert origins(origin_rows([stepwise(), other])) == ["torch 2.13.0", "commit 0123456789ab+"]
