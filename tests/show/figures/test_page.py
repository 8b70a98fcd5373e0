"""What the page of any picture has."""

from pathlib import Path

from matplotlib.figure import Figure

from bench.show.figures.page import head_height, save, tick_labels, write


def test_heading_and_footnotes_stand_on_the_page() -> None:
    """Every line is there, the heading above, the footnotes below and in their order."""
    figure = Figure(figsize=(5, 4))
    write(figure, "Heading", ["first", "second"], ["note", "last note"])
    heights = {text.get_text(): text.get_position()[1] for text in figure.texts}
    assert sorted(heights, key=lambda text: -heights[text]) == ["Heading", "first", "second", "note", "last note"]
    assert heights["second"] > 1 - head_height(2) / 4


def test_numbers_without_room_are_left_out_but_for_the_ends() -> None:
    """Where places crowd, the first, the last and the rightmost that fit are named."""
    places = (50, 51, 52, 577, 1024)
    assert tick_labels(places, (45, 1100), 5.0) == ["50", "", "", "577", "1024"]
    assert tick_labels(places, (45, 1100), 0.5) == ["50", "", "", "", "1024"]


def test_a_figure_is_saved_twice_and_always_the_same(tmp_path: Path) -> None:
    """A PNG and an SVG lie in a folder that is made, and nothing of the time is in the SVG."""
    figure = Figure(figsize=(2, 2))
    write(figure, "Heading", [], [])
    one, other = (save(figure, "name", tmp_path / folder) for folder in ("one", "other"))
    assert [path.name for path in one] == ["name.png", "name.svg"]
    assert one[1].read_bytes() == other[1].read_bytes()
