"""What the page of any picture has."""

from pathlib import Path

import pytest

from bench.show.figures.page import new_figure, save, tick_labels, write_beside


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


def test_a_figure_is_saved_twice_and_always_the_same(tmp_path: Path) -> None:
    """A PNG and an SVG lie in a folder that is made, and nothing of the time is in the SVG."""
    figure = new_figure("Heading", [], [], [1.0], right=0.2)
    one, other = (save(figure, "name", tmp_path / folder) for folder in ("one", "other"))
    assert [path.name for path in one] == ["name.png", "name.svg"]
    assert one[1].read_bytes() == other[1].read_bytes()


def test_panels_stand_below_each_other_with_gaps() -> None:
    """Heights, widths and gaps are in inches, from top to bottom."""
    figure = new_figure("Heading", [], [], [3.0, 1.0], left=0.5, across=4.0, right=1.5, gap=0.25)
    width, height = figure.get_size_inches()
    main, strip = (axes.get_position() for axes in figure.axes)
    assert width == pytest.approx(0.5 + 4.0 + 1.5)
    assert [main.x0 * width, main.width * width] == pytest.approx([0.5, 4.0])
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
